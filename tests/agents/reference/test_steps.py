"""Planning: turns into actions."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.reference.errors import Failure, RunStopped
from agents.reference.ledger import Action
from agents.reference.model import Said
from agents.reference.steps import failures_in_a_row
from agents.reference.turn import Wanted
from tests.agents.fake_clock import FakeClock
from tests.agents.reference.test_assembly import built


def test_nothing_of_a_turn_past_the_limit_is_made(tmp_path: Path) -> None:
    """792 calls in one turn: none is stored, the budget of steps ends the run."""
    run = built(tmp_path, FakeClock())
    with pytest.raises(RunStopped) as stopped:
        run.steps.plan(Said("", tuple(Wanted(f"c{n}", "t", {}) for n in range(792))), run.account)
    assert (stopped.value.budget, run.ledger.actions(), run.ledger.turns()) == ("steps", [], [])
    run.ledger.close()


def test_a_plan_is_stored_with_its_keys(tmp_path: Path) -> None:
    """Keys and intents are fixed at planning: equal calls get ordinals, and an asking-again takes a free one."""
    run = built(tmp_path, FakeClock(), tools=[{"name": "t"}], registry={"t": {"idempotency": "keyed"}})
    run.steps.plan(
        Said("", (Wanted("a", "t", {"n": 1}), Wanted("b", "t", {"n": 1}), Wanted("c", "t", {"n": 2}))), run.account
    )
    one, two, three = run.ledger.actions()
    assert [action.ordinal for action in (one, two, three)] == [1, 2, 1]
    assert len({one.key, two.key, three.key}) == 3
    run.ledger.settle(2, "failed", at=0.0, failure=Failure("x", ""))
    run.ledger.settle(1, "succeeded", at=0.0)
    run.steps.plan(Said("", (Wanted("d", "t", {"n": 1}),)), run.account)
    again = run.ledger.actions()[-1]
    assert (again.key, again.intent, again.step) == (two.key, two.intent, 4)
    run.ledger.close()


def test_failures_are_counted_since_the_last_success() -> None:
    """Refusals count, calls held back do not, a success starts anew."""

    def action(step: int, state: str) -> Action:
        return Action(step, step, "c", "t", {}, 1, "k", "i", state)

    states = ["failed", "succeeded", "refused", "skipped", "failed"]
    assert failures_in_a_row([action(n, state) for n, state in enumerate(states)], "t") == 2
    assert failures_in_a_row([], "t") == 0
