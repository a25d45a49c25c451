"""The wire's view of a run: boundary crossings become records (contract section 3).

Pure: times come in as Unix seconds, taken where each boundary is crossed; what comes out are the fields of records in
the order in which they became known. Outcomes are told as far as the agent could see them: an answer that was cut or
lost on the way is `unknown`, one that the agent did not wait for a `timeout`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from injectors.core import Fault, Place, Reply, Request
from injectors.intents import Ask, Attempt, ModelCalls, ToolCalls
from injectors.moment import header_of
from traces import digest
from traces.bodies import arguments_in
from traces.json_bodies import shallow
from traces.providers.turn import ToolCall, Turn, best_guess
from traces.registry import DEFAULT_KEY_HEADER, Registry

Fields = dict[str, Any]

_STEP_DIGITS = 9
_RETRYABLE_4XX = frozenset({408, 425, 429})
_ERROR_FIELDS: dict[str, type | tuple[type, ...]] = {
    "kind": str,
    "message": str,
    "retryable": bool,
    "retry_after_s": (int, float),
    "may_have_taken_effect": bool,
    "model_message": str,
}


@dataclass(slots=True)
class Exchange:
    """One request of the agent and what becomes of it. `wire` is its id in this run."""

    wire: str
    request: Request
    place: Place
    arrived: float
    common: Fields
    """What its start and its finish have in common."""
    start: Fields = field(default_factory=dict)
    attempt: Attempt | None = None
    turn_number: int = 0
    connection: str = ""
    """Id of the connection it came on; the driver's business."""
    started: bool = False
    finished: bool = False

    @property
    def ordinal(self) -> int:
        """Which of the run's equal calls it is, from 1."""
        return self.attempt.ordinal if self.attempt else 1


class Wire:
    """Keeps the records of one run. `intent_id` is the run's own; equal calls beyond the first get one derived."""

    def __init__(
        self,
        *,
        run_id: str,
        registry: Registry,
        intent_id: str | None = None,
        wanted: Mapping[tuple[str, str], int] | None = None,
    ) -> None:
        groups = {tool.name: tool.resource_group for tool in registry.tools.values() if tool.resource_group}
        self.records: list[Fields] = []
        self._run_id = run_id
        self._registry = registry
        self._intent_id = intent_id
        self._model_calls = ModelCalls()
        self._tool_calls = ToolCalls(groups, wanted)
        self._attempt_ids: set[str] = set()

    def meet(self, request: Request, *, wire: str, t: float) -> Exchange:
        """A request has arrived: tell which attempt of which call it is."""
        return self._meet_model(request, wire, t) if request.api else self._meet_tool(request, wire, t)

    def started(self, exchange: Exchange) -> None:
        """The request is passed on, or dealt with in its place.

        The record stands where the request arrived, whatever held it since: then the agent sent it, under the
        deadline that it carries, with the calls in flight that there were.
        """
        if not exchange.started:
            exchange.started = True
            self._write("_started", exchange, exchange.arrived, exchange.start)

    def answered(self, exchange: Exchange, reply: Reply, t: float, *, broken: bool = False) -> None:
        """The agent gets this answer; `broken`: only so much of it, ended in some way that is no good end."""
        if exchange.finished:
            return
        exchange.finished = True
        if exchange.request.api:
            self._model_answered(exchange, reply, t, broken=broken)
        else:
            self._tool_answered(exchange, reply, t, broken=broken)

    def lost(self, exchange: Exchange, outcome: str, t: float) -> None:
        """The agent gets nothing: `unknown` where the connection ended, `timeout` where the agent left first."""
        if exchange.finished:
            return
        exchange.finished = True
        self.started(exchange)
        self._write("_finished", exchange, t, {"outcome": outcome})
        self._settle(exchange, outcome)

    def struck(self, exchange: Exchange, fault: Fault, t: float) -> None:
        """A fault has acted; `t` is the instant before."""
        self.records.append(
            {
                "type": "fault_injected",
                "t": t,
                "run_id": self._run_id,
                "source": "harness",
                "scenario": fault.scenario,
                "layer": fault.layer,
                "kind": fault.kind,
                "site": str(exchange.place),
                "wire": exchange.wire,
            }
        )

    def asked_for_outcome(self, tool: str, key: str | None, t: float) -> None:
        """The agent has asked what became of an earlier call: a mechanism at work, not a call."""
        fields = {"name": "outcome_query", "source": "wire", "tool": tool, "idempotency_key": key or None}
        self.records.append({"type": "mechanism_acted", "t": t, "run_id": self._run_id, **_present(fields)})

    # ------------------------------------------------------------------------------------------ model calls

    def _meet_model(self, request: Request, wire: str, t: float) -> Exchange:
        place = self._model_calls.attempt(hashlib.sha256(request.body).hexdigest())
        common = {"step": _step(request, place.call), "wire": wire, "attempt": place.attempt}
        return Exchange(wire, request, place, t, common, turn_number=place.call)

    def _model_answered(self, exchange: Exchange, reply: Reply, t: float, *, broken: bool) -> None:
        provider = exchange.request.provider
        turn = Turn(stop_reason=None, complete=False)
        if provider is not None:
            turn = provider.read_reply(reply.status, reply.header("content-type"), reply.body)
        fields: Fields = {
            "outcome": _model_outcome(reply.status, turn, broken=broken),
            "http_status": reply.status,
            "retry_after_s": retry_after(reply, t),
            "input_tokens": turn.input_tokens or None,
            "output_tokens": turn.output_tokens or None,
            "complete": turn.complete if reply.status < 400 else None,
        }
        self._write("_finished", exchange, t, fields)
        for call in turn.tool_calls:
            self._model_said(exchange, call, t, complete=turn.complete and call.whole)
        if turn.complete and exchange.turn_number not in self._model_calls.heard:
            self._model_calls.heard.add(exchange.turn_number)
            self._tool_calls.asked(exchange.turn_number, [self._ask(call) for call in turn.tool_calls])

    def _ask(self, call: ToolCall) -> Ask:
        tool, args = self._registry.tools.get(call.name), call.arguments
        meaning = (tool.intent_digest(args) or tool.args_digest(args)) if tool else digest.args_digest(args)
        return Ask(call.name, meaning, args)

    def _model_said(self, exchange: Exchange, call: ToolCall, t: float, *, complete: bool) -> None:
        # Of a cut call the digest is over what a lenient reader takes it for: that is what would be executed.
        args = best_guess(call)
        tool = self._registry.tools.get(call.name)
        fields = {
            "source": "wire",
            "step": exchange.common["step"],
            "tool": call.name,
            "args_digest": tool.args_digest(args) if tool else digest.args_digest(args),
            "intent_digest": tool.intent_digest(args) if tool else None,
            "complete": complete,
            "args": args,
        }
        self.records.append({"type": "model_tool_call", "t": t, "run_id": self._run_id, **_present(fields)})

    # ------------------------------------------------------------------------------------------- tool calls

    def _meet_tool(self, request: Request, wire: str, t: float) -> Exchange:
        tool = self._registry.tools.get(request.tool)
        args = _arguments(request)
        headers = dict(request.headers)
        key = tool.key_of(args, headers) if tool else header_of(request.headers, DEFAULT_KEY_HEADER.lower())
        args_digest = tool.args_digest(args) if tool else digest.args_digest(args)
        intent_digest = tool.intent_digest(args, headers) if tool else None
        # An intent that travels in a header is a claim of the agent: it goes on record, and tells nothing apart.
        declared = intent_digest if tool and tool.intent and tool.intent.header is None else None
        attempt = self._tool_calls.attempt(request.tool, declared or args_digest, key=key, args=args)
        common = _present(
            {
                "tool": request.tool,
                "tool_version": str(tool.version) if tool else None,
                "attempt_id": self._attempt_id(request, wire),
                "wire": wire,
                "step": _step(request, attempt.call.turn or self._model_calls.latest),
                "attempt": attempt.place.attempt,
                "idempotency_key": key,
                "intent_id": self._intent(attempt.ordinal),
                "args_digest": args_digest,
                "intent_digest": intent_digest,
                "resource_group": tool.resource_group if tool else None,
            }
        )
        start = _present(
            {
                "effectful": tool.effectful if tool else False,
                "deadline_remaining_s": _deadline_s(request),
                "args": args,
            }
        )
        return Exchange(wire, request, attempt.place, t, common, start, attempt)

    def _tool_answered(self, exchange: Exchange, reply: Reply, t: float, *, broken: bool) -> None:
        outcome, error = ("unknown", None) if broken else _tool_outcome(reply)
        fields = {
            "outcome": outcome,
            "error": error,
            "http_status": reply.status,
            "retry_after_s": retry_after(reply, t),
        }
        self._write("_finished", exchange, t, fields)
        self._settle(exchange, outcome)

    def _intent(self, ordinal: int) -> str | None:
        if not self._intent_id or ordinal == 1:
            return self._intent_id or None
        return f"{self._intent_id}#{ordinal}"

    def _attempt_id(self, request: Request, wire: str) -> str:
        claimed = header_of(request.headers, "x-attempt-id") or wire
        chosen = wire if claimed in self._attempt_ids else claimed
        self._attempt_ids.add(chosen)
        return chosen

    # --------------------------------------------------------------------------------------------- both

    def _settle(self, exchange: Exchange, outcome: str) -> None:
        if exchange.attempt is not None:
            self._tool_calls.ended(exchange.attempt, outcome)

    def _write(self, ending: str, exchange: Exchange, t: float, fields: Fields) -> None:
        kind = ("model_call" if exchange.request.api else "tool_call") + ending
        head = {"type": kind, "t": t, "run_id": self._run_id, "source": "wire"}
        self.records.append(head | exchange.common | _present(fields))


def retry_after(reply: Reply, now: float) -> float | None:
    """What a `Retry-After` asks for, in seconds from `now` (Unix time); `None` where it is absent or garbage."""
    said = reply.header("retry-after").strip()
    if not said:
        return None
    if said.isascii() and said.isdigit():
        return seconds if math.isfinite(seconds := float(said)) else None
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _model_outcome(status: int, turn: Turn, *, broken: bool) -> str:
    if status >= 400:
        return "error"
    if broken or turn.stop_reason is None:
        return "unknown"
    return "ok" if turn.complete else "truncated" if turn.stop_reason == "max_tokens" else turn.stop_reason


def _tool_outcome(reply: Reply) -> tuple[str, Fields | None]:
    if reply.status < 400:
        replayed = reply.header("idempotent-replayed").lower() == "true"
        return ("deduplicated" if replayed else "ok"), None
    error = _error_of(reply)
    retryable = error.get("retryable", reply.status >= 500 or reply.status in _RETRYABLE_4XX)
    definite = reply.status < 500 and reply.status not in _RETRYABLE_4XX and not retryable
    return ("rejected" if definite else "error"), error


def _error_of(reply: Reply) -> Fields:
    try:
        said = shallow(msgspec.json.decode, reply.body)["error"]
    except (ValueError, KeyError, TypeError):
        said = None
    if not isinstance(said, dict):
        return {"kind": f"http_{reply.status}"}
    wanted = {name: said.get(name) for name in _ERROR_FIELDS}
    kept = {name: value for name, value in wanted.items() if isinstance(value, _ERROR_FIELDS[name])}
    return {"kind": f"http_{reply.status}"} | kept


def _arguments(request: Request) -> Any:
    """The arguments of a tool call as the service reads them; what it refuses is kept as text."""
    try:
        return arguments_in(request.body, request.path.partition("?")[2])
    except ValueError:
        return request.body.decode("utf-8", "replace")


def _step(request: Request, otherwise: int | None) -> int | None:
    said = header_of(request.headers, "x-step") or ""
    return int(said) if said.isascii() and said.isdigit() and len(said) <= _STEP_DIGITS else otherwise


def _deadline_s(request: Request) -> float | None:
    said = header_of(request.headers, "x-agent-deadline-ms")
    try:
        seconds = float(said or "nan") / 1000
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) else None


def _present(fields: Fields) -> Fields:
    return {name: value for name, value in fields.items() if value is not None}
