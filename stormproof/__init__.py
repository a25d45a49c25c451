"""stormproof: proves that an AI agent survives time-outs, retries, crashes and half answers."""

__version__ = "0.1.0"
