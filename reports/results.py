"""What a result directory holds: one `RunResult` per judged run, beside the history.

`verdicts.jsonl` is written by the harness as runs end; everything else in the directory is rendered from it
and from `history.jsonl` by pure functions. A writer may be killed at any moment: what `read_results`
takes for finished is finished, and a writer that goes on writes it again before it adds to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

HISTORY = "history.jsonl"
VERDICTS = "verdicts.jsonl"

INVARIANTS: tuple[str, ...] = (
    "single-effect",
    "budgets",
    "no-dangling-effect",
    "no-escaped-exception",
    "breaker-respected",
    "reverse-compensation",
    "bounded-concurrency",
    "effect-provenance",
)
"""Invariant names in the order of contract section 4, the eighth last."""

VERDICT_WORDS: tuple[str, ...] = ("held", "violated", "vacuous", "unobservable")


class ResultsError(ValueError):
    """A result directory cannot be read: bad input, message `FILE[:LINE]: what is wrong, what would be right`."""


class Ruling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One verdict on one run; `evidence` are 1-based lines of `history.jsonl`, or `"FILE:LINE"`.

    `owner` answers for the tool of the record that broke the invariant, where the registry names one.
    """

    invariant: str
    verdict: str
    reason: str | None = None
    evidence: list[int | str] = []
    message: str | None = None
    owner: str | None = None


class FaultUse(msgspec.Struct, frozen=True, kw_only=True):
    """One armed fault of a run and how often it fired; `site` reads like `charge#1/1`."""

    kind: str
    layer: str
    site: str
    armed: int = 1
    fired: int = 0


class Activation(msgspec.Struct, frozen=True, kw_only=True):
    """How often a mechanism could have acted in a run, and how often it did; `by_tool`: `[seen, acted]`."""

    opportunities: int = 0
    activations: int = 0
    by_tool: dict[str, tuple[int, int]] = {}


class Bound(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a scenario expects of a mechanism's activation rate (0..1); a `rare` one only warns."""

    min: float | None = None
    max: float | None = None
    rare: bool = False


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fact worth knowing that is no invariant: code, what was seen, what to do, and where.

    `tool` is the one that it is about, if it is about one, and `times` how often it was seen in the run.
    """

    code: str
    fact: str
    advice: str
    lines: list[int | str] = []
    tool: str | None = None
    times: int = 1


class RunResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run under one scenario, judged. Seconds throughout; `started` is Unix time.

    `number` is the scenario's, or `"101+204"` for a combined run; `lines` are the first and last line of
    the run's block in `history.jsonl`; `undecided` says why nothing can be concluded from the run.
    """

    run_id: str
    number: int | str
    scenario: str
    trace: str
    version: int | str = 1
    layers: list[str] = []
    task_type: str | None = None
    agent: str = ""
    tenant: str = "default"
    world: str = ""
    sets: list[str] = []
    status: str | None = None
    ordinary_failure: bool = False
    verdicts: list[Ruling] = []
    faults: list[FaultUse] = []
    harness_error: str | None = None
    undecided: str | None = None
    lines: tuple[int, int] | None = None
    digest: str = ""
    replay: str = ""
    wall_s: float = 0.0
    agent_s: float = 0.0
    harness_s: float = 0.0
    activations: dict[str, Activation] = {}
    expect: dict[str, Bound] = {}
    findings: list[Finding] = []
    started: float = 0.0
    seed: int | None = None

    def violations(self) -> list[Ruling]:
        """The violated verdicts, one per invariant and reason."""
        return [ruling for ruling in self.verdicts if ruling.verdict == "violated"]

    def misfires(self) -> list[FaultUse]:
        """Faults that were armed and never fired."""
        return [fault for fault in self.faults if fault.armed and not fault.fired]

    @property
    def judged(self) -> bool:
        """Whether the run was brought to verdicts by a harness that did its work."""
        return bool(self.verdicts) and self.harness_error is None

    @property
    def vacuous(self) -> bool:
        """Whether every invariant that was looked at had nothing to say."""
        return bool(self.verdicts) and all(ruling.verdict == "vacuous" for ruling in self.verdicts)


@dataclass(frozen=True, slots=True)
class Results:
    """All runs of a result directory in the order in which they were written; `torn`: a tail was set aside."""

    directory: Path
    runs: tuple[RunResult, ...]
    torn: bool = False


_decoder = msgspec.json.Decoder(RunResult)


def scenario_key(number: int | str) -> tuple[int, ...]:
    """Sorting key of a scenario's number: `204` before `"204+401"` before `301`."""
    return tuple(int(part) if part.isdigit() else 10**9 for part in str(number).split("+"))


def read_results(directory: Path) -> Results:
    """Reads `verdicts.jsonl`; of several results of one run the last counts.

    Raises `ResultsError` where there is none, or where a line that was finished cannot be read.
    """
    path = Path(directory) / VERDICTS
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ResultsError(f"{path}: no such file; name the --out directory of a run") from None
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read ({error.strerror})") from None
    lines, torn = _finished(data)
    runs: dict[str, RunResult] = {}
    for result in _decoded(path, lines):
        runs.pop(result.run_id, None)
        runs[result.run_id] = result
    return Results(Path(directory), tuple(runs.values()), torn)


def _finished(data: bytes) -> tuple[list[bytes], bool]:
    """The lines of `verdicts.jsonl` that count, without their ends, and whether a torn last one was set aside.

    A last line that only lacks its end is a result like any other.
    """
    *lines, tail = data.split(b"\n")
    if not tail.strip():
        return lines, False
    try:
        _decoder.decode(tail)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return lines, True
    return [*lines, tail], False


def _decoded(path: Path, lines: Iterable[bytes]) -> Iterable[RunResult]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ResultsError(f"{path}:{number}: not a run result ({error})") from None
