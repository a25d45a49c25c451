"""What is refused before the wire."""

from __future__ import annotations

from typing import Any

import pytest

from agents.reference.preflight import examine
from agents.reference.tools import Tool

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TOOL = Tool("t", schema=SCHEMA, self_repair=1)


@pytest.mark.parametrize(
    ("tool", "arguments", "failed", "reason", "kind"),
    [
        (Tool("other"), {}, 0, "preflight", "unknown_tool"),
        (TOOL, {}, 0, "preflight", "invalid_arguments"),
        (TOOL, {"n": "1"}, 1, "preflight", "invalid_arguments"),
        (TOOL, {"n": 1}, 2, "limit", "self_repair_exhausted"),
        (Tool("t", confirm=True), {}, 0, "confirmation", "confirmation_needed"),
    ],
)
def test_refused(tool: Tool, arguments: dict[str, Any], failed: int, reason: str, kind: str) -> None:
    """Each kind of bad call, with the word of the contract and the kind the model reads."""
    refusal = examine(tool, arguments, failed_before=failed, offered=["t"])
    assert refusal is not None
    assert (refusal.reason, refusal.failure.kind) == (reason, kind)


def test_allowed() -> None:
    """A good call, and the one repair that the tool allows."""
    assert examine(TOOL, {"n": 1}, failed_before=0, offered=["t"]) is None
    assert examine(TOOL, {"n": 1}, failed_before=1, offered=["t"]) is None
