"""Results that are there already: gone on with where they are of the same session, not destroyed by a replay."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from tests.harness.end_to_end.command import STORMPROOF, stormproof

ONE = ("run", "--scenario", 104, "--trace", "order-small")


def test_another_agent_is_not_judged_by_these_results(tmp_path: Path) -> None:
    """`--resume` with another agent is refused and leaves the folder alone; with the same one nothing is played."""
    assert stormproof(*ONE, "--out", "r", cwd=tmp_path).code == 0
    before = (tmp_path / "r" / "verdicts.jsonl").read_bytes()
    bad = stormproof(*ONE, "--agent", "key-per-attempt-header", "--out", "r", "--resume", cwd=tmp_path)
    assert bad.code == 2
    assert "are of the agent `reference`, not of `key-per-attempt-header`" in bad.err
    assert (tmp_path / "r" / "verdicts.jsonl").read_bytes() == before
    assert stormproof(*ONE, "--out", "r", "--resume", cwd=tmp_path).code == 0
    assert (tmp_path / "r" / "verdicts.jsonl").read_bytes() == before


def test_a_replay_keeps_the_report_it_is_read_from(tmp_path: Path) -> None:
    """The command in a report repeats the run into another folder, and the one in that report does the same."""
    out = ""
    done = stormproof(*ONE, "--agent", "key-per-attempt-header", "--json", cwd=tmp_path)
    folders = [tmp_path / "stormproof-results"]
    for _ in range(2):
        replay = done.json["violations"][0]["replay"]
        before = (folders[-1] / "summary.json").read_bytes()
        words = shlex.split(replay)[1:]
        out = words[words.index("--out") + 1]
        done = stormproof(*words, "--json", cwd=tmp_path)
        assert done.code == 1
        assert (folders[-1] / "summary.json").read_bytes() == before
        folders.append(tmp_path / out)
    assert len(set(folders)) == 3


def test_nobody_reads_to_the_end(tmp_path: Path) -> None:
    """A reader that goes away, such as `head`, does not turn a violation into a pass."""
    words = [*STORMPROOF, *map(str, ONE), "--agent", "key-per-attempt-header", "--out", "r"]
    running = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if running.stdout is not None:
        running.stdout.close()
    told = running.stderr.read() if running.stderr is not None else ""
    assert running.wait(timeout=60) == 1, told
    assert "Traceback" not in told
