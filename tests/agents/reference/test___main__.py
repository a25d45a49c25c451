"""The agent as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents.reference import __main__ as agent
from agents.reference.clock import SystemClock
from tests.agents.fake_shop import ORDER
from tests.agents.fake_world import world
from tests.agents.test_crashes import REPOSITORY, start


def test_the_last_line_is_the_outcome(tmp_path: Path) -> None:
    """A real process: exit code 0, nothing on standard error, the outcome as JSON on the last line."""
    with world(ORDER) as there:
        code, outcome = start(there, tmp_path)
    assert code == 0
    assert outcome is not None
    assert (outcome["status"], outcome["completed"]) == ("succeeded", [1, 2, 3, 4])


def test_a_task_that_cannot_be_read_is_an_outcome() -> None:
    """No environment at all: a structured failure, not a traceback."""
    outcome = agent.run({}, SystemClock())
    assert (outcome.status, outcome.failure and outcome.failure.kind) == ("failed", "bad_task")


def test_a_state_folder_that_cannot_be_used_is_an_outcome(tmp_path: Path) -> None:
    """The ledger cannot be opened: nothing is begun, and the run fails in words."""
    with world(ORDER) as there:
        env = there.environment(tmp_path)
        (tmp_path / "state").write_text("a file")
        outcome = agent.run(env, SystemClock())
    assert (outcome.status, outcome.failure and outcome.failure.kind) == ("failed", "internal_error")
    assert there.seen == []


def test_an_outcome_that_cannot_be_said_is_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output is gone: the one thing that is told by the exit code."""

    class Closed:
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(sys, "stdout", Closed())
    assert agent.main() == 1


def test_a_cold_start_is_cheap_and_needs_nothing_of_ours() -> None:
    """Importing the agent loads nothing outside the standard library and its own package, and no event loop."""
    code = (
        "import sys, json; before = set(sys.modules); import agents.reference.__main__;"
        "print(json.dumps(sorted({name.split('.')[0] for name in set(sys.modules) - before})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(json.loads(done.stdout))
    assert loaded - set(sys.stdlib_module_names) == {"agents"}
    assert "asyncio" not in loaded
