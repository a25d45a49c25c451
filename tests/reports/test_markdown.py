"""summary.md: the same facts in short."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reports.markdown import summary_markdown
from reports.results import Bound, FaultUse, Results, Ruling, RunResult
from reports.summary import summarise
from tests.reports.builders import acts, double_charge, result, violated


def written(*runs: RunResult, **more: Any) -> str:
    """The file for these runs."""
    return summary_markdown(summarise(Results(Path("out"), runs), **more))


def test_it_says_what_the_summary_says() -> None:
    """Verdict, exit code, violation with command, both tables apart, findings."""
    run, _ = double_charge()
    text = written(run, seed=7)
    assert text.startswith("# ❌ 1 violation in 1 of 1 run\n")
    assert "exit code 1" in text
    assert "seed 7" in text
    assert "- **single-effect** `duplicate-intent`: charge was executed twice.  \n" in text
    assert "  `stormproof run --scenario 204 --trace order-small`" in text
    assert "| single-effect | 0 | 1 | 0 | 0 |" in text
    assert "| `retry` | 1 / 1 | 100 % | 21 % – 100 % | ok |" in text
    assert "- `keyless-write`: A fact, in 1 run. An advice." in text
    assert text.index("## Violations") < text.index("## Invariants") < text.index("## Mechanisms")


def test_what_is_undecided_is_listed() -> None:
    """Misfires and floors, and warnings apart from them."""
    text = written(
        result("r1", faults=[FaultUse(kind="kill", layer="crash", site="charge#1/1")]),
        result("r2", trace="b", expect={"retry": Bound(min=1.0, rare=True)}, activations={"retry": acts(2, 1)}),
        result("r3", trace="c", harness_error="the proxy fell", verdicts=[]),
    )
    assert "## Undecided\n\n- 204 · order-small: the fault kill at charge\\#1/1 was armed and never fired" in text
    assert "## Warnings\n\n- 204: retry acted at 1 of 2" in text
    assert "## Harness errors\n\n- 204 · c: the proxy fell" in text
    assert text.index("## Harness errors") < text.index("## Undecided") < text.index("## Invariants")
    assert "| `retry` | 1 / 2 | 50 % | 9 % – 91 % | below-floor in 204 |" in text
    assert "<sub>below-floor: it acted less often" in text
    assert "No opportunity for 24 others." in text


def test_why_a_verdict_could_not_be_told_is_said_with_the_word() -> None:
    """The meaning of `unobservable`, and the reasons with their runs."""
    odd = Ruling(invariant="budgets", verdict="unobservable", message="<b>no</b> tokens")
    text = written(result("r1", verdicts=[odd]), result("r2", verdicts=[odd]))
    assert "<sub>unobservable: the history does not tell" in text
    assert "- unobservable: budgets, 2 runs: \\<b\\>no\\</b\\> tokens" in text
    assert "vacuous:" not in text


def test_hostile_text_is_shown_and_not_obeyed() -> None:
    """No HTML, no link, no table cell, no code span from a trace."""
    message = "<script>alert(1)</script> [x](javascript:1) | a | ` ![i](http://e) \x1b[1m"
    run = result(trace="a|b`c", verdicts=[violated("r`s", message=message)], replay="stormproof `rm`")
    text = written(run)
    assert "<script>" not in text
    assert "\\<script\\>" in text
    assert "\\[x\\](javascript" in text
    assert "`stormproof 'rm'`" in text
    assert "a\\|b\\`c" in text
    named = written(result(verdicts=[violated(message="`charge` ran <b>twice</b>, `<i>`")]))
    assert "`charge` ran \\<b\\>twice\\</b\\>, `<i>`" in named
    assert "\x1b" not in text


def test_long_lists_are_cut_and_counted() -> None:
    """Twenty violations are written out."""
    text = written(*(result(f"r{n}", trace=f"t{n}", verdicts=[violated()]) for n in range(25)))
    assert "- … and 5 more" in text
    assert text.count("`stormproof run") == 20
