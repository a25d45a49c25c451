"""`summary.md`: the same facts in short, for a pull request or a job's summary page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from reports.rates import percent
from reports.results import VERDICT_WORDS
from reports.summary import HARNESS_ERROR, HELD, UNDECIDED, VIOLATED, Summary, doubt_sentences
from reports.text import counted, duration, lines_label, plain, scenario_label, spans

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
                f"{faults.fired} of {counted(faults.armed, 'fault')} fired",
                counted(summary.ordinary_failures, "ordinary failure"),
                duration(summary.wall_s),
                f"seed {summary.seed}" if summary.seed is not None else "",
                f"exit code {summary.exit_code}",
            )
            if part
        ),
    ]
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
    parts += ["", "## Invariants", "", *_table(("invariant", *VERDICT_WORDS), _verdict_rows(summary))]
    parts += ["", "## Mechanisms", "", *_mechanisms(summary)]
    for title, items in (
        (
            "Harness errors",
            [escaped(error.sentence()) for error in summary.errors],
        ),
        ("Undecided", [escaped(text) for text in doubt_sentences(summary.undecided)]),
        ("Warnings", [escaped(text) for text in doubt_sentences(summary.warnings)]),
        ("Findings", _findings(summary)),
    ):
        if items:
            parts += ["", f"## {title}", "", *(f"- {item}" for item in items[:MOST_LISTED]), *_more(items)]
    return "\n".join(parts) + "\n"


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
    shown = {name: r for name, r in summary.activations.items() if r.opportunities or r.floor is not None}
    without = [f"`{code(name)}`" for name in summary.activations if name not in shown]
    rows = [
        (
            f"`{code(name)}`",
            f"{rate.activations} / {rate.opportunities}",
            percent(rate.rate),
            f"{percent(rate.low)} – {percent(rate.high)}" if rate.opportunities else "–",
            percent(rate.floor),
            rate.status,
        )
        for name, rate in shown.items()
    ]
    lines = _table(("mechanism", "acted", "rate", "95 % interval", "floor", "status"), rows) if rows else []
    return [*lines, *(["", f"No opportunity: {', '.join(without)}"] if without else [])]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    rule = "|".join("---" if at == 0 else "---:" for at in range(len(head)))
    return [f"| {' | '.join(head)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)]


def _findings(summary: Summary) -> list[str]:
    counts = Counter(finding.code for finding in summary.findings)
    first = {finding.code: finding for finding in reversed(summary.findings)}
    return [
        f"`{code(name)}` ({counted(count, 'time')}): {escaped(first[name].fact)} {escaped(first[name].advice)}"
        for name, count in counts.items()
    ]


def _more(items: Sequence[object]) -> list[str]:
    return [f"- … and {len(items) - MOST_LISTED} more"] if len(items) > MOST_LISTED else []
