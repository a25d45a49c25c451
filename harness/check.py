"""Judging recorded histories offline: from files to verdicts, the JSON of contract section 4 and console text.

Several files are one history, in the order given. Inside, every line has a position in that one history; only what
leaves this module is turned back into lines of files.
"""

from __future__ import annotations

import gc
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

import msgspec

from harness.errors import InputError
from invariants.judge import Judge
from invariants.registry import INVARIANTS
from invariants.verdict import VERDICT_WORDS, Verdict
from reports.text import visible
from traces.codec import Reader
from traces.history import CoreRecord, Limits

if TYPE_CHECKING:
    from harness.loading import Document
    from traces.registry import Registry

FAULTS_SHOWN = 100
"""Of one history, so many faults are told; the rest is counted."""
VIOLATIONS_SHOWN = 50
"""On the console; `--json` lists all."""

Counts = dict[str, dict[str, int]]
"""Invariant -> verdict word -> how many verdicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What judging some files gave. `errors` are failures of our own checkers, `warnings` lines set aside."""

    files: tuple[str, ...]
    records: int
    runs: int
    verdicts: list[Verdict]
    counts: Counts
    places: Places
    """Turns evidence into `FILE:LINE`: lines are counted through all files."""
    warnings: tuple[str, ...]
    errors: tuple[str, ...]

    @property
    def violations(self) -> list[Verdict]:
        """The violated verdicts, in order."""
        return [verdict for verdict in self.verdicts if verdict.verdict == "violated"]

    @property
    def exit_code(self) -> int:
        """By contract section 1: a proven violation first, then a failure of our own, then nothing judged."""
        if any(words["violated"] for words in self.counts.values()):
            return 1
        if self.errors:
            return 3
        return 0 if self.runs else 4

    def as_json(self) -> dict[str, Any]:
        """The document of contract section 4; evidence is line numbers, or `FILE:LINE` with several files."""
        return {
            "files": len(self.files),
            "records": self.records,
            "runs": self.runs,
            "verdicts": self.verdicts if len(self.files) == 1 else [self._located(v) for v in self.verdicts],
            "counts": self.counts,
        }

    def _located(self, verdict: Verdict) -> dict[str, Any]:
        return {**msgspec.structs.asdict(verdict), "evidence": [self.places.name(line) for line in verdict.evidence]}


class Places:
    """Where each line of the one history stands: lines are counted through all files, from 1."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._before: list[int] = []
        self._lines = 0

    def begin_file(self) -> int:
        """The next file begins; gives how many lines stand before it."""
        self._before.append(self._lines)
        return self._lines

    def end_file(self, lines: int) -> None:
        """The file that was begun last has so many lines."""
        self._lines += lines

    def name(self, line: int) -> str:
        """`FILE:LINE`."""
        file = bisect_right(self._before, line - 1) - 1
        return f"{self._names[file]}:{line - self._before[file]}"


def check_files(
    paths: Sequence[str], *, sort: bool = False, tools: Registry | None = None, limits: Limits | None = None
) -> CheckResult:
    """Judges the files as one history; `-` is standard input.

    `sort` puts the records in order of time first (stable). `limits` hold where a run states none, field by field;
    `tools` says which calls are effectful, and in which resource group, where the history does not.
    Raises InputError with every fault (`FILE:LINE: what is wrong, and what would be right`).
    """
    history = _History(paths, tools=tools)
    judge = Judge(default_limits=limits)
    with _no_garbage_collection():
        if sort:
            records = sorted((pair for batch in history.read(judge) for pair in batch), key=_time)
            verdicts = judge.feed_all(enumerate((record for _, record in records), start=1))
        else:
            verdicts = [verdict for batch in history.read(judge) for verdict in judge.feed_all(batch)]
        verdicts += judge.close()
        verdicts = judge.in_order(verdicts)
    misplaced = judge.faults
    if sort:
        lines = [0, *(line for line, _ in records)]
        misplaced = [(lines[position], text) for position, text in misplaced]
        verdicts = [_moved(verdict, lines) for verdict in verdicts]
    history.raise_faults(misplaced)
    return CheckResult(
        files=tuple(paths),
        records=history.records,
        runs=len(judge.order),
        verdicts=verdicts,
        counts=_count(verdicts),
        places=history.places,
        warnings=tuple(history.warnings),
        errors=tuple(judge.errors),
    )


class _History:
    """Several files read as one history, batch by batch; faults are gathered on the way."""

    def __init__(self, paths: Sequence[str], *, tools: Registry | None) -> None:
        self.places = Places(paths)
        self.records = 0
        self.warnings: list[str] = []
        self._paths = paths
        self._tools = tools
        self._unreadable: list[str] = []
        self._faults: list[tuple[int, str]] = []

    def read(self, judge: Judge) -> Iterator[Iterable[tuple[int, CoreRecord]]]:
        """Batches of (line, record); the judge is told of lines that could not be decoded."""
        for path in self._paths:
            before = self.places.begin_file()
            try:
                with _opened(path) as stream:
                    reader = Reader(stream, on_fault=judge.skip)
                    numbered = _shifted(reader.core_records(), before) if before else reader.core_records()
                    yield numbered if self._tools is None else _completed(numbered, self._tools)
            except OSError as error:
                self._unreadable.append(f"{path}:1: cannot be read ({error.strerror}): give the path of a history")
                continue
            for fault in reader.faults:
                self._faults += [(before + fault.line, text) for text in fault.faults]
            self.places.end_file(reader.lines)
            self.records += reader.records
            self.warnings += [f"{path}:{line}: {text}" for line, text in reader.warnings]

    def raise_faults(self, misplaced: Iterable[tuple[int, str]]) -> None:
        """Raises InputError if anything was wrong, with everything that was, in order."""
        faults = sorted([*self._faults, *misplaced], key=_position)
        if faults or self._unreadable:
            told = [f"{self.places.name(line)}: {text}" for line, text in faults[:FAULTS_SHOWN]]
            more = [f"and {len(faults) - FAULTS_SHOWN} more faults"] if len(faults) > FAULTS_SHOWN else []
            raise InputError([*self._unreadable, *told, *more])


def limits_from(document: Document) -> Limits:
    """The limits of a `limits.yaml`: the fields of a `run_started`'s limits, at the top or under `limits`.

    Raises InputError with the line of every fault.
    """
    document.raise_faults()
    data = document.data or {}
    where: tuple[str, ...] = ()
    if isinstance(data, dict) and set(data) == {"limits"}:
        data, where = data["limits"] or {}, ("limits",)
    known = {field.name: field for field in msgspec.structs.fields(Limits)}
    if not isinstance(data, dict):
        document.refuse(where, "limits have to be a mapping of names to numbers")
        data = {}
    for name, value in data.items():
        if name not in known:
            document.refuse((*where, name), f"there is no limit `{name}`; there are {', '.join(known)}")
            continue
        try:
            msgspec.convert(value, known[name].type)
        except msgspec.ValidationError as error:
            document.refuse((*where, name), f"`{name}`: {error}".replace("`", ""))
    document.raise_faults()
    return msgspec.convert(data, Limits)


def print_result(result: CheckResult, stream: TextIO, *, quiet: bool = False) -> None:
    """The result for people: violations with their proof, then how many verdicts of each kind there are."""
    styled = [(style, visible(text)) for style, text in _lines(result, quiet=quiet)]
    if not stream.isatty():
        stream.writelines(f"{text}\n" for _, text in styled)
        return
    from rich.console import Console  # costs more than judging a small file: only where somebody looks

    console = Console(file=stream, highlight=False, markup=False, soft_wrap=True)
    for style, text in styled:
        console.print(text, style=style or None)


def _lines(result: CheckResult, *, quiet: bool) -> Iterator[tuple[str, str]]:
    violations = result.violations
    located = result.places.name
    for verdict in violations[:VIOLATIONS_SHOWN]:
        yield "bold red", f"VIOLATED {verdict.invariant}: {verdict.reason} (run {verdict.run_id})"
        yield "", f"    {verdict.message}"
        yield "dim", f"    proof: {', '.join(located(position) for position in verdict.evidence)}"
    if len(violations) > VIOLATIONS_SHOWN:
        yield "bold red", f"and {len(violations) - VIOLATIONS_SHOWN} more violations (--json lists all)"
    if quiet:
        return
    if violations:
        yield "", ""
    width = max((len(name) for name in result.counts), default=0)
    if result.counts:
        yield "bold", " " * width + "".join(f"{word:>14}" for word in VERDICT_WORDS)
    for name, words in result.counts.items():
        style = "red" if words["violated"] else ""
        yield style, f"{name:<{width}}" + "".join(f"{words[word]:>14,}" for word in VERDICT_WORDS)
    if result.counts:
        yield "", ""
    files = f"{len(result.files)} file{'s' if len(result.files) != 1 else ''}"
    judged = f"{result.runs:,} run{'s' if result.runs != 1 else ''} judged" if result.runs else "no run was judged"
    yield "bold", f"{files}, {result.records:,} records, {judged}: {_summary(result, len(violations))}"


def _summary(result: CheckResult, violations: int) -> str:
    if violations:
        return f"{violations:,} violation{'s' if violations != 1 else ''}"
    if result.errors:
        return "nothing violated, but not everything could be judged"
    return "nothing violated" if result.runs else "undecided"


def _opened(path: str) -> AbstractContextManager[BinaryIO]:
    return nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb")


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Judging makes many small objects and no cycles that outlive their world: looking for some is wasted time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _shifted(numbered: Iterable[tuple[int, CoreRecord]], before: int) -> Iterator[tuple[int, CoreRecord]]:
    for line, record in numbered:
        yield line + before, record


def _time(numbered: tuple[int, CoreRecord]) -> float:
    return numbered[1].t


def _completed(numbered: Iterable[tuple[int, CoreRecord]], tools: Registry) -> Iterator[tuple[int, CoreRecord]]:
    """The records, with what the registry knows of a call where the record itself does not say."""
    for position, record in numbered:
        if record.type in ("tool_call_started", "tool_call_queued") and record.tool is not None:
            tool = tools.tools.get(record.tool)
            if tool is not None:
                found: dict[str, Any] = {}
                if record.effectful is None and record.type == "tool_call_started":
                    found["effectful"] = tool.effectful
                if record.resource_group is None and tool.resource_group is not None:
                    found["resource_group"] = tool.resource_group
                record = msgspec.structs.replace(record, **found)
        yield position, record


def _position(fault: tuple[int, str]) -> int:
    return fault[0]


def _moved(verdict: Verdict, lines: Sequence[int]) -> Verdict:
    """The verdict on a sorted history, its evidence as lines of the files (still in the order of happening)."""
    if not verdict.evidence:
        return verdict
    return msgspec.structs.replace(verdict, evidence=tuple(lines[position] for position in verdict.evidence))


def _count(verdicts: Iterable[Verdict]) -> Counts:
    counts: Counts = {invariant.name: dict.fromkeys(VERDICT_WORDS, 0) for invariant in INVARIANTS}
    for verdict in verdicts:
        counts[verdict.invariant][verdict.verdict] += 1
    return {name: words for name, words in counts.items() if any(words.values())}
