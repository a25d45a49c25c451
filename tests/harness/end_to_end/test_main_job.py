"""The main job from the command line: agents judged by what they do, repeatable, and not lost by a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from agents.catalogue import AGENTS, AgentEntry
from tests.harness.end_to_end.command import STORMPROOF, alive, results, stormproof

FILES = (
    "history.jsonl",
    "verdicts.jsonl",
    "activations.csv",
    "summary.json",
    "junit.xml",
    "summary.md",
    "report.html",
)
BAD = [entry for entry in AGENTS if entry.group == "known-bad"]


def test_a_run_leaves_every_file(tmp_path: Path) -> None:
    """One scenario on one trace: exit 0, every file of the result directory, a summary that says the same."""
    done = stormproof("run", "--scenario", 204, "--trace", "order-small", "--out", "r", "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    assert all((tmp_path / "r" / name).stat().st_size for name in FILES)
    summary = done.json
    assert summary == json.loads((tmp_path / "r" / "summary.json").read_text())
    assert (summary["runs"], summary["exit_code"], summary["faults"]["fired"]) == (1, 0, 1)
    assert summary["verdicts"]["single-effect"]["held"] == 1
    assert not alive(str(tmp_path))


@pytest.mark.parametrize("entry", BAD, ids=[entry.name for entry in BAD])
def test_known_bad_agents_are_caught(entry: AgentEntry, tmp_path: Path) -> None:
    """Each known-bad agent draws all that the catalogue says, and some of it in every scenario named there."""
    scenarios = [word for number in entry.scenarios for word in ("--scenario", number)]
    done = stormproof("run", *scenarios, "--agent", entry.name, "--out", "r", "--json", cwd=tmp_path, limit_s=240)
    wanted = {(must["invariant"], must["reason"]) for must in entry.must_draw}
    violations = done.json["violations"]
    drawn = {number: set[tuple[str, str]]() for number in entry.scenarios}
    for violation in violations:
        drawn[violation["scenario"]].add((violation["invariant"], violation["reason"]))
        assert violation["replay"].startswith(f"stormproof run --scenario {violation['scenario']} --trace ")
        assert f" --agent {entry.name}" in violation["replay"]
        assert violation["evidence"]
        assert violation["message"]
    assert wanted <= set().union(*drawn.values())
    assert {number: reasons for number, reasons in drawn.items() if not reasons & wanted} == {}
    assert done.code == 1
    suites = ET.parse(tmp_path / "r" / "junit.xml").getroot()
    failed = sum(len(case.findall("failure")) for case in suites.iter("testcase"))
    assert failed == len({violation["run_id"] for violation in violations})


def test_a_repeat_has_the_same_digest(tmp_path: Path) -> None:
    """The same scenario, trace and agent give the same history, whatever else goes on at the same time."""
    words = ["run", "--trace", "order-*", *[w for n in (104, 204, 303, 402, 404, 501) for w in ("--scenario", n)]]
    stormproof(*words, "--out", "one", "--parallel", 1, cwd=tmp_path, limit_s=200)
    stormproof(*words, "--out", "two", "--parallel", 6, cwd=tmp_path, limit_s=200)
    first, second = results(tmp_path / "one"), results(tmp_path / "two")
    assert first.keys() == second.keys()
    assert {run: result["digest"] for run, result in first.items()} == {r: x["digest"] for r, x in second.items()}


def test_killed_in_the_middle_and_resumed(tmp_path: Path) -> None:
    """A killed harness leaves nothing alive and loses no finished run; `--resume` ends with every run judged once."""
    words = ["run", "--scenario", 100, "--scenario", 301, "--out", "r", "--parallel", "2"]
    listed = stormproof(*words, "--dry-run", cwd=tmp_path).out.split()
    harness = subprocess.Popen([*STORMPROOF, *map(str, words), "-q"], cwd=tmp_path, start_new_session=True)
    verdicts = tmp_path / "r" / "verdicts.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (verdicts.exists() and verdicts.read_bytes().count(b"\n") >= 3):
        time.sleep(0.02)
    os.kill(harness.pid, signal.SIGKILL)
    harness.wait()
    finished = set(results(tmp_path / "r"))
    assert 3 <= len(finished) < len(listed)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and alive(str(tmp_path)):
        time.sleep(0.05)
    assert not alive(str(tmp_path))
    done = stormproof(*words, "--resume", "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    assert sorted(results(tmp_path / "r")) == sorted(listed)
    assert done.json["runs"] == len(listed)
    checked = stormproof("check", "r/history.jsonl", "--json", cwd=tmp_path)
    assert checked.code == 0
    assert checked.json["runs"] == len(listed)


def test_interrupted(tmp_path: Path) -> None:
    """Ctrl-C ends the agents at once, keeps what is judged, says how to go on, and is undecided: exit 4."""
    harness = subprocess.Popen(
        [*STORMPROOF, "run", "--set", "ci", "--out", "r"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    verdicts = tmp_path / "r" / "verdicts.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (verdicts.exists() and verdicts.stat().st_size):
        time.sleep(0.02)
    harness.send_signal(signal.SIGINT)
    _, err = harness.communicate(timeout=30)
    assert harness.returncode == 4
    assert "go on with --resume" in err
    assert "Traceback" not in err
    assert results(tmp_path / "r")
    assert (tmp_path / "r" / "report.html").exists()
    assert not alive(str(tmp_path))
