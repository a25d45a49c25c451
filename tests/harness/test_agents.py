"""An `agent.yaml` is refused for what no process could be started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.agents import find_agent, load_agent
from harness.errors import InputError


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("env: {A: {b: c}}", "`A` has to be text or a number"),
        ("env: {A: null}", "`A` has to be text or a number"),
        ("env: {A=B: c}", "cannot name a variable"),
        ('env: {"": c}', "cannot name a variable"),
        ('env: {A: "x\\0y"}', "cannot hold a NUL"),
        ("timeout_s: .inf", "is no number that can be worked with"),
        ("timeout_s: 10000000000000", "at most 1e+12"),
    ],
)
def test_what_no_process_can_be_given(tmp_path: Path, line: str, words: str) -> None:
    """Variables without a name or a plain value, and time-outs that never end, are refused with their line."""
    path = tmp_path / "agent.yaml"
    path.write_text(f"command: [python3, agent.py]\n{line}\n")
    with pytest.raises(InputError, match=r"agent\.yaml:2: ") as refused:
        load_agent(path)
    assert words in str(refused.value)


@pytest.mark.parametrize("name", ["", " ", "x" * 5000])
def test_names_that_are_none(name: str) -> None:
    """An empty name does not mean the default, and one too long for a file is no agent."""
    with pytest.raises(InputError, match="--agent"):
        find_agent(name)
