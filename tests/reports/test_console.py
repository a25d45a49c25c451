"""What a person sees at the end, and the progress before."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from reports.console import MOST_LISTED, Progress, show_summary
from reports.results import Bound, FaultUse, Results, Ruling, RunResult
from reports.summary import summarise
from tests.reports.builders import acts, double_charge, held, result, violated


class Terminal(StringIO):
    """A file that says it is a terminal."""

    def isatty(self) -> bool:
        """Always."""
        return True


def shown(*runs: RunResult, **options: Any) -> str:
    """What is printed for these runs."""
    file = StringIO()
    show_summary(summarise(Results(Path("out"), runs)), file=file, **options)
    return file.getvalue()


def test_a_violation_is_told_with_its_lines_and_its_command() -> None:
    """Sentence, lines, command, each on a line of its own."""
    run, _ = double_charge()
    text = shown(run)
    assert text.startswith("✘ 1 violation in 1 of 1 run  (exit 1)")
    assert "single-effect  duplicate-intent   204 The charge is executed" in text
    assert "  charge was executed twice.\n" in text
    assert "lines 6 and 10 of history.jsonl" in text
    assert "  $ stormproof run --scenario 204 --trace order-small\n" in text


def test_violations_and_rates_are_never_in_one_table() -> None:
    """Each has its own heading, and no mechanism is named among the violations."""
    run, _ = double_charge()
    text = shown(run)
    violations, mechanisms = text.index("Violations ─"), text.index("Mechanisms ─")
    assert violations < mechanisms
    assert "retry" not in text[violations : text.index("Invariants ─")]
    assert "violat" not in text[mechanisms:].split("Findings")[0].lower()


def test_rates_come_with_interval_and_status() -> None:
    """Counts, rate, Wilson interval, the scenario whose floor was missed; what had no opportunity is counted."""
    text = shown(result(activations={"retry": acts(4, 3)}, expect={"retry": Bound(min=0.9)}))
    row = next(line for line in text.splitlines() if line.startswith("retry "))
    assert row.split() == ["retry", "3/4", "75", "%", "30", "%", "–", "95", "%", "below-floor", "in", "204"]
    assert "\nno opportunity for 24 others\n" in text
    assert "\nbelow-floor = it acted less often than a scenario asks for (its floor)" in text
    assert "204: retry acted at 3 of 4 opportunities (75 %), under its floor of 90 %" in text
    assert text.startswith("? Undecided in 1 case")


def test_everything_else_is_told_in_short() -> None:
    """Ordinary failures, misfires, harness errors, findings."""
    run, _ = double_charge()
    misfire = [FaultUse(kind="kill", layer="crash", site="charge#1/1")]
    text = shown(
        run,
        result("r2", trace="b", ordinary_failure=True, status="failed"),
        result("r3", trace="c", faults=misfire),
        result("r4", trace="d", harness_error="the proxy fell", verdicts=[]),
    )
    assert "1 ordinary failure" in text
    assert "204 · c: the fault kill at charge#1/1 was armed and never fired" in text
    assert "204 · d: the proxy fell" in text
    assert "keyless-write: A fact, in 1 run\n  → An advice.\n" in text
    assert "3 of 4 faults fired" in text


def test_a_quiet_console_tells_only_what_is_wrong() -> None:
    """The verdict and its reasons; no tables."""
    assert shown(result(), quiet=True) == "✔ Every invariant held in 1 run  (exit 0)\n"
    run, _ = double_charge()
    text = shown(run, quiet=True)
    assert "$ stormproof run" in text
    assert "Mechanisms" not in text


def test_many_violations_are_shown_by_their_variety() -> None:
    """The first of each kind and scenario, the rest counted."""
    runs = [result(f"r{n}", trace=f"t{n:03}", verdicts=[violated(), *held("single-effect")]) for n in range(40)]
    runs.append(result("other", trace="zz", verdicts=[violated("key-reused"), *held("single-effect")]))
    text = shown(*runs)
    assert "single-effect  key-reused" in text
    assert text.count("$ stormproof run") == MOST_LISTED
    assert f"… and {41 - MOST_LISTED} more (single-effect duplicate-key × {41 - MOST_LISTED})" in text


def test_hostile_text_cannot_touch_the_terminal() -> None:
    """No escape sequence, no rich markup, no forged line from a trace."""
    message = "\x1b[2J[bold]gone[/bold]\nforged line\x1b]0;title\x07\u202e"
    run = result(trace="[red]x\x1b[31m", verdicts=[violated("\x1b[1mr", message=message)], agent="a\x1b[0m")
    text = shown(run)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]gone[/bold] forged line" in text
    assert "\nforged" not in text


def test_a_terminal_gets_colour_and_a_file_none() -> None:
    """Plain where it is piped, and no sentence broken."""
    terminal = Terminal()
    show_summary(summarise(Results(Path("out"), (result(),))), file=terminal)
    assert "\x1b[" in terminal.getvalue()
    assert "\x1b[" not in shown(result())
    long = " ".join(["much"] * 80)
    assert f"\n  {long}\n" in shown(result(verdicts=[violated(message=long), *held("single-effect")]))


def test_counts_are_broken_between_and_never_within(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a narrow terminal a count stays with its noun, a time with its unit."""
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    show_summary(summarise(Results(Path("out"), (result(),)), wall_s=312), file=terminal)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()
    assert lines[1:3] == [
        "  agent reference · 1 run · 1 scenario · 1 trace",
        "  1 of 1 fault fired · 0 ordinary failures",
    ]
    assert lines[3] == "  5 min 12 s"


def test_the_last_line_says_where_the_report_is() -> None:
    """Also in a quiet session, as soon as something is to be looked up."""
    assert shown(result(), directory=Path("out")).endswith("\n\nreport: out/report.html\n")
    assert "report:" not in shown(result(), directory=Path("out"), quiet=True)
    bad = result(verdicts=[violated(), *held("single-effect")])
    assert shown(bad, directory=Path("out"), quiet=True).endswith("\nreport: out/report.html\n")


def test_words_are_explained_where_they_occur_and_only_there() -> None:
    """A legend line per word; the reasons of unobservable verdicts, each with its runs."""
    odd = Ruling(invariant="budgets", verdict="unobservable", message="tokens are limited, and none is recorded")
    text = shown(
        result("r1", verdicts=[*held("budgets"), odd], ordinary_failure=True, activations={"retry": acts(5, 0)}),
        result("r2", verdicts=[*held("budgets"), odd]),
    )
    for word in ("ordinary failure", "unobservable", "silent"):
        assert text.count(f"{word} = ") == 1
    for word in ("vacuous", "below-floor", "excessive", "no-opportunity"):
        assert f"{word} = " not in text
    assert "unobservable: budgets, 2 runs: tokens are limited, and none is recorded" in text
    assert " = " not in shown(result())


def test_what_went_wrong_comes_before_the_tables() -> None:
    """Errors of the harness, violations, doubts; where nothing was judged there are no tables."""
    error = result("r2", trace="b", harness_error="no such command", verdicts=[])
    text = shown(result("r1", verdicts=[violated(), *held("single-effect")], undecided="odd"), error)
    places = [text.index(f"\n{title} ─") for title in ("Harness errors", "Violations", "Undecided", "Invariants")]
    assert places == sorted(places)
    alone = shown(error)
    assert "no such command" in alone
    assert "Invariants" not in alone
    assert "Mechanisms" not in alone


def test_a_command_is_never_broken_into_lines() -> None:
    """It is there to be copied, however long it is."""
    replay = "stormproof run --scenario 204 " + " ".join(f"--traces /a/long/path/{n}" for n in range(20))
    text = shown(result(replay=replay, verdicts=[violated(), *held("single-effect")]))
    assert f"  $ {replay}\n" in text
    assert not [line for line in text.splitlines() if line != line.rstrip()]


def test_progress_off_a_terminal_is_a_line_now_and_then() -> None:
    """Runs done, what went wrong, time left; the last line always."""
    file = StringIO()
    with Progress(total=3, file=file) as progress:
        progress.advance(result())
        progress.advance(result(verdicts=[violated()]))
        assert progress.line().startswith("2/3 runs, 1 bad, about ")
        assert file.getvalue() == ""
        progress.advance(result())
    assert file.getvalue().startswith("3/3 runs, 1 bad, ")
    assert file.getvalue().count("\n") == 1


def test_progress_on_a_terminal_is_a_bar() -> None:
    """It draws and cleans up after itself."""
    file = Terminal()
    with Progress(total=2, file=file) as progress:
        progress.advance(result(harness_error="x"))
        progress.advance()
    assert "2/2" in file.getvalue()


def test_quiet_progress_is_silent() -> None:
    """Nothing at all, on a terminal or not."""
    for file in (StringIO(), Terminal()):
        with Progress(total=1, quiet=True, file=file) as progress:
            progress.advance(result())
        assert file.getvalue() == ""
