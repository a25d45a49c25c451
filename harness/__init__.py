"""Floor 5: the command line, the runner, and the processes it starts."""
