"""Byte streams to a far end: over SSH, to a child process, in memory."""
