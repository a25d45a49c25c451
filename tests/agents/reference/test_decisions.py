"""The seams."""

from __future__ import annotations

from dataclasses import fields

from agents.reference import errors, keys, saga, turn
from agents.reference.budget import Scope
from agents.reference.decisions import REFERENCE, Decisions, same_scope
from agents.reference.ledger import Ledger


def test_the_reference_agent_is_the_default() -> None:
    """Every decision has its right answer as default."""
    assert Decisions() == REFERENCE
    assert {field.name: getattr(REFERENCE, field.name) for field in fields(Decisions)} == {
        "present": keys.present,
        "judge_loss": errors.from_loss,
        "attempt_scope": same_scope,
        "harvest": turn.harvest,
        "undo_order": saga.strict_reverse,
        "ledger": Ledger,
    }


def test_a_retry_gets_no_new_time() -> None:
    """The scope of the ninth attempt is that of the first."""
    scope = Scope("root", 10.0, 8.0, 10.0)
    assert same_scope(scope, 9, 7.0) is scope
