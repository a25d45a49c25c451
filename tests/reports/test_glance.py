"""What is the same is said once, and every word that needs it is explained."""

from __future__ import annotations

from pathlib import Path

from reports.findings import FINDERS
from reports.glance import ABOUT, MEANINGS, finding_groups, status_label
from reports.rates import STATUSES
from reports.results import VERDICT_WORDS, Bound, Finding, Results, RunResult
from reports.summary import Summary, summarise
from tests.reports.builders import acts, result


def summary(*runs: RunResult) -> Summary:
    """The summary of these runs."""
    return summarise(Results(Path("out"), runs))


def keyless(tool: str, times: int) -> Finding:
    """A finding as the finder makes it."""
    fact = f"The tool {tool} was called without an idempotency key ({times} times)."
    return Finding(code="keyless-write", fact=fact, advice="Derive one.", tool=tool, times=times)


def test_findings_are_grouped_by_code_with_tools_and_counts() -> None:
    """One sentence for a code: every tool with its calls, most first, and the runs; no fact of an arbitrary one."""
    (group,) = finding_groups(
        summary(
            result("r1", findings=[keyless("charge", 2), keyless("mail", 1)]),
            result("r2", findings=[keyless("mail", 3)]),
        ).findings
    )
    assert group.sentence() == (
        "written without the idempotency key that the tool takes: mail × 4, charge × 2, in 2 runs"
    )
    assert (group.times, group.advice) == (6, "Derive one.")


def test_a_single_finding_keeps_its_fact() -> None:
    """Where there is one only, nothing is gained by less."""
    found = [Finding(code="egress", fact="The agent tried to reach a.example (twice).", advice="x", times=2)]
    (group,) = finding_groups(summary(result(findings=found)).findings)
    assert group.sentence() == "The agent tried to reach a.example (twice), in 1 run"


def test_many_tools_are_cut_and_an_unknown_code_tells_its_first_fact() -> None:
    """Six tools are named; a code without a common sentence keeps what it has."""
    many = [keyless(f"tool_{n}", 1) for n in range(9)]
    other = [Finding(code="odd", fact=f"Odd {n}.", advice="x") for n in range(2)]
    first, second = finding_groups(summary(result(findings=[*many, *other])).findings)
    assert first.sentence().endswith("tool_5 × 1, 3 more tools, in 1 run")
    assert second.sentence() == "Odd 0, 2 times in 1 run"


def test_a_missed_floor_names_its_scenarios() -> None:
    """The total may look fine while one scenario is under its floor, and the other way round."""
    found = summary(
        result("r1", number=108, activations={"retry": acts(2, 1)}, expect={"retry": Bound(min=1.0)}),
        result("r2", number=109, activations={"retry": acts(40, 40)}, expect={"retry": Bound(min=1.0)}),
        result("r3", number=110, activations={"dedup": acts(40, 1)}),
    )
    assert status_label(found, "retry") == "below-floor in 108"
    assert status_label(found, "dedup") == "ok"


def test_every_word_that_can_occur_is_explained() -> None:
    """Verdicts and statuses that do not speak for themselves, and every code of the finders."""
    assert set(VERDICT_WORDS) - {"held", "violated"} <= set(MEANINGS)
    assert set(STATUSES) - {"ok"} <= set(MEANINGS)
    assert {finder.__name__.replace("_", "-") for finder in FINDERS} <= set(ABOUT)
