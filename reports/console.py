"""What a person reads at the end of a session, in half a minute: the verdict, what was violated, what acted.

Violations and activation rates are two tables that are never mixed: a mechanism that did not act breaks no
promise by itself, and one that acted proves none.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from types import TracebackType
from typing import IO

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from reports.glance import (
    failure_legend,
    finding_groups,
    mechanism_legend,
    rated,
    status_label,
    untold_sentences,
    verdict_legend,
)
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
from reports.text import counted, duration, lines_label, number, plain, scenario_label

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
RULE_WIDTH = 110
UNBROKEN = 100_000
"""Columns off a terminal: so many that no sentence is broken."""
ADVICE_LIMIT = 160
QUIET_EVERY_S = 10.0


def show_summary(
    summary: Summary, *, quiet: bool = False, directory: Path | None = None, file: IO[str] | None = None
) -> None:
    """Writes the summary to standard output (or `file`); `quiet` leaves the headline and what is wrong.

    The last line names the report in the result `directory`. Off a terminal there is no colour, no blank at the end
    of a line, and no sentence is broken: nobody knows how wide the reader's window is.
    """
    target = file if file is not None else sys.stdout
    if target.isatty():
        _show(summary, Console(file=target, highlight=False), quiet=quiet, directory=directory)
        return
    written = StringIO()
    console = Console(file=written, highlight=False, no_color=True, width=UNBROKEN)
    _show(summary, console, quiet=quiet, directory=directory)
    target.write("".join(f"{line.rstrip()}\n" for line in written.getvalue().splitlines()))


def _show(summary: Summary, console: Console, *, quiet: bool, directory: Path | None) -> None:
    """What went wrong first, then the tables that it shows in, then what is worth knowing besides."""
    console.print(_headline(summary))
    if not quiet:
        _counts(summary, console)
    _items(console, "Harness errors", [error.sentence() for error in summary.errors], "magenta")
    if summary.violations:
        _title(console, "Violations", "red")
        _violations(summary.violations, console)
    _items(console, "Undecided", doubt_sentences(summary.undecided), "yellow")
    if not quiet:
        _tables(summary, console)
        _items(console, "Warnings", doubt_sentences(summary.warnings), "dim")
        _findings(summary, console)
    if directory is not None and not (quiet and summary.exit_code == HELD):
        if not quiet:
            console.print()
        console.print(Text(f"report: {plain(directory / 'report.html')}"), soft_wrap=True)


def _tables(summary: Summary, console: Console) -> None:
    """Both tables, each with the words that it uses; a session that judged nothing has nothing to put in them."""
    if any(any(words.values()) for words in summary.verdicts.values()):
        _title(console, "Invariants", "dim")
        console.print(_invariants(summary))
        _legend(console, verdict_legend(summary))
        for text in _listed(untold_sentences(summary)):
            console.print(_indented(Text.assemble("unobservable: ", text, style="dim")))
    rates = rated(summary)
    if rates:
        _title(console, "Mechanisms", "dim")
        console.print(_activations(summary, rates))
        without = len(summary.activations) - len(rates)
        if without:
            console.print(Text(f"no opportunity for {counted(without, 'other')}", style="dim"))
        _legend(console, mechanism_legend(summary))


def _items(console: Console, title: str, items: list[str], tone: str) -> None:
    if items:
        _title(console, title, tone)
        for text in _listed(items):
            console.print(text)


def _legend(console: Console, words: list[tuple[str, str]]) -> None:
    """What the words above mean, one dim line each."""
    for word, meaning in words:
        console.print(Text(f"{word} = {meaning}", style="dim"))


def _title(console: Console, text: str, tone: str) -> None:
    console.print()
    console.print(Rule(text, align="left", style=tone), width=min(console.width, RULE_WIDTH))


def _headline(summary: Summary) -> Text:
    tone = _TONES.get(summary.exit_code, "red")
    line = Text(f"{_MARKS.get(summary.exit_code, '!')} ", style=f"bold {tone}")
    return line.append(plain(summary.headline()), style=f"bold {tone}").append(
        f"  (exit {summary.exit_code})", style="dim"
    )


def _counts(summary: Summary, console: Console) -> None:
    """What was played, broken between two counts and never within one."""
    faults = summary.faults
    parts = [
        f"agent {plain(summary.agent)}" if summary.agent else "",
        counted(summary.runs, "run"),
        counted(summary.scenarios, "scenario"),
        counted(summary.traces, "trace"),
        f"{number(faults.fired)} of {counted(faults.armed, 'fault')} fired",
        counted(summary.ordinary_failures, "ordinary failure"),
        duration(summary.wall_s),
        f"seed {summary.seed}" if summary.seed is not None else "",
    ]
    line = ""
    for part in filter(None, parts):
        longer = f"{line} · {part}" if line else f"  {part}"
        if line and cell_len(longer) > console.width:
            console.print(Text(line, style="dim"))
            longer = f"  {part}"
        line = longer
    console.print(Text(line, style="dim"))
    _legend(console, [(f"  {word}", meaning) for word, meaning in failure_legend(summary)])


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


def _activations(summary: Summary, rates: Mapping[str, Rate]) -> Table:
    """The rates of `rates`. Floors are per scenario: they stand with the status, not against the totals."""
    table = _table()
    table.add_column("mechanism")
    table.add_column("acted", justify="right")
    table.add_column("rate", justify="right")
    table.add_column("95 % interval", justify="right")
    table.add_column("status")
    for name, rate in rates.items():
        table.add_row(
            plain(name),
            f"{rate.activations}/{rate.opportunities}",
            percent(rate.rate),
            Text(f"{percent(rate.low)} – {percent(rate.high)}" if rate.opportunities else "–", style="dim"),
            Text(status_label(summary, name), style=_STATUS_TONES.get(rate.status, "")),
        )
    return table


def _findings(summary: Summary, console: Console) -> None:
    """One line per code with tools and counts, and the advice in short."""
    groups = finding_groups(summary.findings)
    if groups:
        _title(console, "Findings", "dim")
    for group in groups:
        console.print(Text(f"{plain(group.code)}: {plain(group.sentence())}"))
        console.print(_indented(Text(f"→ {plain(group.advice, limit=ADVICE_LIMIT)}", style="dim")))


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
                TextColumn("run ·" if total == 1 else "runs ·"),
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
        parts = [f"{self._done}/{self._total} run{'' if self._total == 1 else 's'}"]
        if self._bad:
            parts.append(f"{self._bad} bad")
        if self._done < self._total and self._done:
            parts.append(f"about {duration(spent / self._done * (self._total - self._done))} left")
        else:
            parts.append(duration(spent))
        return ", ".join(parts)
