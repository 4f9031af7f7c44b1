"""One file for each command; each has a click command called `command`."""
