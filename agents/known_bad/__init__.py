"""Agents with one bad decision each, otherwise the reference agent: the harness has to catch every one of them."""
