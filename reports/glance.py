"""What is the same said once, and what a word means where it stands: shared by console, Markdown and HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reports.rates import SILENT_FROM, Rate
from reports.summary import RunFinding, Summary
from reports.text import counted, number, scenario_label

MEANINGS: Mapping[str, str] = {
    "ordinary failure": "the agent ended without success and broke no promise; it decides nothing",
    "vacuous": "nothing in the run could have broken it, so it proves nothing",
    "unobservable": "the history does not tell whether it held; it counts as neither held nor violated",
    "silent": f"at least {SILENT_FROM} opportunities and it never acted",
    "below-floor": "it acted less often than a scenario asks for (its floor), so that scenario is no test of it",
    "excessive": "it acted more often than a scenario allows, or a stop ended nearly every run",
    "no-opportunity": "a scenario asks for it, and nothing in its runs called for it",
}
"""Words of the reports that are not plain English, in the order in which a reader meets them."""

ABOUT: Mapping[str, str] = {
    "retry-after-ignored": "tried again before the time that the server had named",
    "retry-amplification": "one call was sent far more often than it was asked for",
    "keyless-write": "written without the idempotency key that the tool takes",
    "status-dishonest": "the run says it succeeded, but a planned write never took effect",
    "service-duplicate": "the service acted again on a repeated delivery, which the fault made",
    "phantom-claim": "the agent holds a write for done of which the service knows nothing",
    "two-effects-in-one-step": "one step holds several effects",
    "deadline-untraceable": "the run has a time limit that none of its calls carries",
    "unstructured-tool-error": "a tool failed without saying what kind of failure it was",
    "egress": "the agent tried to reach a host that nobody declared",
    "orphan-process": "a process was alive after its run had ended",
    "unreadable-events": "the agent wrote event lines that cannot be used",
    "harness-timeout": "the run was ended from outside because it did not end itself",
}
"""What each finding is about, whatever tool or run shows it."""

MOST_TOOLS = 6
MOST_SCENARIOS = 5


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """All findings of one code: how often and in how many runs, by tool where they are about one."""

    code: str
    advice: str
    times: int
    run_ids: tuple[str, ...]
    tools: Mapping[str, int]
    facts: tuple[str, ...]

    def sentence(self) -> str:
        """What was seen: the fact itself where there is one only, else what all have in common, with tools."""
        runs = f"in {counted(len(self.run_ids), 'run')}"
        if len(self.facts) == 1 and len(self.run_ids) == 1:
            return f"{self.facts[0].rstrip('.')}, {runs}"
        about = ABOUT.get(self.code, self.facts[0].rstrip("."))
        if not self.tools:
            often = "" if self.times == len(self.run_ids) else f"{counted(self.times, 'time')} "
            return f"{about}, {often}{runs}"
        named = [f"{tool} × {number(times)}" for tool, times in list(self.tools.items())[:MOST_TOOLS]]
        rest = [f"{counted(len(self.tools) - MOST_TOOLS, 'more tool')}"] if len(self.tools) > MOST_TOOLS else []
        return f"{about}: {', '.join([*named, *rest])}, {runs}"


def finding_groups(findings: Iterable[RunFinding]) -> list[FindingGroup]:
    """Findings by code, in the order in which the codes came up; tools by how often."""
    by_code: dict[str, list[RunFinding]] = {}
    for finding in findings:
        by_code.setdefault(finding.code, []).append(finding)
    groups = []
    for code, found in by_code.items():
        tools: Counter[str] = Counter()
        for finding in found:
            if finding.tool:
                tools[finding.tool] += finding.times
        groups.append(
            FindingGroup(
                code=code,
                advice=found[0].advice,
                times=sum(finding.times for finding in found),
                run_ids=tuple(dict.fromkeys(finding.run_id for finding in found)),
                tools=dict(tools.most_common()),
                facts=tuple(dict.fromkeys(finding.fact for finding in found)),
            )
        )
    return groups


def rated(summary: Summary) -> dict[str, Rate]:
    """The mechanisms that had an opportunity, or should have had one."""
    return {name: rate for name, rate in summary.activations.items() if rate.opportunities or rate.floor is not None}


def status_label(summary: Summary, mechanism: str) -> str:
    """A mechanism's status with the scenarios that it is owed to: floors are per scenario, the rate is not."""
    rate = summary.activations[mechanism]
    problems = {"below-floor", "no-opportunity"} if rate.status == "below-floor" else {rate.status}
    missed = [
        scenario_label(doubt.scenario)
        for doubt in (*summary.undecided, *summary.warnings)
        if doubt.mechanism == mechanism and doubt.problem in problems and doubt.scenario is not None
    ]
    if not missed:
        return rate.status
    rest = len(missed) - MOST_SCENARIOS
    return f"{rate.status} in {', '.join(missed[:MOST_SCENARIOS])}{f' and {rest} more' if rest > 0 else ''}"


def verdict_legend(summary: Summary) -> list[tuple[str, str]]:
    """The words of the table of invariants that occur and need explaining, each with its meaning."""
    seen = {word for words in summary.verdicts.values() for word, runs in words.items() if runs}
    return _explained(seen & {"vacuous", "unobservable"})


def mechanism_legend(summary: Summary) -> list[tuple[str, str]]:
    """The same for the table of mechanisms."""
    return _explained({rate.status for rate in rated(summary).values()})


def failure_legend(summary: Summary) -> list[tuple[str, str]]:
    """The same for the line of counts."""
    return _explained({"ordinary failure"} if summary.ordinary_failures else set())


def untold_sentences(summary: Summary) -> list[str]:
    """Why verdicts are unobservable, in short: `budgets, 9 runs: the harness's own clock ran late`."""
    return [f"{reason.invariant}, {counted(reason.runs, 'run')}: {reason.why}" for reason in summary.unobservable]


def _explained(words: set[str]) -> list[tuple[str, str]]:
    return [(word, meaning) for word, meaning in MEANINGS.items() if word in words]
