"""The main job as tests: the `ci` set against the reference agent, one test per scenario and trace."""

from __future__ import annotations

import pytest

from stormproof.pytest_plugin import Case


@pytest.mark.chaos
def test_reference_agent(stormproof_case: Case) -> None:
    """The reference agent breaks no invariant in any scenario of the set, and every armed fault fires."""
    stormproof_case.check()
