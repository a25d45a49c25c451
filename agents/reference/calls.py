"""The tool client: one logical call, from its first attempt to a result or to a failure that stands."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from agents.reference import errors, keys, retry
from agents.reference.breaker import Breakers, Ticket
from agents.reference.budget import Scope
from agents.reference.clock import Clock
from agents.reference.decisions import Decisions
from agents.reference.errors import Failure
from agents.reference.events import Events
from agents.reference.retry import RetryBudget
from agents.reference.tools import Tool
from agents.reference.transport import Loss, Reply, exchange

PATIENCE_S: Final = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Pauses between questions about a call that is still under way."""

REPEATS: Final = {"in_flight": len(PATIENCE_S), "silent": 2, "unknown": 0, "applied": 0}
"""How often the question is put again, by the last answer."""

REPEATS_TO_BE_SURE: Final = {**REPEATS, "unknown": 3}
"""The same where the answer `unknown` would settle the matter: a call may still be on its way."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to call, how often at most, and within which share of time.

    `attempts` were made already; `doubt` is how the last of them ended, if it may have taken effect.
    """

    tool: Tool
    arguments: Mapping[str, Any]
    key: str
    intent: str
    step: int
    scope: Scope
    label: str
    most: int = retry.MAX_ATTEMPTS
    attempts: int = 0
    doubt: Failure | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """How a call ended: `succeeded`, `failed` (surely nothing done), `uncertain`, or `refused` (never sent)."""

    state: str
    value: Any = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the service says about a key: `applied`, `in_flight`, `unknown`, or `silent` where it says nothing."""

    state: str
    value: Any = None


def _nothing(attempt: int) -> None:
    """What happens before an attempt that no ledger needs to know of."""


@dataclass(slots=True)
class ToolClient:
    """Calls the tool service as contract section 6 says."""

    url: str
    events: Events
    clock: Clock
    breakers: Breakers
    decisions: Decisions
    generation: int = 1
    budget: RetryBudget = field(default_factory=RetryBudget)

    def attempt_id(self, label: str, attempt: int) -> str:
        """A name for one attempt that no other attempt of the run has."""
        return f"{label}.g{self.generation}.a{attempt}"

    def perform(
        self,
        order: Order,
        *,
        begun: Callable[[int], None] = _nothing,
        budget: RetryBudget | None = None,
    ) -> Result:
        """Carry the order out. `begun` is told of every attempt before it starts, so that it can be written down.

        `budget` is the share of retries to draw on: the client's own by default.
        """
        attempt, failure = order.attempts, order.doubt
        while True:
            if failure is not None:
                if failure.may_have_taken_effect and order.tool.effectful:
                    answer = self.settle_doubt(order, attempt)
                    if answer.state == "applied":
                        return Result("succeeded", answer.value)
                    if answer.state == "in_flight":
                        return Result("uncertain", failure=failure)
                    if answer.state == "unknown" and order.tool.repeatable:
                        failure = failure.certain()
                if not self._again(order, attempt, failure, budget or self.budget):
                    return Result("uncertain" if failure.may_have_taken_effect else "failed", failure=failure)
            attempt += 1
            result = self._attempt(order, attempt, begun)
            if result.state == "succeeded":
                return result
            if result.state == "refused" and failure is not None:
                return Result("uncertain" if failure.may_have_taken_effect else "failed", failure=failure)
            if result.state == "refused" or result.failure is None:
                return result
            # A later attempt that surely did nothing does not clear an earlier one that may have.
            failure = result.failure.after(failure)

    def settle_doubt(self, order: Order, attempt: int, *, repeats: Mapping[str, int] = REPEATS) -> Answer:
        """Ask for the state of a call that may have taken effect, with patience while it is under way."""
        key = self._presented(order).key
        answer = Answer("silent")
        for asked, pause in enumerate((0.0, *PATIENCE_S)):
            if key is None or asked > repeats[answer.state] or not order.scope.fits(pause, self.clock.now()):
                break
            self.clock.sleep(pause)
            answer = self._ask(order, key)
        self.events.acted("outcome_query", step=order.step, tool=order.tool.name, attempt=attempt, state=answer.state)
        return answer

    def _presented(self, order: Order) -> keys.Presented:
        return self.decisions.present(order.tool, order.key, order.arguments)

    def _ask(self, order: Order, key: str) -> Answer:
        now = self.clock.now()
        try:
            reply = exchange(
                "GET",
                f"{self.url}/{quote(order.tool.name)}/status?key={quote(key, safe='')}",
                headers={"X-Agent-Deadline-Ms": _milliseconds(order.scope, now)},
                total_s=max(0.05, min(order.tool.need_s, order.scope.until - now)),
            )
            data = json.loads(reply.body)
        except (Loss, ValueError):
            return Answer("silent")
        state = data.get("state") if reply.status == 200 and isinstance(data, dict) else None
        return Answer(state, data.get("result")) if state in ("applied", "in_flight", "unknown") else Answer("silent")

    def _again(self, order: Order, attempt: int, failure: Failure, budget: RetryBudget) -> bool:
        """Decide on another attempt; if there is to be one, say so and wait."""
        now = self.clock.now()
        tried = retry.Tried(order.key, attempt, failure, order.tool.repeatable, order.tool.need_s, order.most)
        decision = retry.decide(tried, order.scope, now)
        common = {"step": order.step, "tool": order.tool.name}
        if isinstance(decision, retry.Enough):
            if decision.reason == "deadline":
                refused = self.attempt_id(order.label, attempt + 1)
                self.events.emit("tool_call_refused", **common, reason="budget", attempt_id=refused)
            return False
        if not budget.take(now):
            self.events.emit("budget_exhausted", **common, budget="retry")
            return False
        self.events.emit(
            "retry_scheduled",
            **common,
            reason=failure.kind,
            delay_s=round(decision.delay_s, 4),
            cap_s=decision.cap_s,
            attempt=attempt + 1,
            server_directed=decision.server_directed,
            retry_budget_left=budget.left(now),
        )
        self.clock.sleep(decision.delay_s)
        return True

    def _attempt(self, order: Order, attempt: int, begun: Callable[[int], None]) -> Result:
        """One attempt: refused, or sent and judged."""
        tool = order.tool
        attempt_id = self.attempt_id(order.label, attempt)
        now = self.clock.now()
        scope = self.decisions.attempt_scope(order.scope, attempt, now)
        common = {
            "step": order.step,
            "tool": tool.name,
            "attempt_id": attempt_id,
            "intent_id": order.intent,
        }
        if not scope.fits(tool.need_s, now):
            self.events.emit("tool_call_refused", **common, reason="budget", need_s=tool.need_s)
            message = f"{tool.name} needs {tool.need_s:g} s, and less is left"
            return Result("refused", failure=Failure("budget_exhausted", message))
        begun(attempt)
        shown = self._presented(order)
        with self.breakers.entrance(tool.name) as ticket:
            if ticket is not None:
                self.events.emit(
                    "tool_call_started",
                    **common,
                    effectful=tool.effectful,
                    resource_group=tool.group,
                    tool_version=tool.version,
                    scope=scope.name,
                    # Now, not before the ledger was written: a slow disk must not look like more time.
                    deadline_remaining_s=round(scope.remaining(self.clock.now()), 4),
                    args_digest=keys.args_digest(tool, order.arguments),
                    idempotency_key=shown.key,
                )
        if ticket is None:
            self.events.emit("tool_call_refused", **common, reason="breaker")
            message = f"{tool.name} keeps failing and is left alone for now; do not ask again"
            return Result("refused", failure=Failure("unavailable", message))
        return self._send(order, shown, scope=scope, ticket=ticket, attempt_id=attempt_id)

    def _send(self, order: Order, shown: keys.Presented, *, scope: Scope, ticket: Ticket, attempt_id: str) -> Result:
        tool, now = order.tool, self.clock.now()
        self.budget.note_request(now)
        headers = {
            "Content-Type": "application/json",
            "X-Intent-Id": order.intent,
            "X-Attempt-Id": attempt_id,
            "X-Step": str(order.step),
            "X-Agent-Deadline-Ms": _milliseconds(scope, now),
            **({tool.intent_header: order.intent} if tool.intent_header else {}),
            **shown.headers,
        }
        healthy = False
        try:
            reply = exchange(
                "POST",
                f"{self.url}/{quote(tool.name)}",
                headers=headers,
                body=json.dumps(shown.body).encode(),
                total_s=tool.need_s,
            )
            outcome, result = self._judge(reply)
            healthy = reply.status < 500
        except Loss as loss:
            failure = self.decisions.judge_loss(loss)
            outcome = "timeout" if loss.kind == "timeout" else "unknown" if loss.sent else "error"
            result = Result("failed", failure=failure)
        finally:
            self.breakers.report(ticket, healthy=healthy)
        self.events.emit(
            "tool_call_finished",
            step=order.step,
            tool=tool.name,
            attempt_id=attempt_id,
            intent_id=order.intent,
            outcome=outcome,
            error=result.failure.as_json() if result.failure else None,
        )
        return result

    def _judge(self, reply: Reply) -> tuple[str, Result]:
        if 200 <= reply.status < 300:
            try:
                value = json.loads(reply.body) if reply.body else None
            except ValueError:
                return "unknown", Result("failed", failure=errors.unreadable(reply))
            replayed = reply.headers.get("idempotent-replayed", "").lower() == "true"
            return "deduplicated" if replayed else "ok", Result("succeeded", value)
        failure = errors.from_reply(reply, self.clock.now())
        return "rejected" if failure.rejected else "error", Result("failed", failure=failure)


def _milliseconds(scope: Scope, now: float) -> str:
    return str(int(scope.remaining(now) * 1000))
