"""Holding the judge against the oracle, and cutting a difference down to what one can read.

`difference(judge, lines)` is None where both agree; `smallest(lines, differs)` is delta debugging over the
records and then over their fields, keeping to histories that section 3 allows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from tests.oracle.naive import NaiveVerdict, judge_naively
from tests.oracle.palette import Fields
from traces.history import Record

BACKWARDS_S = 0.05
KEPT = frozenset({"type", "t", "run_id"})


class AnyVerdict(Protocol):
    """What a verdict of the judge is compared by."""

    @property
    def run_id(self) -> str: ...
    @property
    def invariant(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def evidence(self) -> Sequence[int]: ...


Judge = Callable[[Iterable[tuple[int, Record]]], Sequence[AnyVerdict]]


def records_of(lines: Sequence[Fields]) -> list[tuple[int, Record]]:
    """The history as a reader gives it: 1-based line numbers and records."""
    return [(n, msgspec.convert(fields, Record)) for n, fields in enumerate(lines, 1)]


def judged(judge: Judge, records: Iterable[tuple[int, Record]]) -> list[NaiveVerdict]:
    """The judge's verdicts without their messages, in the judge's order."""
    return [
        NaiveVerdict(v.run_id, v.invariant, v.verdict, v.reason or None, tuple(v.evidence)) for v in judge(records)
    ]


def difference(judge: Judge, lines: Sequence[Fields]) -> str | None:
    """How the judge differs from the oracle, verdict by verdict; None where it does not."""
    records = records_of(lines)
    expected, got = judge_naively(records), judged(judge, records)
    if expected == got:
        return None
    missing, extra = Counter(expected) - Counter(got), Counter(got) - Counter(expected)
    told = [f"  contract: {_say(v)}" for v in missing.elements()]
    told += [f"  judge:    {_say(v)}" for v in extra.elements()]
    return "\n".join(told or ["  the same verdicts in another order", *(f"  judge: {_say(v)}" for v in got)])


def explained(judge: Judge, lines: Sequence[Fields]) -> str | None:
    """The smallest history that still shows a difference, line by line; None where there is none."""
    if difference(judge, lines) is None:
        return None
    small = smallest(list(lines), lambda some: difference(judge, some) is not None)
    body = "\n".join(json.dumps(fields) for fields in small)
    return f"the judge and the naive reading of section 4 differ on\n{body}\n{difference(judge, small)}"


def valid(lines: Sequence[Fields]) -> bool:
    """Whether section 3 allows this history (of what shrinking might break)."""
    latest: dict[str, float] = {}
    world: dict[str, str] = {}
    started: set[str] = set()
    over: set[str] = set()
    applied: set[tuple[str, str]] = set()
    for fields in lines:
        run: str = fields["run_id"]
        t: float = fields["t"]
        if fields["type"] == "world_finished":
            over.add(fields.get("world") or "")
            continue
        if fields["type"] == "run_started":
            if run in latest and run not in started:
                return False
            started.add(run)
            world.setdefault(run, fields.get("world") or "")
        home = world.setdefault(run, "")
        if home in over or t < latest.get(run, t) - BACKWARDS_S:
            return False
        latest[run] = max(t, latest.get(run, t))
        if fields["type"] == "effect" and fields.get("outcome") == "applied" and "effect_id" in fields:
            if (home, fields["effect_id"]) in applied:
                return False
            applied.add((home, fields["effect_id"]))
    return True


def smallest(lines: list[Fields], differs: Callable[[list[Fields]], bool]) -> list[Fields]:
    """A history that still differs and of which no record and no field can be left out."""

    def fits(some: list[Fields]) -> bool:
        return bool(some) and valid(some) and differs(some)

    size = max(len(lines) // 2, 1)
    while True:
        at, before = 0, len(lines)
        while at < len(lines):
            shorter = lines[:at] + lines[at + size :]
            if fits(shorter):
                lines = shorter
            else:
                at += size
        if size == 1 and len(lines) == before:
            break
        size = max(size // 2, 1)
    for i in range(len(lines)):
        for path in _paths(lines[i]):
            poorer = [*lines[:i], _without(lines[i], path), *lines[i + 1 :]]
            if fits(poorer):
                lines = poorer
    return lines


def _paths(fields: Fields) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, value in fields.items():
        if name not in KEPT:
            found.append((name,))
            if isinstance(value, dict):
                found += [(name, inner) for inner in value]
    return found


def _without(fields: Fields, path: tuple[str, ...]) -> Fields:
    head, *rest = path
    if head not in fields:
        return fields
    if not rest:
        return {k: v for k, v in fields.items() if k != head}
    inner: dict[str, Any] = fields[head]
    return {**fields, head: {k: v for k, v in inner.items() if k != rest[0]}}


def _say(v: NaiveVerdict) -> str:
    proof = f" {v.reason} {list(v.evidence)}" if v.reason else ""
    return f"{v.run_id} {v.invariant}: {v.verdict}{proof}"
