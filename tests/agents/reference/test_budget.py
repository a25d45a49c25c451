"""Deadlines, tokens and money."""

from __future__ import annotations

import pytest

from agents.reference.budget import KEPT_BACK, Account, TimePlan
from agents.reference.errors import RunStopped


def test_forward_work_leaves_a_share_for_undoing() -> None:
    """Forward work has to be done before the share kept back begins; undoing has that share and the recovery time."""
    plan = TimePlan(100.0, 30.0, 5.0)
    assert (plan.forward.at, plan.forward.until) == (130.0, 130.0 - KEPT_BACK * 30)
    assert (plan.compensation.at, plan.compensation.until) == (135.0, 135.0)


def test_need_is_never_clipped() -> None:
    """What does not fit is refused: it is not given the little that is left."""
    forward = TimePlan(100.0, 10.0).forward
    assert forward.fits(8.0, 100.0)
    assert not forward.fits(8.01, 100.0)
    assert forward.remaining(200.0) == 0.0


def test_a_scope_does_not_move() -> None:
    """Whoever asks, and however late, the instant is the same: there is no new time."""
    plan = TimePlan(100.0, 10.0)
    assert plan.forward == plan.forward
    assert plan.forward.remaining(103.0) == 7.0


def test_tokens_are_hard() -> None:
    """The answer is allowed only what is left after the input; where not even a short one fits, the run ends."""
    account = Account(tokens=1000)
    assert account.allow_output(100, 4096) == 900
    account.book(600, 100)
    assert account.allow_output(200, 4096) == 100
    with pytest.raises(RunStopped) as stopped:
        account.allow_output(210)
    assert (stopped.value.budget, stopped.value.failure.kind) == ("tokens", "budget_exhausted")


def test_money_is_hard() -> None:
    """A limit in dollars bounds the answer's length and then ends the run."""
    account = Account(cost_usd=0.01, input_price=10.0, output_price=10.0)
    assert account.allow_output(500, 4096) == 500
    account.book(500, 450)
    with pytest.raises(RunStopped) as stopped:
        account.allow_output(10)
    assert stopped.value.budget == "cost"


def test_an_answer_as_long_as_the_longest_must_fit() -> None:
    """The model has said 300 tokens before: with room for fewer it is not asked."""
    account = Account(tokens=1000)
    account.book(100, 300)
    with pytest.raises(RunStopped):
        account.allow_output(301)
    assert account.allow_output(300) == 300


def test_the_estimate_is_on_the_high_side() -> None:
    """The input of the next call holds at least what the last call held and said."""
    account = Account()
    account.book(500, 60)
    assert account.estimate_input(300) == 560
    assert account.estimate_input(3000) == 1000


def test_a_call_under_way_is_paid_for_in_advance() -> None:
    """What is stored before a call holds its estimate, so that a killed process cannot spend unseen."""
    account = Account(tokens=1000)
    account.book(100, 20)
    account.pledge(150)
    heir = Account(tokens=1000)
    heir.restore(account.as_json())
    assert heir.used_input + heir.used_output == 290
    account.book(140, 10)
    assert account.used_input + account.used_output == 270
