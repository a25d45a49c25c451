"""The model client: one turn, asked for until it came whole or there is reason to stop."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agents.reference import errors, retry
from agents.reference.budget import MAX_OUTPUT, Account, Scope, exhausted
from agents.reference.clock import Clock
from agents.reference.decisions import Decisions
from agents.reference.errors import Failure, RunStopped
from agents.reference.events import Events
from agents.reference.retry import RetryBudget
from agents.reference.transport import Loss, Reply, exchange
from agents.reference.turn import Conversation, Turn, Wanted, Wire, sse_events

RESCUES: Final = 2
IDLE_SHARE: Final = 0.75
"""The longest silence, as a share of the time one call may take."""

_OVERLOAD: Final = frozenset({"overloaded_error", "rate_limit_error", "rate_limit_exceeded", "server_error"})


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: the conversation, the number of the turn, and the step that the answer may lead to."""

    conversation: Conversation
    turn: int
    next_step: int | None
    scope: Scope


@dataclass(frozen=True, slots=True)
class Said:
    """A usable turn: no calls means that the model is done."""

    text: str
    calls: tuple[Wanted, ...]


@dataclass(slots=True)
class ModelClient:
    """Speaks to one model. Its retries are its own: they draw on no tool's share."""

    wire: Wire
    url: str
    key: str
    model: str
    stream: bool
    need_s: float
    events: Events
    clock: Clock
    account: Account
    decisions: Decisions
    save: Callable[[Mapping[str, int]], None]
    """Stores what was spent; told before a call what it may cost, since its process may not live to see the bill."""
    generation: int = 1
    budget: RetryBudget = field(default_factory=RetryBudget)

    def ask(self, question: Question) -> Said:
        """The next turn. Raises `RunStopped` where none is to be had within time, tokens, cost and patience."""
        attempt = rescues = 0
        wanted = MAX_OUTPUT
        while True:
            attempt += 1
            answer = self._attempt(question, attempt, wanted)
            if isinstance(answer, Failure):
                self._wait_or_stop(question, attempt, answer)
                continue
            harvest = self.decisions.harvest(answer)
            if harvest.fault is None:
                return Said(answer.text, harvest.calls)
            rescues += 1
            if not harvest.rescuable or rescues > RESCUES:
                kind = "model_truncated" if harvest.rescuable else "model_stopped"
                raise RunStopped(Failure(kind, f"the model's answer is not usable: {harvest.fault}"))
            self.events.acted("truncation_rescue", fault=harvest.fault, attempt=attempt, executed=0)
            if harvest.fault == "max_tokens":
                wanted *= 2  # the same size again would only be cut again

    def _attempt(self, question: Question, attempt: int, wanted: int) -> Turn | Failure:
        now = self.clock.now()
        if not question.scope.fits(self.need_s, now):
            raise exhausted("wall_clock", f"less left than the model needs ({self.need_s:g} s)")
        draft = self._body(question, MAX_OUTPUT)
        estimate = self.account.estimate_input(len(draft))
        body = self._body(question, self.account.allow_output(estimate, wanted))
        common = {
            "attempt_id": f"m{question.turn}.g{self.generation}.a{attempt}",
            "step": question.next_step,
        }
        self.budget.note_request(now)
        self.account.pledge(estimate)
        self.save(self.account.as_json())
        self.events.emit("model_call_started", **common, input_tokens_estimated=estimate)
        answer, outcome = self._send(body, attempt, common)
        tokens_in, tokens_out = estimate, self.account.last_output
        if isinstance(answer, Turn) and answer.input_tokens is not None:
            tokens_in, tokens_out = answer.input_tokens, answer.output_tokens or 0
        elif isinstance(answer, Failure) and answer.answered:
            tokens_in = tokens_out = 0  # refused before it was read
        self.account.book(tokens_in, tokens_out)
        self.events.emit(
            "model_call_finished",
            **common,
            outcome=outcome,
            input_tokens=tokens_in,
            output_tokens=tokens_out,
            cost_usd=round(self.account.price(tokens_in, tokens_out), 8),
            error=answer.as_json() if isinstance(answer, Failure) else None,
        )
        return answer

    def _body(self, question: Question, max_tokens: int) -> bytes:
        body = self.wire.body(question.conversation, model=self.model, max_tokens=max_tokens, stream=self.stream)
        return json.dumps(body).encode()

    def _send(self, body: bytes, attempt: int, common: Mapping[str, Any]) -> tuple[Turn | Failure, str]:
        """One request. A stream that broke off is a turn without end; an answer that never began is a failure."""
        reader, buffer = self.wire.reader(), bytearray()
        headers = {
            "Content-Type": "application/json",
            "X-Attempt-Id": str(common["attempt_id"]),
            "X-Stainless-Retry-Count": str(attempt - 1),
            **({} if common["step"] is None else {"X-Step": str(common["step"])}),
            **self.wire.headers(self.key),
        }

        def sink(chunk: bytes) -> bool:
            return any(reader.event(name, data) for name, data in sse_events(buffer, chunk))

        try:
            reply = exchange(
                "POST",
                self.url + self.wire.path,
                headers=headers,
                body=body,
                total_s=self.need_s,
                idle_s=self.need_s * IDLE_SHARE,
                sink=sink if self.stream else None,
            )
        except Loss as loss:
            if loss.begun:
                return reader.turn(), "truncated"
            return errors.from_loss(loss), "timeout" if loss.kind == "timeout" else "error"
        if not 200 <= reply.status < 300:
            return errors.from_reply(reply, self.clock.now()), "error"
        turn = reader.turn() if self.stream else self._whole(reply)
        if turn.error is not None:
            kind, message = turn.error
            return Failure(kind, message, kind in _OVERLOAD, answered=False), "error"
        return turn, "ok" if turn.ended and turn.stop != "max_tokens" else "truncated"

    def _whole(self, reply: Reply) -> Turn:
        try:
            data = json.loads(reply.body)
        except ValueError:
            return Turn()
        return self.wire.read(data) if isinstance(data, dict) else Turn()

    def _wait_or_stop(self, question: Question, attempt: int, failure: Failure) -> None:
        """Wait for another attempt, or end the run in words: an overloaded model is no reason to improvise."""
        now = self.clock.now()
        tried = retry.Tried(f"model-{question.turn}", attempt, failure, True, self.need_s)
        decision = retry.decide(tried, question.scope, now)
        stopped = RunStopped(Failure(_kind(failure), failure.message, failure.retryable))
        if isinstance(decision, retry.Enough):
            raise stopped
        if not self.budget.take(now):
            self.events.emit("budget_exhausted", budget="retry")
            raise stopped
        self.events.emit(
            "retry_scheduled",
            reason=failure.kind,
            delay_s=round(decision.delay_s, 4),
            cap_s=decision.cap_s,
            attempt=attempt + 1,
            server_directed=decision.server_directed,
            retry_budget_left=self.budget.left(now),
        )
        self.clock.sleep(decision.delay_s)


def _kind(failure: Failure) -> str:
    if failure.status in errors.SERVER_DIRECTED or failure.kind in _OVERLOAD:
        return "model_overloaded"
    return "model_rejected" if failure.status is not None and not failure.retryable else "model_unavailable"
