"""What survives."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.reference.errors import Failure
from agents.reference.ledger import Action, Ledger


def action(step: int, **given: object) -> Action:
    """A declared action."""
    return Action(step, 1, f"c{step}", "t", {"n": step}, 1, f"k{step}", f"i{step}", **given)  # type: ignore[arg-type]


def test_a_turn_and_its_actions_come_together(tmp_path: Path) -> None:
    """If one action cannot be stored, neither is the turn."""
    ledger = Ledger(tmp_path, "r")
    ledger.plan({"text": "a", "calls": []}, [action(1)], {"used": 1})
    with pytest.raises(Exception, match="UNIQUE"):
        ledger.plan({"text": "b", "calls": []}, [action(2), action(1)], {"used": 2})
    assert (len(ledger.turns()), len(ledger.actions()), ledger.fact("spent")) == (1, 1, {"used": 1})
    ledger.close()


def test_a_later_process_reads_it_all(tmp_path: Path) -> None:
    """States, results, failures, directions: everything is there for the next process, which knows it is not the
    first."""
    first = Ledger(tmp_path, "r")
    first.plan({"text": "", "calls": []}, [action(1), action(2), action(3)], {})
    assert first.begin(1, 1) is True
    first.settle(1, "succeeded", at=5.0, result={"id": "x"})
    first.begin(2, 3)
    first.settle(3, "failed", at=6.0, failure=Failure("k", "m", True))
    first.begin_undoing(1, "undo", 2)
    assert first.resumed is False
    first.close()
    heir = Ledger(tmp_path, "r")
    one, two, three = heir.actions()
    assert (one.state, one.result, one.settled_at) == ("succeeded", {"id": "x"}, 5.0)
    assert (two.state, two.attempts) == ("pending", 3)
    assert three.failure == Failure("k", "m", True)
    assert (heir.undoings()[1].state, heir.undoings()[1].attempts) == ("pending", 2)
    assert (heir.resumed, heir.generation) == (True, 2)
    heir.close()


def test_runs_do_not_share_a_ledger(tmp_path: Path) -> None:
    """Two runs in one state folder know nothing of each other."""
    one, two = Ledger(tmp_path, "a"), Ledger(tmp_path, "b")
    one.note("x", 1)
    assert two.fact("x") is None
    one.close()
    two.close()


def test_the_first_reason_to_undo_stands(tmp_path: Path) -> None:
    """Turning round twice keeps the reason of the first time."""
    ledger = Ledger(tmp_path, "r")
    ledger.decide_to_undo(Failure("first", ""))
    ledger.decide_to_undo(Failure("second", ""))
    assert ledger.fact("undoing")["kind"] == "first"
    ledger.close()


def test_settling_an_undoing_keeps_its_tool_and_count(tmp_path: Path) -> None:
    """A state is changed, what is known besides is not erased."""
    ledger = Ledger(tmp_path, "r")
    ledger.begin_undoing(1, "undo", 2)
    ledger.settle_undoing(1, "compensated")
    ledger.settle_undoing(2, "manual", failure=Failure("manual", "why"))
    one, two = ledger.undoings()[1], ledger.undoings()[2]
    assert (one.tool, one.attempts, one.state) == ("undo", 2, "compensated")
    assert (two.state, two.failure) == ("manual", Failure("manual", "why"))
    ledger.close()
