"""All files of a result directory, written whole and in agreement."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from reports import render
from reports.render import WRITTEN, render_all, write_whole
from reports.results import FaultUse, ResultsError, RunResult
from tests.reports.builders import directory, double_charge, held, result, violated


def runs_with(code: int) -> list[RunResult]:
    """Runs that lead to this exit code."""
    runs = {
        0: [result(), result("r2", trace="b", ordinary_failure=True, status="failed")],
        1: [result(), result("r2", trace="b", verdicts=[violated(), *held("single-effect")])],
        3: [result(), result("r2", trace="b", harness_error="the proxy fell", verdicts=[])],
        4: [result(), result("r2", trace="b", faults=[FaultUse(kind="kill", layer="crash", site="charge#1/1")])],
    }
    return runs[code]


@pytest.mark.parametrize(
    ("runs", "error", "code"),
    [*((code, None, code) for code in (0, 1, 3, 4)), (0, "r is full", 3), (1, "r is full", 1)],
)
def test_no_output_disagrees_with_the_exit_code(tmp_path: Path, runs: int, error: str | None, code: int) -> None:
    """JSON, JUnit, HTML and Markdown come to the same conclusion, and tell what ended the session."""
    summary = render_all(directory(tmp_path, *runs_with(runs)), error=error)
    assert summary.exit_code == code
    assert json.loads((tmp_path / "summary.json").read_text())["exit_code"] == code
    root = ElementTree.fromstring((tmp_path / "junit.xml").read_bytes())
    failures, errors = int(root.get("failures", "")), int(root.get("errors", ""))
    assert (failures > 0, errors > 0) == (code == 1, code in {3, 4} or error is not None)
    markdown = (tmp_path / "summary.md").read_text()
    assert f"exit code {code}" in markdown
    page = (tmp_path / "report.html").read_text()
    assert f"<h1>{summary.headline()}</h1>" in page
    assert f"<dt>exit code</dt><dd>{code}</dd>" in page
    assert error is None or (error in page and error in markdown)
    assert {path.name for path in tmp_path.iterdir()} == {*WRITTEN, "history.jsonl", "verdicts.jsonl"}


def test_rendering_again_gives_the_same_files(tmp_path: Path) -> None:
    """A pure function of the directory: what only the session knew is kept in summary.json."""
    run, history = double_charge()
    directory(tmp_path, run, history=history)
    render_all(tmp_path, seed=9, agent="mine", undecided="1 of 2 runs was not played", error="the proxy fell")
    before = {name: (tmp_path / name).read_bytes() for name in WRITTEN}
    again = render_all(tmp_path)
    assert (again.seed, again.agent) == (9, "mine")
    assert again.undecided[-1].why == "1 of 2 runs was not played"
    assert [error.message for error in again.errors] == ["the proxy fell"]
    assert {name: (tmp_path / name).read_bytes() for name in WRITTEN} == before


def test_a_session_that_went_on_forgets_why_it_had_stopped(tmp_path: Path) -> None:
    """After a resume the session says anew what is undecided."""
    directory(tmp_path, result())
    assert render_all(tmp_path, agent="a", undecided="stopped early").exit_code == 4
    assert render_all(tmp_path, agent="a").exit_code == 0


def test_nothing_judged_is_said_once(tmp_path: Path) -> None:
    """An empty session is undecided, also when it is rendered again."""
    directory(tmp_path)
    (tmp_path / "verdicts.jsonl").touch()
    for _ in range(2):
        summary = render_all(tmp_path)
        assert [doubt.why for doubt in summary.undecided] == ["no run at all was judged"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk in the middle costs the new file, not the old one, and leaves nothing lying about."""
    target = tmp_path / "summary.md"
    target.write_text("old")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(target, b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["summary.md"]
    assert target.read_text() == "old"


def test_a_damaged_summary_does_not_stop_the_rendering(tmp_path: Path) -> None:
    """It is derived: it is written again."""
    directory(tmp_path, result())
    (tmp_path / "summary.json").write_text("{")
    assert render_all(tmp_path).exit_code == 0


def test_a_directory_without_results_is_bad_input(tmp_path: Path) -> None:
    """No file is written there."""
    with pytest.raises(ResultsError):
        render_all(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert render.WRITTEN[0] == "summary.json"
