"""The agents by name."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from agents.catalogue import AGENTS, entry, run_agent

KNOWN_BAD = Path(__file__).parents[2] / "agents" / "known_bad"


def test_every_agent_can_be_run_and_says_what_it_must_draw() -> None:
    """Each entry names a module with a `main`; a known-bad one says what the harness must find, and where."""
    for agent in AGENTS:
        assert callable(import_module(agent.module).main)
        assert bool(agent.must_draw) is bool(agent.scenarios) is (agent.group == "known-bad")


def test_every_known_bad_agent_is_listed_under_its_name() -> None:
    """File, name and entry agree, and no file is forgotten."""
    files = {path.stem for path in KNOWN_BAD.glob("*.py")} - {"__init__"}
    listed = {agent.name.replace("-", "_") for agent in AGENTS if agent.group == "known-bad"}
    assert files == listed
    for agent in AGENTS:
        if agent.group == "known-bad":
            assert agent.module == f"agents.known_bad.{agent.name.replace('-', '_')}"


def test_an_unknown_name_is_a_plain_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, and the names there are."""
    assert run_agent("nobody") == 2
    assert "reference" in capsys.readouterr().err
    with pytest.raises(KeyError, match="no agent 'nobody'"):
        entry("nobody")
