"""One module per subcommand; `harness.cli` declares their options and imports them only when they are called."""
