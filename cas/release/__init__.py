"""Says which files at a source are held here so that the far end may go."""
