"""What a violation is shown by: its evidence records side by side, and the history around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from reports.results import RunResult
from reports.story import VALUE_LIMIT, Raw, lane, sentence
from reports.text import counted, plain

RawLine = tuple[int, Raw]

CONTEXT = 12
"""Records shown before and after each piece of evidence."""

DIGEST_LIMIT = 20
"""Characters shown of a digest: enough to tell two apart."""

MOST_ROWS = 90
"""Rows of one time line; what lies between is named by its line numbers."""

_DULL = frozenset({"run_id", "world", "type", "source"})
_NATURAL = frozenset({"t", "attempt_id", "effect_id", "wire", "http_status", "answered", "result"})
"""Fields that differ between any two records: marked, but behind those whose difference tells something."""
_TITLES: Mapping[str, str] = {
    "duplicate-key": "The two effects that should have been one",
    "duplicate-intent": "The two effects that should have been one",
    "duplicate-compensation": "The two undoings that should have been one",
    "key-reused": "One key, two actions",
    "steps": "The step that was too many",
    "wall-clock": "Begin and end",
    "tokens": "The call that passed the budget",
    "cost": "The call that passed the budget",
    "silent-truncation": "What ran out, and how the run ended all the same",
    "deadline-reset": "The deadline, and the call that started it again",
    "unsettled": "The effect that nobody settled, and the end",
    "unfinished": "The effect that was left behind",
    "false-claim": "The effect, and the claim that it was undone",
    "call-while-open": "The breaker that had opened, and the call",
    "out-of-order": "What was undone too early, and what should have come first",
    "forward-during-compensation": "The beginning of the undoing, and the effect that came after",
    "starved": "The call that waited, and the one that overtook it",
    "cut-arguments": "The message that was cut off, and what was made of it",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One row of the comparison: a field, its value in each record, whether they differ, and whether that tells."""

    name: str
    values: tuple[str, ...]
    differs: bool
    natural: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """Evidence records side by side; `heads` are (line, sentence)."""

    title: str
    heads: tuple[tuple[int, str], ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """One row of a time line; `line` is 0 for a gap, whose `text` says what is left out."""

    line: int
    at: str
    lane: str
    text: str
    evidence: bool = False
    fault: bool = False


def read_excerpts(path: Path, runs: Iterable[RunResult]) -> dict[str, list[RawLine]]:
    """The history lines of some runs (and of their worlds, where evidence may lie), read in one pass.

    Lines that cannot be decoded are left out: a report about a damaged file is better than none.
    """
    spans = sorted((run.lines[0], run.lines[1], run.run_id) for run in runs if run.lines is not None)
    found: dict[str, list[RawLine]] = {run_id: [] for _, _, run_id in spans}
    if not spans or not path.exists():
        return found
    last = max(end for _, end, _ in spans)
    decoder = msgspec.json.Decoder()
    active: list[tuple[int, int, str]] = []
    waiting = spans[::-1]
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if number > last:
                break
            while waiting and waiting[-1][0] <= number:
                active.append(waiting.pop())
            active = [span for span in active if span[1] >= number]
            if not active or not line.strip():
                continue
            try:
                record = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            if isinstance(record, dict):
                for _, _, run_id in active:
                    found[run_id].append((number, record))
    return found


def compare_evidence(
    reason: str | None, evidence: Sequence[int | str], lines: Sequence[RawLine], *, run_id: str
) -> Comparison | None:
    """Up to four evidence records field by field; an effect is joined by the call that caused it.

    Times are told from the first record of the run, as in its time line.
    """
    by_number = dict(lines)
    chosen = [(number, by_number[number]) for number in evidence if isinstance(number, int) and number in by_number]
    if not chosen:
        return None
    chosen = chosen if len(chosen) <= 4 else [*chosen[:3], chosen[-1]]
    began = _began(record for _, record in lines if record.get("run_id") == run_id)
    flat = [_flattened(_with_call(record, lines)) for _, record in chosen]
    for told, (_, record) in zip(flat, chosen, strict=True):
        if isinstance(t := record.get("t"), int | float):
            told["t"] = f"{t - began:.3f} s after the run's start"
    names = dict.fromkeys(name for values in flat for name in values)
    fields = []
    for name in names:
        values = tuple(record.get(name, "–") for record in flat)
        natural = name.partition(".")[0] in _NATURAL
        fields.append(Field(name, values, len(chosen) > 1 and len(set(values)) > 1, natural))
    fields.sort(key=lambda field: (not field.differs, field.natural, _rank(field.name), field.name))
    return Comparison(
        _TITLES.get(reason or "", "The evidence"),
        tuple((number, sentence(record)) for number, record in chosen),
        tuple(fields),
    )


def _rank(name: str) -> int:
    """What people look at first: the tool, then what it was given."""
    return 0 if name == "tool" else 1 if name.startswith("args.") else 2


def timeline(run_id: str, evidence: Sequence[int | str], lines: Sequence[RawLine]) -> list[Moment]:
    """The run's records around the evidence, with the seconds since the run's first record."""
    proof = {number for number in evidence if isinstance(number, int)}
    own = [(number, record) for number, record in lines if record.get("run_id") == run_id or number in proof]
    if not own:
        return []
    began = _began(record for _, record in own)
    wanted = _around(own, proof)
    rows: list[Moment] = []
    skipped: list[int] = []
    for position, (number, record) in enumerate(own):
        if position not in wanted:
            skipped.append(number)
            continue
        if skipped:
            rows.append(_gap(skipped))
            skipped = []
        t = record.get("t")
        at = f"{t - began:.3f}" if isinstance(t, int | float) else ""
        text = sentence(record)
        if record.get("run_id") != run_id:
            text = f"{text} (run {plain(record.get('run_id'), limit=40)})"
        rows.append(Moment(number, at, lane(record), text, number in proof, record.get("type") == "fault_injected"))
    if skipped:
        rows.append(_gap(skipped))
    return rows


def _began(records: Iterable[Raw]) -> float:
    """The time of the first record that has one."""
    return next((float(t) for record in records if isinstance(t := record.get("t"), int | float)), 0.0)


def _around(own: Sequence[RawLine], proof: set[int]) -> set[int]:
    """Positions to show: all of a short run; else faults, evidence and what stands around it, the ends first."""
    if len(own) <= MOST_ROWS:
        return set(range(len(own)))
    centres = [at for at, (number, _) in enumerate(own) if number in proof] or [0]
    ends = {0, len(own) - 1}
    faults = {at for at, (_, record) in enumerate(own) if record.get("type") == "fault_injected"}
    wanted = ends | set(sorted(faults)[: MOST_ROWS // 3]) | set(centres[: MOST_ROWS // 3])
    for distance in range(1, CONTEXT + 1):
        for centre in centres:
            for at in (centre - distance, centre + distance):
                if 0 <= at < len(own) and len(wanted) < MOST_ROWS:
                    wanted.add(at)
    return wanted


def _gap(skipped: Sequence[int]) -> Moment:
    first, last = skipped[0], skipped[-1]
    lines = f"line {first}" if first == last else f"lines {first} to {last}"
    return Moment(0, "", "", f"{counted(len(skipped), 'record')} left out ({lines})")


def _with_call(record: Raw, lines: Sequence[RawLine]) -> Raw:
    """An effect with the arguments, key and status of the call that caused it."""
    if record.get("type") != "effect":
        return record
    for name in ("wire", "attempt_id"):
        mine = record.get(name)
        if mine is None:
            continue
        merged = dict(record)
        for _, other in lines:
            if other.get(name) != mine or other.get("run_id") != record.get("run_id"):
                continue
            if other.get("type") in {"tool_call_started", "tool_call_finished"}:
                for key in ("args", "http_status", "intent_id", "idempotency_key", "attempt_id"):
                    if other.get(key) is not None:
                        merged.setdefault(key, other[key])
                if other["type"] == "tool_call_finished":
                    merged["answered"] = other.get("outcome")
        if len(merged) > len(record):
            return merged
    return record


def _flattened(record: Raw) -> dict[str, str]:
    """Fields as text, nested objects by dotted names; what says nothing about the matter is left out."""
    flat: dict[str, str] = {}
    _flatten("", record, flat)
    return {name: text for name, text in flat.items() if name not in _DULL}


def _flatten(prefix: str, value: Any, into: dict[str, str]) -> None:
    if isinstance(value, Mapping) and len(prefix) < 80:
        for name, item in value.items():
            _flatten(f"{prefix}.{plain(name, limit=40)}" if prefix else plain(name, limit=40), item, into)
    elif value is not None and len(into) < 60:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        into[prefix] = plain(text, limit=DIGEST_LIMIT if prefix.endswith("_digest") else VALUE_LIMIT)
