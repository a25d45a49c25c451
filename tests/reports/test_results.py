"""The result directory: what is written is read again, also after a writer was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.results import VERDICTS, ResultsError, read_results, scenario_key
from tests.reports.builders import directory, double_charge, result


def test_what_is_appended_is_read_again(tmp_path: Path) -> None:
    """A result survives the round trip with all its fields."""
    run, history = double_charge()
    results = read_results(directory(tmp_path, run, result("r2"), history=history))
    assert results.runs == (run, result("r2"))
    assert not results.torn


def test_a_torn_last_line_is_set_aside(tmp_path: Path) -> None:
    """A killed writer costs its own line only."""
    directory(tmp_path, result("r1"))
    path = tmp_path / VERDICTS
    path.write_bytes(path.read_bytes() + b'{"run_id": "r2", "num')
    torn = read_results(tmp_path)
    assert [run.run_id for run in torn.runs] == ["r1"]
    assert torn.torn


def test_a_whole_last_line_without_its_end_counts(tmp_path: Path) -> None:
    """A line that only lacks the newline is a result."""
    directory(tmp_path, result("r1"))
    path = tmp_path / VERDICTS
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    whole = read_results(tmp_path)
    assert [run.run_id for run in whole.runs] == ["r1"]
    assert not whole.torn


def test_of_two_results_of_a_run_the_last_counts(tmp_path: Path) -> None:
    """A run that was repeated after a resume is counted once."""
    results = read_results(directory(tmp_path, result("r1"), result("r2"), result("r1", status="failed")))
    assert [(run.run_id, run.status) for run in results.runs] == [("r2", "succeeded"), ("r1", "failed")]


@pytest.mark.parametrize("line", ["[]", '{"x":' + "[" * 90_000 + "]" * 90_000 + "}"], ids=["list", "deep"])
def test_a_bad_line_names_file_and_line(tmp_path: Path, line: str) -> None:
    """A finished line that is no result, or is nested beyond reading, is bad input, with its place."""
    directory(tmp_path, result("r1"))
    with (tmp_path / VERDICTS).open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(ResultsError, match=r"verdicts\.jsonl:2: not a run result"):
        read_results(tmp_path)


def test_a_missing_directory_says_what_would_be_right(tmp_path: Path) -> None:
    """No results at all is bad input, not an empty session."""
    with pytest.raises(ResultsError, match="name the --out directory"):
        read_results(tmp_path / "nowhere")


def test_scenarios_sort_by_number() -> None:
    """Combined scenarios stand behind the first of their numbers."""
    numbers: list[int | str] = [301, "204+401", 204, 99]
    assert sorted(numbers, key=scenario_key) == [99, 204, "204+401", 301]
