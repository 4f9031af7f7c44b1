"""Putting the agent on a host that has only sshd, a shell and a Python: what to send, and where."""
