"""Our own child processes: each speaks JSON lines on its standard input and output (see `control`)."""
