"""Short ways to write a history down and to ask what one invariant says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from invariants.judge import judge_records
from traces.history import Record

Fields = dict[str, Any]
Said = str | list[tuple[str, tuple[int, ...]]]
"""A verdict word, or the (reason, evidence) pairs of a violated invariant."""


def started(**limits: Any) -> Fields:
    """The run's start, with these limits."""
    return {"type": "run_started", "limits": limits}


def ended(status: str = "succeeded", **fields: Any) -> Fields:
    """The run's end; a failed one says why."""
    why = {"error": {"kind": "downstream"}} if status == "failed" else {}
    return {"type": "run_finished", "status": status, **why, **fields}


def exited(**fields: Any) -> Fields:
    """The end of the run's process."""
    return {"type": "process_exited", "exit_code": 0, **fields}


def call(attempt: str | None, **fields: Any) -> Fields:
    """The start of an effectful call of `charge` unless said otherwise."""
    return {"type": "tool_call_started", "attempt_id": attempt, "effectful": True, "tool": "charge", **fields}


def done(attempt: str | None, outcome: str = "ok", **fields: Any) -> Fields:
    """The finish of a call."""
    return {"type": "tool_call_finished", "attempt_id": attempt, "outcome": outcome, **fields}


def queued(attempt: str | None, **fields: Any) -> Fields:
    """A call that has to wait."""
    return {"type": "tool_call_queued", "attempt_id": attempt, "tool": "charge", **fields}


def refused(attempt: str | None, **fields: Any) -> Fields:
    """A call that was never sent."""
    return {"type": "tool_call_refused", "attempt_id": attempt, "tool": "charge", **fields}


def effect(effect_id: str | None, **fields: Any) -> Fields:
    """What the service says it did: an applied forward effect of `charge` unless said otherwise."""
    return {"type": "effect", "effect_id": effect_id, "outcome": "applied", "tool": "charge", **fields}


def undo(effect_id: str, **fields: Any) -> Fields:
    """A compensating effect for that effect."""
    return effect(f"undo-{effect_id}", **{"tool": "refund", "compensates": effect_id, **fields})


def undoing(step: int | None, **fields: Any) -> Fields:
    """A compensation begins."""
    return {"type": "compensation_started", "step": step, **fields}


def undone(step: int | None, outcome: str = "ok", **fields: Any) -> Fields:
    """A compensation is finished."""
    return {"type": "compensation_finished", "step": step, "outcome": outcome, **fields}


def settled(step: int | None, disposition: str, **fields: Any) -> Fields:
    """The agent says what became of a step's effect."""
    return {"type": "effect_settled", "step": step, "disposition": disposition, **fields}


def record(type_: str, **fields: Any) -> Fields:
    """Any other record."""
    return {"type": type_, **fields}


def of(run: str, *records: Fields, **fields: Any) -> list[Fields]:
    """The same records, of that run and with these fields besides."""
    return [{**one, "run_id": run, **fields} for one in records]


def numbered(records: Sequence[Fields]) -> list[tuple[int, Record]]:
    """(line, record) pairs; run `r` and a time of a tenth of a second per line where nothing else is said."""
    return [
        (line, msgspec.convert({"t": line / 10, "run_id": "r", **fields}, Record))
        for line, fields in enumerate(records, start=1)
    ]


def said(invariant: str, records: Sequence[Fields], *, run: str = "r") -> Said:
    """What the invariant says of the run."""
    verdicts = [
        verdict
        for verdict in judge_records(numbered(records))
        if verdict.invariant == invariant and verdict.run_id == run
    ]
    if len(verdicts) == 1 and verdicts[0].verdict != "violated":
        return verdicts[0].verdict
    assert all(verdict.verdict == "violated" and verdict.message for verdict in verdicts)
    return [(verdict.reason or "", verdict.evidence) for verdict in verdicts]


def case(title: str, expected: Said, *records: Fields, run: str = "r") -> Any:
    """One row of a table of histories."""
    return pytest.param(expected, records, run, id=title)
