"""Agents that can be run by name. They meet the harness only through the contract and import nothing of it."""
