"""What a violation is shown by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from reports.evidence import MOST_ROWS, RawLine, compare_evidence, read_excerpts, timeline
from reports.results import HISTORY
from tests.reports.builders import Story, double_charge, result


def raw(story: Story) -> list[RawLine]:
    """A story's lines as they stand in a file."""
    return [(line, msgspec.to_builtins(record)) for line, record in story.lines()]


def test_two_effects_stand_side_by_side_with_the_telling_difference_first() -> None:
    """Keys differ and are marked; ids and times differ too, but behind; the arguments come from the calls."""
    run, history = double_charge()
    lines: list[RawLine] = [(n, msgspec.to_builtins(record)) for n, record in enumerate(history, start=1)]
    found = compare_evidence("duplicate-intent", run.verdicts[0].evidence, lines, run_id="r1")
    assert found is not None
    assert found.title == "The two effects that should have been one"
    assert next(field.name for field in found.fields if field.differs) == "idempotency_key"
    fields = {field.name: field for field in found.fields}
    assert fields["idempotency_key"].values == ("k1", "k2")
    assert fields["t"].natural
    assert fields["t"].values[0] == f"{history[5].t - history[0].t:.3f} s after the run's start"
    assert fields["args.order_id"].values == ("o-7", "o-7")
    assert not fields["args.order_id"].differs
    assert fields["answered"].values == ("error", "ok")


def test_evidence_that_is_not_in_the_history_is_no_comparison() -> None:
    """A damaged or foreign history costs the comparison, not the report."""
    assert compare_evidence("steps", [99, "other.jsonl:3"], raw(Story().done()), run_id="r1") is None
    assert timeline("r1", [99], []) == []


def test_a_time_line_marks_evidence_and_faults() -> None:
    """Every record of a short run, seconds since its begin."""
    story = Story().call("charge", key="k", effect="e1")
    story.add("fault_injected", source="harness", kind="reset").done()
    rows = timeline("r1", [3], raw(story))
    assert [row.line for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row.line for row in rows if row.evidence] == [3]
    assert [row.line for row in rows if row.fault] == [5]
    assert (rows[0].at, rows[1].at) == ("0.000", "0.100")


def test_a_long_run_is_shown_around_its_evidence() -> None:
    """Begin, end and what stands around the evidence; what is left out is counted with its lines."""
    story = Story()
    for _ in range(400):
        story.call("lookup")
    rows = timeline("r1", [500], raw(story.done()))
    assert len([row for row in rows if row.line]) <= MOST_ROWS
    shown = [row.line for row in rows if row.line]
    assert shown[0] == 1
    assert shown[-1] == len(story.records)
    assert set(range(488, 513)) <= set(shown)
    gaps = [row.text for row in rows if not row.line]
    assert gaps[0] == "486 records left out (lines 2 to 487)"


def test_evidence_of_another_run_is_shown_with_its_run() -> None:
    """A key collision across runs needs both records."""
    other = Story("r2").call("charge", key="k", effect="e1")
    mine = Story("r1").call("charge", key="k", effect="e2").done()
    lines: list[RawLine] = [
        (n, msgspec.to_builtins(record)) for n, record in enumerate([*other.records, *mine.records], start=1)
    ]
    rows = timeline("r1", [3, 7], lines)
    assert [row.line for row in rows] == [3, 5, 6, 7, 8, 9]
    assert rows[0].text == "charge applied e1 (run r2)"


def test_excerpts_are_read_in_one_pass_and_survive_damage(tmp_path: Path) -> None:
    """Overlapping blocks, blank and broken lines, a missing file."""
    path = tmp_path / HISTORY
    path.write_bytes(b'{"run_id":"a"}\n\nnot json\n[1]\n{"run_id":"b"}\n{"run_id":"c"}\n')
    runs = [result("a", lines=(1, 5)), result("b", lines=(5, 5)), result("n")]
    found = read_excerpts(path, runs)
    assert [line for line, _ in found["a"]] == [1, 5]
    assert [line for line, _ in found["b"]] == [5]
    assert "n" not in found
    assert read_excerpts(tmp_path / "none", runs) == {"a": [], "b": []}


def test_odd_evidence_records_are_shown_as_they_are() -> None:
    """Nested, long and untyped fields become text; nothing raises."""
    odd: dict[str, Any] = {
        "type": "effect",
        "run_id": "r1",
        "wire": "w1",
        "args": {"a": {"b": [1, "\x1b[1m"]}},
        "x": "y" * 999,
    }
    call: dict[str, Any] = {"type": "tool_call_started", "run_id": "r1", "wire": "w1", "args": None, "t": "soon"}
    found = compare_evidence(None, [1, 2], [(1, odd), (2, call)], run_id="r1")
    assert found is not None
    fields = {field.name: field.values for field in found.fields}
    assert "\x1b" not in fields["args.a.b"][0]
    assert len(fields["x"][0]) <= 160
    assert timeline("r1", [2], [(1, odd), (2, call)])[1].at == ""
