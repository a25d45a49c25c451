"""What an agent says of itself is read leniently, and never as more than a claim."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.claims import read_agent_words
from traces.history import Record

EXIT = Record(type="process_exited", t=9.0, run_id="r1", source="harness", exit_code=0)


def test_events_are_the_agents_own(tmp_path: Path) -> None:
    """Whatever run and source an event claims, it is this run's agent that says so."""
    (tmp_path / "events.jsonl").write_text('{"type":"plan_created","t":1,"run_id":"other","source":"service"}\n')
    words = read_agent_words(tmp_path, "r1", EXIT)
    assert [(r.type, r.run_id, r.source) for r in words.records][:1] == [("plan_created", "r1", "agent")]


def test_no_proof_of_its_own(tmp_path: Path) -> None:
    """Records that only service, wire or harness can know are refused, torn and foreign lines set aside."""
    (tmp_path / "events.jsonl").write_text(
        '{"type":"effect","t":1,"effect_id":"e","outcome":"applied"}\n{"type":"plan_cr\nhello\n\n'
        '{"type":"mechanism_acted","t":2,"name":"resume"}\n'
    )
    words = read_agent_words(tmp_path, "r1", EXIT)
    assert [record.type for record in words.records] == ["mechanism_acted", "run_finished"]
    assert [text.split(":")[0] for text in words.unreadable] == ["line 1", "line 2", "line 3"]


def test_the_last_line_of_standard_output(tmp_path: Path) -> None:
    """Without a `run_finished` event, the outcome on standard output is the claim."""
    (tmp_path / "stdout.txt").write_text('thinking...\n{"status": "failed", "error": "no stock", "completed": [1]}\n')
    words = read_agent_words(tmp_path, "r1", EXIT)
    (end,) = words.records
    assert (end.status, end.completed, end.t) == ("failed", [1], 9.0)
    assert end.error is not None
    assert end.error.message == "no stock"


def test_exit_code_zero_claims_success(tmp_path: Path) -> None:
    """Silence with exit code 0 is the claim `succeeded`; a crash or an injected end claims nothing."""
    (tmp_path / "stdout.txt").write_text("done!\n")
    assert read_agent_words(tmp_path, "r1", EXIT).status == "succeeded"
    crash = Record(type="process_exited", t=9.0, run_id="r1", exit_code=1)
    assert read_agent_words(tmp_path, "r1", crash).status is None
    killed = Record(type="process_exited", t=9.0, run_id="r1", signal="SIGKILL", injected=True)
    assert read_agent_words(tmp_path, "r1", killed).status is None


@pytest.mark.parametrize("kind", ["pipe", "folder", "link", "deep"])
def test_files_that_are_none(tmp_path: Path, kind: str) -> None:
    """What an agent puts in the place of its files is read as nothing, at once."""
    events = tmp_path / "events.jsonl"
    if kind == "pipe":
        os.mkfifo(events)
        os.mkfifo(tmp_path / "stdout.txt")
    elif kind == "folder":
        events.mkdir()
    elif kind == "link":
        events.symlink_to("/dev/zero")
    else:
        events.write_text('{"a":' * 50_000)
    words = read_agent_words(tmp_path, "r1", EXIT)
    assert [record.type for record in words.records] == ["run_finished"]
    assert len(words.unreadable) == (kind == "deep")
