"""A fresh `request_id` in the body of every attempt and no key: what looks like a key is only a number."""

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
    """The bad decision: the attempt is named, the action is not."""
    if not tool.effectful:
        return keys.present(tool, key, arguments)
    request_id = os.urandom(16).hex()
    return keys.Presented({}, {**arguments, "request_id": request_id}, request_id)


def main() -> int:
    """Run the task of the environment."""
    return run_agent(replace(REFERENCE, present=present))
