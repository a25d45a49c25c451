"""A fresh key in the header of every attempt: the service sees another action each time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agents.reference import keys
from agents.reference.__main__ import main as run_agent
from agents.reference.decisions import REFERENCE
from agents.reference.tools import Tool


def present(tool: Tool, key: str, arguments: Mapping[str, Any]) -> keys.Presented:
    """The bad decision: a random key, which no question about an earlier attempt can name either."""
    return keys.present(tool, f"try-{os.urandom(16).hex()}", arguments)


def main() -> int:
    """Run the task of the environment."""
    return run_agent(replace(REFERENCE, present=present))
