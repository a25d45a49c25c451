"""Steps: from what the model wants to planned actions, and from planned actions to results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from agents.reference import keys, preflight, saga
from agents.reference.budget import Account, Scope, exhausted
from agents.reference.calls import Order, Result, ToolClient
from agents.reference.clock import Clock
from agents.reference.errors import Failure
from agents.reference.events import Events
from agents.reference.ledger import Action, Ledger
from agents.reference.model import Said
from agents.reference.pool import Job, in_parallel, waiting
from agents.reference.task import Limits
from agents.reference.tools import Toolbox
from agents.reference.turn import Wanted

_INTERRUPTED: Final = Failure("interrupted", "the process ended during this call", True, True)
_HELD_BACK: Final = Failure("held_back", "not started, since an earlier action did not succeed")
_FREE: Final = ("failed", "refused", "skipped")
_OPEN: Final = ("declared", "pending")


@dataclass(frozen=True, slots=True)
class Steps:
    """Plans and carries out the steps of one run."""

    tenant: str
    intent: str
    limits: Limits
    toolbox: Toolbox
    ledger: Ledger
    client: ToolClient
    events: Events
    clock: Clock
    scope: Scope

    def plan(self, said: Said, account: Account) -> None:
        """Store the turn with its actions. Raises `RunStopped` where they pass the step limit: then none is made."""
        before = self.ledger.actions()
        first = before[-1].step + 1 if before else 1
        if first - 1 + len(said.calls) > self.limits.steps:
            for call in said.calls:
                self.events.emit("tool_call_refused", tool=call.name, reason="budget", attempt_id=f"x.{call.id}")
            raise exhausted("steps", f"{first - 1} of {self.limits.steps} taken, {len(said.calls)} more wanted")
        turn = len(self.ledger.turns()) + 1
        planned: list[Action] = []
        for step, call in enumerate(said.calls, start=first):
            planned.append(self._action(step, turn, call, before=[*before, *planned]))
        message = {
            "text": said.text,
            "calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in said.calls],
        }
        self.ledger.plan(message, planned, account.as_json())
        if planned:
            self.events.emit("plan_created", actions=[self._planned(action) for action in planned])
        for action in planned:
            if action.failure is not None:
                self._say_refused(action)

    def _action(self, step: int, turn: int, call: Wanted, *, before: Sequence[Action]) -> Action:
        tool = self.toolbox.any(call.name)
        meant = keys.identity(tool, call.arguments)
        equal = [
            keys.Earlier(action.ordinal, action.state in _FREE)
            for action in before
            if action.tool == call.name and keys.identity(tool, action.arguments) == meant
        ]
        ordinal = keys.next_ordinal(equal)
        refusal = preflight.examine(
            tool,
            call.arguments,
            failed_before=failures_in_a_row(before, call.name),
            offered=self.toolbox.names,
        )
        return Action(
            step=step,
            turn=turn,
            call_id=call.id,
            tool=call.name,
            arguments=call.arguments,
            ordinal=ordinal,
            key=keys.forward_key(tool, call.arguments, tenant=self.tenant, intent=self.intent, ordinal=ordinal),
            intent=keys.action_intent(self.intent, call.name, ordinal),
            state="declared" if refusal is None else "refused",
            failure=None if refusal is None else refusal.failure,
        )

    def _planned(self, action: Action) -> Mapping[str, Any]:
        digest = keys.args_digest(self.toolbox.any(action.tool), action.arguments)
        return {"step": action.step, "tool": action.tool, "args_digest": digest}

    def carry_out(self, turn: int) -> saga.Stop | None:
        """Carry out what the turn planned and is not done yet; a stop where a step leaves no way forward.

        Neighbouring reads go side by side, writes one at a time and in the order of the plan.
        """
        for group in self._groups(turn):
            actions = self.ledger.actions()
            ready = [action for action in group if saga.may_start(action, actions, self.toolbox.any)]
            for action in group:
                if action not in ready and action.state in _OPEN:
                    self._hold_back(action)
            self._run([action for action in ready if action.state in _OPEN])
            for action in group:
                stop = self._after(action.step)
                if stop is not None:
                    return stop
        return saga.held_up(self.ledger.actions(), turn, self.toolbox.any)

    def _groups(self, turn: int) -> list[list[Action]]:
        groups: list[list[Action]] = []
        together = False
        for action in self.ledger.actions():
            if action.turn != turn or action.state == "skipped":
                continue
            reads = not self.toolbox.any(action.tool).effectful
            if reads and together:
                groups[-1].append(action)
            else:
                groups.append([action])
            together = reads
        return groups

    def _run(self, actions: Sequence[Action]) -> None:
        jobs = [Job(partial(self._perform, action), self.toolbox.any(action.tool).group) for action in actions]
        limit, groups = self.limits.max_concurrency, self.limits.group_concurrency
        for index in waiting(jobs, limit=limit, groups=groups):
            late = actions[index]
            self.events.emit(
                "tool_call_queued",
                step=late.step,
                tool=late.tool,
                attempt_id=self.client.attempt_id(f"s{late.step}", late.attempts + 1),
                resource_group=jobs[index].group,
            )
        in_parallel(jobs, limit=limit, groups=groups)

    def _perform(self, action: Action) -> None:
        tool = self.toolbox.any(action.tool)
        order = Order(
            tool=tool,
            arguments=action.arguments,
            key=action.key,
            intent=action.intent,
            step=action.step,
            scope=self.scope,
            label=f"s{action.step}",
            attempts=action.attempts,
            doubt=_INTERRUPTED if action.state == "pending" else None,
        )

        def begun(attempt: int) -> None:
            if tool.effectful and self.ledger.begin(action.step, attempt):
                self.events.acted("write_ahead", step=action.step, tool=tool.name, attempt=attempt)

        result: Result = self.client.perform(order, begun=begun)
        self.ledger.settle(
            action.step, result.state, at=self.clock.now(), result=result.value, failure=result.failure
        )

    def _after(self, step: int) -> saga.Stop | None:
        actions = self.ledger.actions()
        action = next(one for one in actions if one.step == step)
        tool = self.toolbox.any(action.tool)
        if action.state == "succeeded":
            for undone, by in saga.undone_by_plan(actions, self.toolbox.any).items():
                if by == step:
                    self.events.emit("effect_settled", step=undone, disposition="compensated")
        repairs_left = tool.self_repair + 1 - failures_in_a_row(actions, action.tool)
        if action.failure is None or not saga.ends_the_run(action, tool, repairs_left=repairs_left):
            return None
        wanted = step if tool.effectful and self.toolbox.offered(tool.name) else None
        budget = "wall_clock" if action.failure.kind == "budget_exhausted" else None
        return saga.Stop(action.failure, wanted, budget)

    def _hold_back(self, action: Action) -> None:
        self.ledger.settle(action.step, "skipped", at=self.clock.now(), failure=_HELD_BACK)
        self.events.emit(
            "tool_call_refused", step=action.step, tool=action.tool, reason="preflight", detail=_HELD_BACK.kind
        )

    def _say_refused(self, action: Action) -> None:
        kind = action.failure.kind if action.failure else ""
        reason = {"self_repair_exhausted": "limit", "confirmation_needed": "confirmation"}.get(kind, "preflight")
        self.events.emit(
            "tool_call_refused",
            step=action.step,
            tool=action.tool,
            reason=reason,
            attempt_id=self.client.attempt_id(f"s{action.step}", 1),
            error=action.failure.as_json() if action.failure else None,
        )


def failures_in_a_row(actions: Sequence[Action], name: str) -> int:
    """Failures of a tool since its last success; calls held back do not count."""
    count = 0
    for action in actions:
        if action.tool == name and action.state in ("failed", "refused", "uncertain"):
            count += 1
        elif action.tool == name and action.state == "succeeded":
            count = 0
    return count
