"""Reading the environment and the task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.reference.task import DEFAULT_STEPS, TaskError, read_task


def environment(folder: Path, **task: Any) -> dict[str, str]:
    """The least an agent is given."""
    (folder / "task.json").write_text(json.dumps({"request": "Do it.", **task}))
    return {
        "STORMPROOF_RUN_ID": "r",
        "STORMPROOF_STATE_DIR": str(folder),
        "STORMPROOF_TASK": str(folder / "task.json"),
        "STORMPROOF_TOOLS_URL": "http://t/",
        "ANTHROPIC_BASE_URL": "http://m/",
        "OPENAI_BASE_URL": "http://m/v1",
    }


def test_what_is_left_open_gets_a_default(tmp_path: Path) -> None:
    """Without limits the run is still bounded in steps and time; intent and tenant are filled in."""
    task = read_task(environment(tmp_path))
    assert (task.intent_id, task.tenant, task.run_started) == ("r", "default", None)
    assert (task.tools_url, task.model_url) == ("http://t", "http://m")
    assert task.limits.steps == DEFAULT_STEPS
    assert task.limits.wall_clock_s > 0
    assert task.limits.tokens is None


def test_limits_are_read(tmp_path: Path) -> None:
    """Limits of the task are taken as they are, zero steps included."""
    limits = {"steps": 0, "wall_clock_s": 30, "tokens": 5000.0, "max_concurrency": 0, "recovery_s": 5}
    env = environment(tmp_path, limits=limits, api="openai-chat")
    task = read_task({**env, "STORMPROOF_RUN_STARTED": "12.5"})
    assert (task.limits.steps, task.limits.tokens, task.limits.max_concurrency) == (0, 5000, 1)
    assert (task.model_url, task.run_started) == ("http://m/v1", 12.5)


def test_an_unreadable_start_is_no_start(tmp_path: Path) -> None:
    """Garbage in place of the start time is passed over: the agent then counts from its own start."""
    for text in ("soon", "nan", "inf", ""):
        assert read_task({**environment(tmp_path), "STORMPROOF_RUN_STARTED": text}).run_started is None


@pytest.mark.parametrize(
    "name", ["STORMPROOF_RUN_ID", "STORMPROOF_TASK", "STORMPROOF_TOOLS_URL", "ANTHROPIC_BASE_URL"]
)
def test_what_is_missing_is_named(tmp_path: Path, name: str) -> None:
    """A missing variable is a plain error that names it."""
    env = environment(tmp_path)
    del env[name]
    with pytest.raises(TaskError, match=name):
        read_task(env)


@pytest.mark.parametrize("content", ["{", "[]", '{"request": 1}', '{"request": "x", "api": "openai-responses"}'])
def test_a_bad_task_is_named(tmp_path: Path, content: str) -> None:
    """A task that cannot be read or spoken is a plain error."""
    env = environment(tmp_path)
    (tmp_path / "task.json").write_text(content)
    with pytest.raises(TaskError, match="task"):
        read_task(env)
