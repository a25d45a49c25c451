"""Continue or undo: the decisions, without a wire."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agents.reference import saga
from agents.reference.errors import Failure
from agents.reference.ledger import Action
from agents.reference.saga import Stop, conclude
from agents.reference.tools import Compensation, Tool

UNDO = Compensation("undo", "$.of", "$.id", "strong", None)
TOOLS = {
    "read": Tool("read", "natural", "none"),
    "pay": Tool("pay", "keyed", "money", compensation=UNDO),
    "hold": Tool("hold", "keyed", "internal", compensation=UNDO),
    "ship": Tool("ship", "keyed", "visible", compensation=UNDO),
    "mail": Tool("mail", "irreversible", "visible"),
    "undo": Tool("undo", "keyed", "money"),
}
REJECTED = Failure("invalid", "", rejected=True)
BROKEN = Failure("http_500", "", True)
IN_DOUBT = Failure("timeout", "", True, True)


def tool_of(name: str) -> Tool:
    """The tools of these tests."""
    return TOOLS.get(name, Tool(name))


def done(step: int, tool: str, state: str = "succeeded", turn: int | None = None, **given: Any) -> Action:
    """An action, by default one that succeeded in a turn of its own."""
    return Action(
        step, turn or step, f"c{step}", tool, given.pop("arguments", {}), 1, f"k{step}", f"i{step}", state, **given
    )


def failed(step: int, tool: str, failure: Failure = BROKEN, state: str = "failed", turn: int | None = None) -> Action:
    """An action that did not succeed."""
    return done(step, tool, state, turn, failure=failure)


PAID = done(1, "pay", result={"id": "p1"})
MAILED = done(2, "mail")
LOST_MODEL = Stop(Failure("model_overloaded", ""))


@pytest.mark.parametrize(
    ("actions", "stop", "way"),
    [
        # what was done        what happened                        what becomes of it
        ([], None, "succeed"),
        ([PAID, MAILED], None, "succeed"),
        ([done(1, "read")], LOST_MODEL, "fail"),
        ([failed(1, "pay")], Stop(BROKEN, 1), "fail"),
        ([PAID, failed(2, "read", REJECTED)], None, "succeed"),
        ([PAID, failed(2, "ship")], Stop(BROKEN, 2), "undo"),
        ([PAID, failed(2, "ship", REJECTED)], None, "undo"),
        ([PAID, failed(2, "hold")], None, "keep_part"),
        ([PAID, failed(2, "mail")], None, "keep_part"),
        ([PAID, failed(2, "mail", IN_DOUBT, "uncertain")], Stop(IN_DOUBT, 2), "keep_part"),
        ([PAID, failed(2, "ship", IN_DOUBT, "uncertain")], Stop(IN_DOUBT, 2), "undo"),
        ([failed(1, "mail", IN_DOUBT, "uncertain")], Stop(IN_DOUBT, 1), "undo"),
        ([done(1, "pay", "pending")], LOST_MODEL, "undo"),
        ([PAID], LOST_MODEL, "undo"),
        ([PAID, MAILED], LOST_MODEL, "keep_part"),
        ([PAID, MAILED, failed(3, "ship")], LOST_MODEL, "undo"),
        ([PAID, failed(2, "hold"), failed(3, "ship", REJECTED, "skipped")], Stop(BROKEN, 3), "undo"),
        ([PAID, failed(2, "nobody", Failure("unknown_tool", ""), "refused")], None, "succeed"),
    ],
)
def test_what_becomes_of_the_effects(actions: list[Action], stop: Stop | None, way: str) -> None:
    """Grave and missing or in doubt: undo. Minor: keep a part. Rest unknown: undo, unless past recall."""
    assert conclude(actions, tool_of, stop).way == way


def test_an_ending_that_is_no_success_has_a_reason() -> None:
    """Whatever the way, a failure is named."""
    assert conclude([PAID, failed(2, "hold")], tool_of, None).failure == BROKEN
    assert conclude([PAID, done(2, "hold", "skipped")], tool_of, None).failure is not None


@pytest.mark.parametrize(
    ("action", "repairs", "ends"),
    [
        (done(1, "pay"), 0, False),
        (failed(1, "read"), 0, False),
        (failed(1, "read", IN_DOUBT, "uncertain"), 0, False),
        (failed(1, "pay"), 1, True),
        (failed(1, "pay", REJECTED), 1, False),
        (failed(1, "pay", REJECTED), 0, True),
        (failed(1, "hold"), 0, False),
        (failed(1, "hold", IN_DOUBT, "uncertain"), 1, True),
        (failed(1, "read", Failure("budget_exhausted", ""), "refused"), 1, True),
        (failed(1, "pay", Failure("self_repair_exhausted", ""), "refused"), 0, True),
        (failed(1, "read", Failure("self_repair_exhausted", ""), "refused"), 0, False),
        (failed(1, "pay", Failure("confirmation_needed", ""), "refused"), 0, False),
    ],
)
def test_which_step_ends_the_forward_way(action: Action, repairs: int, ends: bool) -> None:
    """A grave failure that no repair can cure, any doubt about a write, any exhausted budget; never a failed read."""
    assert saga.ends_the_run(action, tool_of(action.tool), repairs_left=repairs) is ends


def test_after_a_failed_write_only_its_repair_may_start() -> None:
    """Reads go on, the same tool may be asked for again in a later turn, and nothing else that writes."""
    before = [PAID, failed(2, "hold", REJECTED)]

    def may(tool: str, turn: int = 3) -> bool:
        action = done(9, tool, "declared", turn)
        return saga.may_start(action, [*before, action], tool_of)

    assert (may("read"), may("hold"), may("ship")) == (True, True, False)
    assert may("hold", turn=2) is False, "not in the turn that failed"
    before.append(done(3, "hold"))
    assert may("ship") is True, "repaired"


def test_a_write_wanted_beside_a_failed_one_stops_the_run() -> None:
    """The model goes on as if nothing had failed: a stop, with the reason of the failure."""
    actions = [PAID, failed(2, "hold"), done(3, "ship", "skipped")]
    assert saga.held_up(actions, 3, tool_of) == Stop(BROKEN, 3)
    repaired = [PAID, failed(2, "hold"), done(3, "hold", turn=3), done(4, "ship", "skipped", 3)]
    assert saga.held_up(repaired, 3, tool_of) is None


def test_success_makes_up_for_one_failure() -> None:
    """Two mails failed, one was sent: one is missing still."""
    actions = [failed(1, "mail"), failed(2, "mail"), done(3, "mail")]
    assert [action.step for action in saga.missing(actions, tool_of)] == [2]


def test_the_last_effect_is_undone_first() -> None:
    """Strict reverse order of the steps."""
    assert [action.step for action in saga.strict_reverse([PAID, MAILED])] == [2, 1]


def test_the_models_own_undoing_is_recognised() -> None:
    """By the name it gives to the effect; each effect is undone once, each undoing undoes one."""
    twin = done(2, "pay", result={"id": "p2"})
    undo = done(3, "undo", arguments={"of": "p2"})
    again = done(4, "undo", arguments={"of": "p9"})
    actions = [PAID, twin, undo, again]
    assert saga.undone_by_plan(actions, tool_of) == {2: 3}
    assert [action.step for action in saga.standing_effects(actions, tool_of)] == [1, 4]
    assert saga.undone_by_plan([PAID, twin, replace(undo, state="failed")], tool_of) == {}


def test_arguments_of_an_undoing() -> None:
    """The effect's name, and what else is required and known; without either there is no undoing."""
    schema = {"required": ["of", "account"], "properties": {}}
    undo = Tool("undo", "keyed", schema=schema)
    paid = done(1, "pay", arguments={"account": "a", "amount": 5}, result={"id": "p1"})
    assert saga.undoing_arguments(paid, UNDO, undo) == {"account": "a", "of": "p1"}
    assert saga.undoing_arguments(replace(paid, result={}), UNDO, undo) is None
    assert saga.undoing_arguments(replace(paid, arguments={}), UNDO, undo) is None
    assert saga.undoing_arguments(paid, UNDO, Tool("undo")) == {"of": "p1"}


def test_an_undoing_has_an_effect() -> None:
    """Even a tool that the registry takes for a read shows a key when it undoes something."""
    assert saga.undoing_tool(TOOLS["read"]).effectful is True
    assert saga.undoing_tool(TOOLS["undo"]) is TOOLS["undo"]
