"""breaker-respected: an open breaker means no calls (contract section 4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from invariants.facts import TOLERANCE, Run
from invariants.invariant import Hook, Invariant
from invariants.verdict import Outcome, Ruling, Standing
from traces.history import CoreRecord

_HELD = Standing("held", "no call was started while its tool's breaker was open")
_VACUOUS = Standing("vacuous", "no breaker opened in the run")


class _Ban(msgspec.Struct, eq=False, gc=False):
    """The change that banned calls of a tool, and how many probes it leaves."""

    line: int
    state: str
    allowed: float
    started: int = 0


class _Notes(msgspec.Struct, eq=False):
    bans: dict[str | None, _Ban] = {}
    opened: bool = False
    ruling: Ruling | None = None


class BreakerRespected(Invariant):
    """Keeps the latest state per tool of each run, and counts the calls that start under it."""

    name: ClassVar[str] = "breaker-respected"

    def hooks(self) -> Mapping[str, Hook]:
        return {
            "breaker_state_changed": self._changed,
            "tool_call_started": self._started,
            "process_exited": self._exited,
        }

    def rule(self, run: Run) -> Outcome:
        notes: _Notes | None = run.notes[self._slot]
        if notes is None:
            return _VACUOUS
        if notes.ruling is not None:
            return [notes.ruling]
        return _HELD if notes.opened else _VACUOUS

    def _changed(self, run: Run, line: int, record: CoreRecord) -> None:
        notes: _Notes | None = run.notes[self._slot]
        if notes is None:
            notes = run.notes[self._slot] = _Notes()
        if record.to == "open":
            notes.opened = True
            notes.bans[record.tool] = _Ban(line, "open", 0)
        elif record.to == "half_open":
            notes.bans[record.tool] = _Ban(line, "half open", run.limits.half_open_probes or 0)
        else:
            notes.bans.pop(record.tool, None)

    def _started(self, run: Run, line: int, record: CoreRecord) -> None:
        notes: _Notes | None = run.notes[self._slot]
        if notes is None:
            return
        ban = notes.bans.get(record.tool)
        if ban is None:
            return
        ban.started += 1
        if ban.started > ban.allowed + TOLERANCE and notes.ruling is None:
            tool = f"`{record.tool}`" if record.tool is not None else "a tool without name"
            probes = f" and its {ban.allowed:g} probes were used" if ban.allowed > 0 else ""
            message = f"{tool} was called while its breaker was {ban.state}{probes}"
            notes.ruling = Ruling("call-while-open", (ban.line, line), message)

    def _exited(self, run: Run, line: int, record: CoreRecord) -> None:
        notes: _Notes | None = run.notes[self._slot]
        if notes is not None:
            notes.bans.clear()
