"""activations.csv: finer than the summary, and adding up to it."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

import pytest

from reports.rates import wilson
from reports.results import Activation, Results
from reports.summary import summarise
from reports.tables import COLUMNS, activations_csv
from tests.reports.builders import acts, result

RUNS = (
    result("r1", activations={"retry": acts(2, 1)}, tenant="a", task_type="order"),
    result("r2", activations={"retry": acts(3, 3)}, tenant="a", task_type="order"),
    result("r3", activations={"retry": acts(1, 0, "lookup")}, tenant="b"),
    result("r4", number=301, activations={"resume": Activation(opportunities=2, activations=2)}),
    result("r5", activations={"retry": acts(9, 9)}, harness_error="x"),
    result("r6", activations={"dedup": acts(0, 0)}),
)


def rows() -> list[dict[str, str]]:
    """The CSV, read again."""
    return list(csv.DictReader(StringIO(activations_csv(RUNS))))


def test_rows_are_by_mechanism_scenario_tool_tenant_and_task_type() -> None:
    """Equal places are added, different ones stand apart."""
    found = {(r["mechanism"], r["scenario"], r["tool"], r["tenant"], r["task_type"]): r for r in rows()}
    assert set(found) == {
        ("resume", "301", "", "default", ""),
        ("retry", "204", "charge", "a", "order"),
        ("retry", "204", "lookup", "b", ""),
    }
    retry = found[("retry", "204", "charge", "a", "order")]
    assert (retry["opportunities"], retry["activations"], retry["rate"]) == ("5", "4", "0.8")
    assert (float(retry["low"]), float(retry["high"])) == pytest.approx(wilson(4, 5), abs=1e-5)


def test_rows_add_up_to_the_summary() -> None:
    """No opportunity is lost, and none of a run in which the harness failed is counted."""
    summary = summarise(Results(Path("out"), RUNS))
    for name in ("retry", "resume", "dedup"):
        total = sum(int(row["opportunities"]) for row in rows() if row["mechanism"] == name)
        assert total == summary.activations[name].opportunities


def test_nothing_is_a_table_with_a_head() -> None:
    """A reader finds its columns in any case."""
    assert activations_csv([]) == ",".join(COLUMNS) + "\n"
