"""Undoing: the effects of a run, in strict reverse order, each by the way its tool names; what cannot be undone goes
to a person, and never stops what came before it from being undone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from agents.reference import keys, saga
from agents.reference.budget import Scope
from agents.reference.calls import REPEATS_TO_BE_SURE, Order, ToolClient
from agents.reference.clock import Clock
from agents.reference.decisions import Decisions
from agents.reference.errors import Failure
from agents.reference.events import Events
from agents.reference.ledger import Action, Ledger, Undoing
from agents.reference.retry import RetryBudget
from agents.reference.tools import Compensation, Tool

TRIES: Final = {"strong": 3, "weak": 1}
_INTERRUPTED: Final = Failure("interrupted", "the process ended during this call", True, True)
_NOBODY_KNOWS: Final = "nobody can say whether it took effect"
_SETTLED: Final = {"compensated": "compensated", "compensation_failed": "manual", "manual": "manual"}


@dataclass(slots=True)
class Undone:
    """What came of undoing, by step."""

    compensated: list[int] = field(default_factory=list)
    manual: dict[int, str] = field(default_factory=dict)
    """Steps left to a person, with the reason."""


@dataclass(slots=True)
class Undoer:
    """Undoes a run. What it does is in the ledger before it is done, so that a restart goes on where it was."""

    ledger: Ledger
    tool_of: Callable[[str], Tool]
    client: ToolClient
    events: Events
    clock: Clock
    scope: Scope
    decisions: Decisions
    retries: RetryBudget = field(default_factory=lambda: RetryBudget(minimum=20))
    """Of its own, so that forward retries cannot starve undoing; each undoing is bound by its tries besides."""

    def undo_all(self) -> Undone:
        """Undo every effect that stands or may stand."""
        done = Undone()
        actions = self.ledger.actions()
        states = self.ledger.undoings()
        by_plan = saga.undone_by_plan(actions, self.tool_of, states=("succeeded", "pending", "uncertain"))
        effects = [
            action
            for action in actions
            if action.state in ("succeeded", "pending", "uncertain") and self.tool_of(action.tool).effectful
        ]
        for action in self.decisions.undo_order(effects):
            if action.step in by_plan.values():
                self._resolve(action)  # an undoing of the model's own is not undone, but must be known
                continue
            undone = self._now(by_plan[action.step]).state if action.step in by_plan else "failed"
            if undone == "succeeded":
                self._settled(done, action.step, "compensated", "")
            elif undone == "failed":
                self._undo(action, states.get(action.step), done)
            else:
                self._to_person(done, action.step, "it may have been undone already")
        return done

    def settle_doubts(self) -> dict[int, str]:
        """Find out about steps in doubt; those nobody can tell of go to a person. Their numbers, with reasons."""
        done = Undone()
        for action in saga.in_doubt(self.ledger.actions(), self.tool_of):
            known = self._resolve(action)
            if known is not None and known.state != "succeeded":
                self._to_person(done, action.step, _NOBODY_KNOWS)
        return done.manual

    def give_up(self, failure: Failure) -> Undone:
        """Leave whatever is not settled yet to a person."""
        done = Undone()
        states = self.ledger.undoings()
        for action in saga.strict_reverse(self.ledger.actions()):
            if action.state not in ("succeeded", "pending", "uncertain"):
                continue
            if not self.tool_of(action.tool).effectful:
                continue
            state = states.get(action.step)
            if state is not None and state.state == "compensated":
                self._settled(done, action.step, "compensated", "")
            else:
                self._settled(done, action.step, "manual", f"undoing broke down: {failure.kind}")
        return done

    def _now(self, step: int) -> Action:
        return next(action for action in self.ledger.actions() if action.step == step)

    def _undo(self, action: Action, state: Undoing | None, done: Undone) -> None:
        if state is not None and state.state in _SETTLED:
            self._settled(done, action.step, _SETTLED[state.state], "left to a person before")
            return
        known = self._resolve(action)
        if known is None:
            return
        if known.state != "succeeded":
            self._to_person(done, action.step, _NOBODY_KNOWS)
            return
        way = self.tool_of(action.tool).compensation
        if way is None or way.strength not in TRIES:
            self._to_person(done, action.step, "there is no way to undo it")
            return
        tool = saga.undoing_tool(self.tool_of(way.tool))
        arguments = saga.undoing_arguments(known, way, tool)
        if arguments is None:
            self._to_person(done, action.step, "what undoing it needs is not known")
            return
        self._compensate(known, way, tool, arguments=arguments, state=state, done=done)

    def _compensate(
        self,
        action: Action,
        way: Compensation,
        tool: Tool,
        *,
        arguments: dict[str, Any],
        state: Undoing | None,
        done: Undone,
    ) -> None:
        common = {
            "step": action.step,
            "tool": tool.name,
            "strength": way.strength,
            "ledger_id": f"undo-{action.step}",
        }
        self.events.emit("compensation_started", **common)
        if way.until_s is not None and action.settled_at is not None:
            last = action.settled_at + way.until_s
            if self.clock.now() + tool.need_s > last:
                self.events.emit("compensation_finished", **common, outcome="expired")
                self._to_person(done, action.step, "the time for undoing it is over")
                return
        order = Order(
            tool=tool,
            arguments=arguments,
            key=keys.compensation_key(action.key, tool.name),
            intent=f"{action.intent}/undo",
            step=action.step,
            scope=self.scope,
            label=f"c{action.step}",
            most=TRIES[way.strength],
            attempts=state.attempts if state else 0,
            doubt=_INTERRUPTED if state else None,
        )

        def begun(attempt: int) -> None:
            if self.ledger.begin_undoing(action.step, tool.name, attempt):
                self.events.acted("write_ahead", step=action.step, tool=tool.name, attempt=attempt)

        result = self.client.perform(order, begun=begun, budget=self.retries)
        if result.state == "succeeded":
            self.ledger.settle_undoing(action.step, "compensated")
            self.events.emit("compensation_finished", **common, outcome="ok")
            self._settled(done, action.step, "compensated", "")
            return
        failure = result.failure or _INTERRUPTED
        self.ledger.settle_undoing(action.step, "compensation_failed", failure=failure)
        outcome = "manual" if result.state == "uncertain" else "error"
        self.events.emit("compensation_finished", **common, outcome=outcome, error=failure.as_json())
        self._settled(done, action.step, "manual", f"undoing failed: {failure.kind}")

    def _resolve(self, action: Action) -> Action | None:
        """Find out whether a step in doubt took effect; `None`: it surely did not. A step stays in doubt if nobody
        can tell, and an unrepeatable one is not cleared by a service that does not know its key."""
        if action.state == "succeeded":
            return action
        tool = self.tool_of(action.tool)
        order = Order(
            tool=tool,
            arguments=action.arguments,
            key=action.key,
            intent=action.intent,
            step=action.step,
            scope=self.scope,
            label=f"s{action.step}",
        )
        answer = self.client.settle_doubt(order, action.attempts, repeats=REPEATS_TO_BE_SURE)
        if answer.state == "applied":
            self.ledger.settle(action.step, "succeeded", at=self.clock.now(), result=answer.value)
        elif answer.state == "unknown" and tool.repeatable:
            self.ledger.settle(
                action.step, "failed", at=self.clock.now(), failure=action.failure or _INTERRUPTED.certain()
            )
            return None
        return self._now(action.step)

    def _to_person(self, done: Undone, step: int, reason: str) -> None:
        self.ledger.settle_undoing(step, "manual", failure=Failure("manual", reason))
        self._settled(done, step, "manual", reason)

    def _settled(self, done: Undone, step: int, disposition: str, reason: str) -> None:
        if disposition == "compensated":
            done.compensated.append(step)
        else:
            done.manual[step] = reason
        self.events.emit("effect_settled", step=step, disposition=disposition)
