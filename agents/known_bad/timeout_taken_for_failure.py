"""A call that timed out is taken for one that failed: nothing is asked, and nothing is undone."""

from __future__ import annotations

from dataclasses import replace

from agents.reference import errors
from agents.reference.__main__ import main as run_agent
from agents.reference.decisions import REFERENCE
from agents.reference.errors import Failure
from agents.reference.transport import Loss


def judge_loss(loss: Loss) -> Failure:
    """The bad decision: no answer means that nothing happened."""
    return replace(errors.from_loss(loss), may_have_taken_effect=False, retryable=False)


def main() -> int:
    """Run the task of the environment."""
    return run_agent(replace(REFERENCE, judge_loss=judge_loss))
