"""Everything that is derived from a result directory, written there at one stroke each.

Pure functions of `history.jsonl` and `verdicts.jsonl`: rendering again gives the same files, and a reader never
sees half of one.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec

from reports.results import HISTORY, Results, read_results
from reports.summary import NOT_JUDGED, Summary, summarise

SUMMARY, ACTIVATIONS, JUNIT = "summary.json", "activations.csv", "junit.xml"
MARKDOWN, HTML = "summary.md", "report.html"
WRITTEN: tuple[str, ...] = (SUMMARY, ACTIVATIONS, JUNIT, MARKDOWN, HTML)


def render_all(
    directory: Path,
    *,
    seed: int | None = None,
    agent: str | None = None,
    wall_s: float | None = None,
    undecided: str | None = None,
    error: str | None = None,
) -> Summary:
    """Writes all derived files of a result directory and returns its summary.

    What no run knows is handed in by the session and kept in `summary.json`, from where rendering again takes it:
    the seed, the agent's name, why the whole session is `undecided`, and the `error` of the harness that ended it.
    Raises `ResultsError` where the directory cannot be read, `OSError` where it cannot be written.
    """
    directory = Path(directory)
    results = read_results(directory)
    before = _before(directory)
    if before is not None and all(told is None for told in (seed, agent, wall_s, undecided, error)):
        seed, agent, wall_s = before.seed, before.agent, before.wall_s
        undecided = _session_reason(before)
        error = next((error.message for error in before.errors if error.run_id is None), None)
    summary = summarise(results, seed=seed, agent=agent, wall_s=wall_s, undecided_because=undecided, error=error)
    for name, data in rendered(results, summary).items():
        write_whole(directory / name, data)
    return summary


def rendered(results: Results, summary: Summary) -> dict[str, bytes]:
    """The derived files by name, `summary.json` last: once it is there, all are."""
    from reports.evidence import read_excerpts
    from reports.html import report_html, runs_to_show
    from reports.junit import junit_xml
    from reports.markdown import summary_markdown
    from reports.tables import activations_csv

    excerpts = read_excerpts(results.directory / HISTORY, runs_to_show(results, summary))
    return {
        ACTIVATIONS: activations_csv(results.runs).encode(),
        JUNIT: junit_xml(results, summary),
        MARKDOWN: summary_markdown(summary).encode(),
        HTML: report_html(results, summary, excerpts=excerpts).encode(),
        SUMMARY: msgspec.json.format(summary.to_json(), indent=2) + b"\n",
    }


def write_whole(path: Path, data: bytes) -> None:
    """Puts a file in its place at one stroke: a reader sees the old one or the new one."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _before(directory: Path) -> Summary | None:
    try:
        return msgspec.json.decode((directory / SUMMARY).read_bytes(), type=Summary)
    except (OSError, msgspec.MsgspecError):
        return None


def _session_reason(before: Summary) -> str | None:
    """Why the session as a whole was undecided, apart from what the runs themselves say."""
    own = [doubt.why for doubt in before.undecided if doubt.what == "session"]
    return next((why for why in own if why != NOT_JUDGED), None)
