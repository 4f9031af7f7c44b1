"""The commands: the one place that speaks to the user and reads the environment."""
