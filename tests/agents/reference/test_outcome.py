"""One structure for every end."""

from __future__ import annotations

import pytest

from agents.reference.errors import Failure
from agents.reference.ledger import Action
from agents.reference.outcome import Outcome, advice_for, shortfalls


def test_a_failure_always_has_a_kind() -> None:
    """Even a failure without a name is given one."""
    assert Outcome("failed", failure=Failure("", "m")).as_json()["error"] == {"kind": "unknown", "message": "m"}
    assert Outcome("succeeded", (1,)).as_json()["error"] is None


def test_what_is_missing_is_listed_with_its_reason() -> None:
    """Steps that did not come about, and why; what was never begun is not among them."""
    actions = [
        Action(1, 1, "c", "a", {}, 1, "k", "i", "succeeded"),
        Action(2, 1, "c", "b", {}, 1, "k", "i", "failed", failure=Failure("x", "")),
        Action(3, 1, "c", "d", {}, 1, "k", "i", "declared"),
    ]
    assert shortfalls(actions) == ({"step": 2, "tool": "b", "reason": "x"},)


@pytest.mark.parametrize("status", ["partial_success", "handed_off", "rolled_back", "failed"])
def test_every_end_but_success_comes_with_advice(status: str) -> None:
    """The reader is told what to do next."""
    assert advice_for(status, Failure("x", "", True))
    assert advice_for("succeeded", None) is None
