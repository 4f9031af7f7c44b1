"""The far end's work: walk, scan, read again. Nothing here writes outside the agent's cache."""
