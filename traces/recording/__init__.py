"""How the bundled traces are made: stories told through the recorder (see `traces/recorded/README.md`)."""
