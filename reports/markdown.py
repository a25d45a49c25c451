"""`summary.md`: the same facts in short, for a pull request or a job's summary page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reports.glance import (
    failure_legend,
    finding_groups,
    mechanism_legend,
    rated,
    status_label,
    untold_sentences,
    verdict_legend,
)
from reports.rates import percent
from reports.results import VERDICT_WORDS
from reports.summary import HARNESS_ERROR, HELD, UNDECIDED, VIOLATED, Summary, doubt_sentences
from reports.text import counted, duration, lines_label, number, plain, scenario_label, spans

MOST_LISTED = 20
_MARKS = {HELD: "✅", VIOLATED: "❌", HARNESS_ERROR: "💥", UNDECIDED: "❔"}
_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\`*_{}[]<>#|~!"} | {"&": "&amp;"})


def summary_markdown(summary: Summary) -> str:
    """The whole file."""
    faults = summary.faults
    parts = [
        f"# {_MARKS.get(summary.exit_code, '❌')} {escaped(summary.headline())}",
        "",
        " · ".join(
            part
            for part in (
                f"agent **{escaped(summary.agent)}**" if summary.agent else "",
                counted(summary.runs, "run"),
                counted(summary.scenarios, "scenario"),
                counted(summary.traces, "trace"),
                f"{number(faults.fired)} of {counted(faults.armed, 'fault')} fired",
                counted(summary.ordinary_failures, "ordinary failure"),
                duration(summary.wall_s),
                f"seed {summary.seed}" if summary.seed is not None else "",
                f"exit code {summary.exit_code}",
            )
            if part
        ),
    ]
    parts += _legend(failure_legend(summary))
    parts += _section("Harness errors", [escaped(error.sentence()) for error in summary.errors])
    if summary.violations:
        parts += ["", "## Violations", ""]
        for violation in summary.violations[:MOST_LISTED]:
            reason = f" `{code(violation.reason)}`" if violation.reason else ""
            parts += [
                f"- **{escaped(violation.invariant)}**{reason}: {prose(violation.message)}  ",
                f"  scenario {escaped(scenario_label(violation.scenario))} on {escaped(violation.trace)},"
                f" {lines_label(violation.evidence)} of `history.jsonl`  ",
                f"  `{code(violation.replay)}`",
            ]
        parts += _more(summary.violations)
    parts += _section("Undecided", [escaped(text) for text in doubt_sentences(summary.undecided)])
    parts += ["", "## Invariants", "", *_table(("invariant", *VERDICT_WORDS), _verdict_rows(summary))]
    parts += _legend(verdict_legend(summary))
    untold = [f"unobservable: {prose(text)}" for text in untold_sentences(summary)]
    parts += ["", *_list(untold)] if untold else []
    parts += ["", "## Mechanisms", "", *_mechanisms(summary), *_legend(mechanism_legend(summary))]
    parts += _section("Warnings", [escaped(text) for text in doubt_sentences(summary.warnings)])
    parts += _section("Findings", _findings(summary))
    return "\n".join(parts) + "\n"


def _section(title: str, items: Sequence[str]) -> list[str]:
    return ["", f"## {title}", "", *_list(items)] if items else []


def _list(items: Sequence[str]) -> list[str]:
    return [*(f"- {item}" for item in items[:MOST_LISTED]), *_more(items)]


def _legend(words: Iterable[tuple[str, str]]) -> list[str]:
    """What the words above mean, one small line each."""
    lines = [f"<sub>{word}: {meaning}</sub>" for word, meaning in words]
    return ["", "  \n".join(lines)] if lines else []


def escaped(value: object) -> str:
    """Text that Markdown shows as it is, whatever a trace put into it."""
    return plain(value).translate(_SPECIAL)


def code(value: object) -> str:
    """Text for inside a code span: it cannot end the span."""
    return plain(value).replace("`", "'")


def prose(value: object) -> str:
    """A sentence with its back-ticked names as code spans, the rest as it is."""
    return "".join(f"`{text}`" if is_code else escaped_part(text) for is_code, text in spans(value))


def escaped_part(text: str) -> str:
    """A part of a sentence, its blanks at the edges kept."""
    return text.translate(_SPECIAL)


def _verdict_rows(summary: Summary) -> Iterable[Sequence[str]]:
    for invariant, words in summary.verdicts.items():
        yield (escaped(invariant), *(str(words[word]) for word in VERDICT_WORDS))


def _mechanisms(summary: Summary) -> list[str]:
    """Floors are per scenario: they stand with the status, not against the totals."""
    shown = rated(summary)
    rows = [
        (
            f"`{code(name)}`",
            f"{rate.activations} / {rate.opportunities}",
            percent(rate.rate),
            f"{percent(rate.low)} – {percent(rate.high)}" if rate.opportunities else "–",
            escaped(status_label(summary, name)),
        )
        for name, rate in shown.items()
    ]
    lines = _table(("mechanism", "acted", "rate", "95 % interval", "status"), rows) if rows else []
    without = len(summary.activations) - len(shown)
    return [*lines, *(["", f"No opportunity for {counted(without, 'other')}."] if without else [])]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    rule = "|".join("---" if at == 0 else "---:" for at in range(len(head)))
    return [f"| {' | '.join(head)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)]


def _findings(summary: Summary) -> list[str]:
    return [
        f"`{code(group.code)}`: {escaped(group.sentence())}. {escaped(group.advice)}"
        for group in finding_groups(summary.findings)
    ]


def _more(items: Sequence[object]) -> list[str]:
    return [f"- … and {len(items) - MOST_LISTED} more"] if len(items) > MOST_LISTED else []
