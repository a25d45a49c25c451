"""One record in a few words."""

from __future__ import annotations

from typing import Any

import pytest

from reports.story import _TELLERS, lane, sentence

RECORDS: list[tuple[dict[str, Any], str, str]] = [
    (
        {"type": "tool_call_started", "source": "wire", "tool": "charge", "idempotency_key": "k1"},
        "tools",
        "charge → key k1",
    ),
    (
        {
            "type": "tool_call_finished",
            "source": "wire",
            "tool": "charge",
            "http_status": 500,
            "outcome": "error",
            "error": {"kind": "downstream"},
        },
        "tools",
        "charge ← 500 error downstream",
    ),
    ({"type": "effect", "tool": "charge", "outcome": "applied", "effect_id": "e1"}, "service", "charge applied e1"),
    (
        {"type": "effect", "tool": "refund", "outcome": "applied", "effect_id": "c1", "compensates": "e1"},
        "service",
        "refund applied c1 undoes e1",
    ),
    ({"type": "fault_injected", "kind": "reset", "site": "charge#1/1"}, "harness", "fault: reset at charge#1/1"),
    (
        {"type": "process_exited", "signal": "SIGKILL", "injected": True},
        "harness",
        "process exited by SIGKILL (injected)",
    ),
    ({"type": "model_tool_call", "tool": "charge", "complete": False}, "model", "wants charge (cut off)"),
    ({"type": "run_finished", "source": "agent", "status": "succeeded"}, "agent", "ends succeeded"),
    (
        {"type": "retry_scheduled", "delay_s": 0.41234, "server_directed": True},
        "agent",
        "tries again in 0.412 s as the server said",
    ),
    (
        {"type": "breaker_state_changed", "tool": "pay", "from": "closed", "to": "open"},
        "agent",
        "breaker of pay closed → open",
    ),
    ({"type": "something_new"}, "agent", "something new"),
]


@pytest.mark.parametrize(("record", "where", "text"), RECORDS)
def test_a_record_is_told_in_its_lane(record: dict[str, Any], where: str, text: str) -> None:
    """The lane says whose point of view it is, the sentence what happened."""
    assert (lane(record), sentence(record)) == (where, text)


ODD_VALUES: list[Any] = [None, 7, 1e308, True, "\x1b[2J" * 90, ["x"], {"kind": [1]}, {}]
FIELDS = """
tool outcome error http_status status actions budget delay_s from to effect_id step completed name kind site max_s
signal input_tokens output_tokens idempotency_key deadline_remaining_s retry_after_s reason caused_by complete
"""


@pytest.mark.parametrize("kind", [*_TELLERS, "unknown"])
def test_no_record_is_too_odd_to_be_told(kind: str) -> None:
    """Fields of any type, in records that nobody checked: one short line, never an exception."""
    for value in ODD_VALUES:
        text = sentence({"type": kind, **dict.fromkeys(FIELDS.split(), value)})
        assert text
        assert len(text) <= 160
        assert text.isprintable()
