"""A tool call that broke off is completed by guess and executed: of `"amount": 1200` perhaps 12 has come."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from agents.reference import turn
from agents.reference.__main__ import main as run_agent
from agents.reference.decisions import REFERENCE
from agents.reference.turn import Call, Harvest, Turn, Wanted


def harvest(said: Turn) -> Harvest:
    """The bad decision: whatever calls have begun are taken, however the message ended."""
    proper = turn.harvest(said)
    if proper.fault is None or not said.calls:
        return proper
    return Harvest(calls=tuple(_guess(call) for call in said.calls))


def _guess(call: Call) -> Wanted:
    arguments = completed(call.raw)
    return Wanted(call.id, call.name, arguments if isinstance(arguments, dict) else {})


def completed(raw: str) -> Any:
    """The longest beginning of `raw` that becomes JSON by closing what is open, as lenient parsers do."""
    for end in range(len(raw), 0, -1):
        try:
            return json.loads(raw[:end].rstrip(" ,") + _closing(raw[:end]))
        except ValueError:
            continue
    return {}


def _closing(text: str) -> str:
    """Quotes, brackets and braces that are open at the end of `text`."""
    open_ones: list[str] = []
    in_string = escaped = False
    for sign in text:
        if escaped:
            escaped = False
        elif in_string:
            escaped = sign == "\\"
            in_string = sign != '"'
        elif sign == '"':
            in_string = True
        elif sign in "{[":
            open_ones.append("}" if sign == "{" else "]")
        elif sign in "}]" and open_ones:
            open_ones.pop()
    return ('"' if in_string else "") + "".join(reversed(open_ones))


def main() -> int:
    """Run the task of the environment."""
    return run_agent(replace(REFERENCE, harvest=harvest))
