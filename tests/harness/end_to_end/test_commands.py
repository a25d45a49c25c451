"""The commands beside `run` and `check`: their answers for people and for machines."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.settings import APPLICATION
from tests.harness.end_to_end.command import STORMPROOF, stormproof

TURN = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": "cancel_reservation", "arguments": '{"reservation_id": "A1"}'},
        }
    ],
}


def trajectory(task: int, result: str) -> dict[str, Any]:
    """A tau-bench run of one write with that result."""
    said = [
        {"role": "system", "content": "You are an airline agent."},
        {"role": "user", "content": "Cancel A1, please; write to jane.roe@gmail.com."},
        TURN,
        {"role": "tool", "tool_call_id": "c1", "name": "cancel_reservation", "content": result},
        {"role": "assistant", "content": "Done."},
    ]
    return {"task_id": task, "trial": 0, "reward": 1.0, "info": {}, "traj": said}


def test_agents(tmp_path: Path) -> None:
    """The reference agent and the gallery, with what each must draw and where."""
    entries = stormproof("agents", "--json", cwd=tmp_path).json
    assert [entry["name"] for entry in entries if entry["group"] == "reference"] == ["reference"]
    bad = [entry for entry in entries if entry["group"] == "known-bad"]
    assert len(bad) >= 7
    assert all(entry["must_draw"] and entry["scenarios"] and entry["summary"] for entry in bad)
    numbers = {row["number"] for row in stormproof("scenarios", "list", "--json", cwd=tmp_path).json}
    assert {number for entry in bad for number in entry["scenarios"]} <= numbers


def test_scenarios(tmp_path: Path) -> None:
    """The catalogue: at least 24 numbered scenarios over all layers, every kind used, all of it valid."""
    rows = stormproof("scenarios", "list", "--json", cwd=tmp_path).json
    assert len(rows) >= 24
    assert all(set(row) == {"number", "version", "title", "layer", "sets", "kinds", "path"} for row in rows)
    assert {number // 100 for number in (row["number"] for row in rows)} >= {1, 2, 3, 4, 5, 6}
    kinds = stormproof("scenarios", "kinds", "--json", cwd=tmp_path).json
    assert {kind["kind"] for kind in kinds} == {kind for row in rows for kind in row["kinds"]}
    assert {kind["layer"] for kind in kinds} == {"network", "tool", "model", "crash"}
    (shown,) = stormproof("scenarios", "show", 501, "--json", cwd=tmp_path).json
    assert [fault["kind"] for fault in shown["faults"]] == ["executed-but-failed", "rate-limited", "kill"]
    assert "order-small" in shown["traces"]
    assert stormproof("scenarios", "validate", cwd=tmp_path).code == 0
    unknown = stormproof("scenarios", "show", 999, cwd=tmp_path)
    assert (unknown.code, "there is no scenario 999" in unknown.err) == (2, True)


def test_import(tmp_path: Path) -> None:
    """Runs are counted, masked and written; `--writing-only` leaves out those that changed nothing."""
    file = tmp_path / "runs.json"
    file.write_text(json.dumps([trajectory(1, '{"status": "cancelled"}'), trajectory(2, "Error: not found")]))
    done = stormproof("import", "tau-bench", file, "--out", "all", "--json", cwd=tmp_path)
    assert done.json | {"notes": []} == {
        "traces": 2,
        "tool_calls": 2,
        "writes": 2,
        "failed_writes": 1,
        "skipped": [],
        "notes": [],
    }
    assert len(list((tmp_path / "all").iterdir())) == 2
    assert all("gmail" not in path.read_text() for path in (tmp_path / "all").iterdir())
    stormproof("import", "tau-bench", file, "--out", "some", "--writing-only", cwd=tmp_path)
    assert [path.name for path in (tmp_path / "some").iterdir()] == ["runs-task001-trial0.jsonl"]
    wrong = stormproof("import", "tau-bnch", file, "--out", "x", cwd=tmp_path)
    assert (wrong.code, "did you mean `tau-bench`?" in wrong.err) == (2, True)
    file.write_text("[1, 2")
    assert stormproof("import", "tau-bench", file, "--out", "x", cwd=tmp_path).code == 2


def test_mask(tmp_path: Path) -> None:
    """A masked copy holds no secret and passes as masked."""
    lines = (APPLICATION / "traces" / "recorded" / "refund.jsonl").read_text().splitlines(keepends=True)
    header = {**json.loads(lines[0]), "masked": False, "request": "I am jane.roe@gmail.com, call +1 415 867 5309"}
    (tmp_path / "t.jsonl").write_text(json.dumps(header) + "\n" + "".join(lines[1:]))
    assert stormproof("mask", "t.jsonl", "--out", "masked", cwd=tmp_path).code == 0
    text = (tmp_path / "masked" / "t.jsonl").read_text()
    assert "gmail" not in text
    assert "867 5309" not in text
    assert json.loads(text.splitlines()[0])["masked"] is True


def test_report_and_compare(tmp_path: Path) -> None:
    """Rendering again changes nothing; comparing tells a new violation, by exit code as well."""
    words = ("run", "--scenario", 104, "--trace", "order-small")
    stormproof(*words, "--out", "good", cwd=tmp_path)
    stormproof(*words, "--agent", "key-per-attempt-header", "--out", "bad", cwd=tmp_path)
    before = {path.name: path.read_bytes() for path in (tmp_path / "bad").iterdir() if path.is_file()}
    again = stormproof("report", "bad", "--html", "page.html", "--junit", "j.xml", "--json", cwd=tmp_path)
    assert again.code == 1
    assert {path.name: path.read_bytes() for path in (tmp_path / "bad").iterdir() if path.is_file()} == before
    assert (tmp_path / "page.html").read_bytes() == before["report.html"]
    assert (tmp_path / "j.xml").read_bytes() == before["junit.xml"]
    worse = stormproof("compare", "good", "bad", "--json", cwd=tmp_path)
    assert worse.code == 1
    assert [(v["invariant"], v["reason"]) for v in worse.json["new_violations"]] == [
        ("single-effect", "duplicate-intent")
    ]
    assert stormproof("compare", "bad", "good", cwd=tmp_path).code == 0
    assert stormproof("compare", "good", "nowhere", cwd=tmp_path).code == 2


def test_doctor(tmp_path: Path) -> None:
    """The doctor says of each thing whether it is there, and how to get it where it is not."""
    told = stormproof("doctor", "--json", cwd=tmp_path).json
    assert told["ok"] is True
    assert all(set(check) == {"name", "ok", "detail", "remedy"} for check in told["checks"])


def test_usage(tmp_path: Path) -> None:
    """Usage mistakes are exit 2 with a sentence; every command has help."""
    for words in (
        ("run", "--nope"),
        ("check",),
        ("scenarios", "lst"),
        ("nope",),
        ("run", "--shard", "5/4"),
        ("run", "--max-time", "soon"),
    ):
        done = stormproof(*words, cwd=tmp_path)
        assert (done.code, bool(done.err.strip())) == (2, True), words
    for command in ("run", "check", "scenarios", "agents", "import", "mask", "report", "compare", "doctor"):
        done = stormproof(command, "--help", cwd=tmp_path)
        assert done.code == 0
        assert "--json" in done.out


@pytest.mark.parametrize(
    "words", [("scenarios", "list", "--json"), ("doctor", "--json"), ("nope",), ("check", "/nope")]
)
def test_output_that_takes_nothing(words: tuple[str, ...]) -> None:
    """A full output is no verdict: never exit code 1, never a traceback."""
    with Path("/dev/full").open("w") as full:
        out = subprocess.run([*STORMPROOF, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        both = subprocess.run([*STORMPROOF, *words], stdout=full, stderr=full, check=False)
    assert out.returncode in (2, 3)
    assert both.returncode == out.returncode
    assert "Traceback" not in out.stderr
