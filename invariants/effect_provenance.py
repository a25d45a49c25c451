"""effect-provenance: nothing happens that the model did not ask for in full (contract section 4.8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from invariants.facts import Forward, Run
from invariants.invariant import Hook, Invariant
from invariants.verdict import Outcome, Ruling, Standing
from traces.history import CoreRecord

_HELD = Standing("held", "every effect goes back to a tool call that the model had delivered whole")
_VACUOUS = Standing("vacuous", "the run had no forward effect")


class _Asked(msgspec.Struct, eq=False):
    """First lines on which the model asked for a tool, by args digest: in a whole message, and in a cut one."""

    whole: dict[str | None, int] = {}
    cut: dict[str | None, int] = {}


class EffectProvenance(Invariant):
    """Traces effects back to the model's own words; says nothing of runs whose history shows none."""

    name: ClassVar[str] = "effect-provenance"

    def hooks(self) -> Mapping[str, Hook]:
        return {"model_tool_call": self._asked}

    def rule(self, run: Run) -> Outcome:
        asked: dict[str | None, _Asked] | None = run.notes[self._slot]
        if asked is None:
            return None
        rulings: dict[str, Ruling] = {}
        for forward in run.forwards:
            ruling = _trace_back(forward, asked.get(forward.tool))
            if ruling is not None:
                known = rulings.get(ruling.reason)
                if known is None or _order(ruling) < _order(known):
                    rulings[ruling.reason] = ruling
        if rulings:
            return list(rulings.values())
        return _HELD if run.forwards else _VACUOUS

    def _asked(self, run: Run, line: int, record: CoreRecord) -> None:
        by_tool: dict[str | None, _Asked] = run.notes[self._slot] or {}
        run.notes[self._slot] = by_tool
        asked = by_tool.setdefault(record.tool, _Asked())
        (asked.whole if record.complete else asked.cut).setdefault(record.args_digest, line)


def _order(ruling: Ruling) -> tuple[int, list[int]]:
    return max(ruling.lines), sorted(ruling.lines)


def _trace_back(forward: Forward, asked: _Asked | None) -> Ruling | None:
    if asked is not None:
        if _first_match(asked.whole, forward):
            return None
        cut = _first_match(asked.cut, forward)
        if cut:
            message = f"{forward.describe()} was executed from a tool call whose message the model never finished"
            return Ruling("cut-arguments", (cut, forward.line), message)
    return Ruling(
        "unplanned", (forward.line,), f"{forward.describe()} took effect, but the model had not asked for it"
    )


def _first_match(lines: Mapping[str | None, int], forward: Forward) -> int:
    """The first fitting request before the call was started; a missing digest equals any. 0 for none."""
    digest = forward.args_digest
    fitting = lines.values() if digest is None else (lines.get(digest, 0), lines.get(None, 0))
    return min((line for line in fitting if 0 < line < forward.position), default=0)
