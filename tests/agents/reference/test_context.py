"""The conversation, rebuilt."""

from __future__ import annotations

import json

from agents.reference.context import answer, exchanges
from agents.reference.errors import Failure
from agents.reference.ledger import Action


def action(step: int, turn: int, state: str, failure: Failure | None = None) -> Action:
    """An action of a turn."""
    return Action(step, turn, f"c{step}", "t", {}, 1, "k", "i", state, result={"n": step}, failure=failure)


def test_every_call_has_its_answer_in_order() -> None:
    """Turn by turn, each call followed by its own answer: no provider is sent a call without one."""
    calls = [{"id": f"c{n}", "name": "t", "arguments": {}} for n in (1, 2, 3)]
    turns = [{"text": "a", "calls": calls[:2]}, {"text": "", "calls": calls[2:]}]
    actions = [action(1, 1, "succeeded"), action(2, 1, "failed", Failure("k", "m")), action(3, 2, "succeeded")]
    one, two = exchanges(turns, actions)
    assert [call.id for call in one.calls] == [told.id for told in one.answers] == ["c1", "c2"]
    assert [told.content for told in two.answers] == ['{"n": 3}']


def test_a_failure_is_a_structured_place_holder() -> None:
    """Kind, message, whether asking again makes sense, whether it was started at all."""
    told = answer(action(1, 1, "refused", Failure("invalid_arguments", "m", rejected=True)))
    assert told.is_error is True
    assert json.loads(told.content)["error"] == {
        "kind": "invalid_arguments",
        "message": "m",
        "retryable": True,
        "may_have_taken_effect": False,
        "started": False,
    }
