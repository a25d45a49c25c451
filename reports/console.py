"""What a person reads at the end of a session, in half a minute: the verdict, what was violated, what acted.

Violations and activation rates are two tables that are never mixed: a mechanism that did not act breaks no
promise by itself, and one that acted proves none.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from io import StringIO
from types import TracebackType
from typing import IO

from rich.console import Console, Group
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from reports.rates import Rate, percent
from reports.results import VERDICT_WORDS, RunResult
from reports.summary import (
    HARNESS_ERROR,
    HELD,
    UNDECIDED,
    VIOLATED,
    Summary,
    Violation,
    doubt_sentences,
    most_telling,
)
from reports.text import counted, duration, lines_label, plain, scenario_label

MOST_LISTED = 12
"""Violations, doubts and the like that are written out; the rest is counted and stands in the files."""

_TONES = {HELD: "green", VIOLATED: "red", HARNESS_ERROR: "magenta", UNDECIDED: "yellow"}
_MARKS = {HELD: "✔", VIOLATED: "✘", HARNESS_ERROR: "!", UNDECIDED: "?"}
_STATUS_TONES = {
    "ok": "green",
    "no-opportunity": "dim",
    "silent": "yellow",
    "below-floor": "yellow",
    "excessive": "yellow",
}
NON_TTY_WIDTH = 110
QUIET_EVERY_S = 10.0


def show_summary(summary: Summary, *, quiet: bool = False, file: IO[str] | None = None) -> None:
    """Writes the summary to standard output (or `file`); `quiet` leaves the headline and what is wrong.

    Off a terminal there is no colour and no blank at the end of a line.
    """
    target = file if file is not None else sys.stdout
    if target.isatty():
        _show(summary, Console(file=target, highlight=False), quiet=quiet)
        return
    written = StringIO()
    _show(summary, Console(file=written, highlight=False, no_color=True, width=NON_TTY_WIDTH), quiet=quiet)
    target.write("".join(f"{line.rstrip()}\n" for line in written.getvalue().splitlines()))


def _show(summary: Summary, console: Console, *, quiet: bool) -> None:
    console.print(_headline(summary))
    if not quiet:
        console.print(_counts(summary))
    if summary.violations:
        _title(console, "Violations", "red")
        _violations(summary.violations, console)
    if not quiet:
        _title(console, "Invariants", "dim")
        console.print(_invariants(summary))
        _title(console, "Mechanisms", "dim")
        console.print(_activations(summary))
    for title, items, tone in (
        (
            "Harness errors",
            [error.sentence() for error in summary.errors],
            "magenta",
        ),
        ("Undecided", doubt_sentences(summary.undecided), "yellow"),
        ("Warnings", [] if quiet else doubt_sentences(summary.warnings), "dim"),
        ("Findings", [] if quiet else _findings(summary), "dim"),
    ):
        if items:
            _title(console, title, tone)
            for text in _listed(items):
                console.print(text)


def _title(console: Console, text: str, tone: str) -> None:
    console.print()
    console.print(Rule(text, align="left", style=tone))


def _headline(summary: Summary) -> Text:
    tone = _TONES.get(summary.exit_code, "red")
    line = Text(f"{_MARKS.get(summary.exit_code, '!')} ", style=f"bold {tone}")
    return line.append(plain(summary.headline()), style=f"bold {tone}").append(
        f"  (exit {summary.exit_code})", style="dim"
    )


def _counts(summary: Summary) -> Text:
    faults = summary.faults
    parts = [
        f"agent {plain(summary.agent)}" if summary.agent else "",
        counted(summary.runs, "run"),
        counted(summary.scenarios, "scenario"),
        counted(summary.traces, "trace"),
        f"{faults.fired} of {counted(faults.armed, 'fault')} fired",
        counted(summary.ordinary_failures, "ordinary failure"),
        duration(summary.wall_s),
        f"seed {summary.seed}" if summary.seed is not None else "",
    ]
    return Text("  " + " · ".join(part for part in parts if part), style="dim")


def _violations(violations: list[Violation], console: Console) -> None:
    """Each with what happened, where it is proven, and the command that repeats it, which is never broken."""
    shown = most_telling(violations)
    for at, violation in enumerate(shown[:MOST_LISTED]):
        if at:
            console.print()
        console.print(
            Text.assemble(
                (plain(violation.invariant), "bold red"),
                (f"  {plain(violation.reason or '')}", "red"),
                (f"   {plain(scenario_label(violation.scenario))} {plain(violation.title)}", ""),
                (f"  ·  {plain(violation.trace)}", "dim"),
            )
        )
        console.print(_indented(Text(plain(violation.message))))
        console.print(_indented(Text(f"{lines_label(violation.evidence)} of history.jsonl", style="dim")))
        console.print(Text(f"  $ {plain(violation.replay)}", style="cyan"), soft_wrap=True)
    kinds = Counter(f"{rest.invariant} {rest.reason or ''}".strip() for rest in shown[MOST_LISTED:])
    if kinds:
        told = ", ".join(f"{plain(kind)} × {count}" for kind, count in kinds.most_common())
        console.print()
        console.print(Text(f"… and {kinds.total()} more ({told}); report.html shows all", style="dim"))


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, 2), expand=False)


def _table() -> Table:
    return Table(box=None, pad_edge=True, padding=(0, 2, 0, 0), header_style="dim")


def _invariants(summary: Summary) -> Table:
    table = _table()
    table.add_column("invariant")
    for word in VERDICT_WORDS:
        table.add_column(word, justify="right")
    for invariant, words in summary.verdicts.items():
        cells = [
            Text(str(words[word]) if words[word] else "·", style=_verdict_tone(word, words[word]))
            for word in VERDICT_WORDS
        ]
        table.add_row(plain(invariant), *cells)
    return table


def _verdict_tone(word: str, count: int) -> str:
    if not count:
        return "dim"
    return {"held": "green", "violated": "bold red", "unobservable": "yellow"}.get(word, "dim")


def _activations(summary: Summary) -> Group:
    """Mechanisms that had an opportunity, or should have had one; the others in one line."""
    table = _table()
    table.add_column("mechanism")
    table.add_column("acted", justify="right")
    table.add_column("rate", justify="right")
    table.add_column("95 % interval", justify="right")
    table.add_column("floor", justify="right")
    table.add_column("status")
    without = [name for name, rate in summary.activations.items() if not rate.opportunities and rate.floor is None]
    for name, rate in summary.activations.items():
        if name not in without:
            table.add_row(plain(name), *_rate_cells(rate))
    parts: list[Table | Padding] = [table] if table.row_count else []
    if without:
        note = Text(f"no opportunity: {', '.join(map(plain, without))}", style="dim")
        parts.append(Padding(note, (0, 0, 0, 0), expand=False))
    return Group(*parts)


def _rate_cells(rate: Rate) -> list[Text]:
    interval = f"{percent(rate.low)} – {percent(rate.high)}" if rate.opportunities else "–"
    return [
        Text(f"{rate.activations}/{rate.opportunities}"),
        Text(percent(rate.rate)),
        Text(interval, style="dim"),
        Text(percent(rate.floor), style="dim"),
        Text(rate.status, style=_STATUS_TONES.get(rate.status, "")),
    ]


def _place(scenario: int | str | None, trace: str | None, what: str) -> str:
    where = " · ".join(
        part for part in (scenario_label(scenario) if scenario is not None else "", trace or "") if part
    )
    return f"{where}: {what}" if where else what


def _findings(summary: Summary) -> list[str]:
    """One line per code: how many runs show it, and the fact of the first."""
    by_code: dict[str, list[str]] = {}
    for finding in summary.findings:
        by_code.setdefault(finding.code, []).append(finding.fact)
    return [f"{code} ({counted(len(facts), 'time')}): {facts[0]}" for code, facts in by_code.items()]


def _listed(items: list[str]) -> list[Text]:
    shown = [Text(plain(item)) for item in items[:MOST_LISTED]]
    if len(items) > MOST_LISTED:
        shown.append(Text(f"… and {len(items) - MOST_LISTED} more", style="dim"))
    return shown


class Progress:
    """Runs done and time left, on standard error: a bar on a terminal, else a line now and then."""

    def __init__(self, *, total: int, quiet: bool = False, file: IO[str] | None = None) -> None:
        self._file = file if file is not None else sys.stderr
        self._total, self._done, self._bad = total, 0, 0
        self._began = self._spoke = time.monotonic()
        self._quiet = quiet
        self._bar: Bar | None = None
        if not quiet and self._file.isatty():
            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("runs ·"),
                TimeElapsedColumn(),
                TextColumn("· left"),
                TimeRemainingColumn(),
                console=Console(file=self._file),
                transient=True,
            )
            self._task = self._bar.add_task("running", total=total)

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, result: RunResult | None = None) -> None:
        """One run more is done; a violation or an error of the harness is counted in the label at once."""
        self._done += 1
        self._bad += bool(result is not None and (result.violations() or result.harness_error))
        if self._bar is not None:
            label = f"running, {self._bad} bad" if self._bad else "running"
            self._bar.update(self._task, advance=1, description=label)
        elif not self._quiet and (time.monotonic() - self._spoke >= QUIET_EVERY_S or self._done == self._total):
            self._spoke = time.monotonic()
            self._file.write(f"{self.line()}\n")
            self._file.flush()

    def line(self) -> str:
        """The state in words: `12/40 runs, 1 bad, about 18 s left`."""
        spent = time.monotonic() - self._began
        parts = [f"{self._done}/{self._total} runs"]
        if self._bad:
            parts.append(f"{self._bad} bad")
        if self._done < self._total and self._done:
            parts.append(f"about {duration(spent / self._done * (self._total - self._done))} left")
        else:
            parts.append(duration(spent))
        return ", ".join(parts)
