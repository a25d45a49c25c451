"""The tool service: executes calls and collapses them by key. Decisions only; HTTP is in `tool_endpoint`.

It behaves as real services do: an `Idempotency-Key` names one effect per world, tenant and tool, a repeat is answered
from memory, the same key with other arguments gets 422 and a twin still under way 409 (IETF draft
idempotency-key-header). A call without a key is simply executed, also a second time: that is how agents without keys
come to charge twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.standins.ledger import Call, Effect, Ledger, Remembered
from harness.standins.recording import Answer
from harness.standins.results import business_id, id_path, own_id, synthesised, with_value
from harness.standins.runs import CALL_HEADER, CAUSE_HEADER, WIRE_HEADER, Run
from harness.standins.schema import faults
from traces.paths import MISSING
from traces.providers.sse import json_bytes
from traces.registry import Compensation, Tool

REPLAYED = {"Idempotent-Replayed": "true"}
_Slot = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP answer: status, body as JSON bytes, headers beyond the content type."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A call as it arrived: `call` for the ledger, the arguments, and which of the run's equal calls it is."""

    run: Run
    tool: Tool
    call: Call
    args: dict[str, Any]
    number: int


def error(
    status: int, kind: str, message: str, *, retryable: bool = False, may_have_taken_effect: bool = False
) -> Response:
    """An error in the shape of contract section 6."""
    again = 1.0 if retryable else None
    detail = {
        "kind": kind,
        "message": message,
        "retryable": retryable,
        "retry_after_s": again,
        "may_have_taken_effect": may_have_taken_effect,
    }
    return Response(status, json_bytes({"error": detail}), {"Retry-After": "1"} if retryable else {})


class ToolService:
    """Executes tool calls against a ledger. One instance serves all worlds; it holds nothing but keys under way."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._under_way: dict[_Slot, str | None] = {}

    async def call(self, run: Run, tool: Tool, args: Any, *, headers: Mapping[str, str]) -> Response:
        """Executes one call. `headers` are read in any case; `args` is whatever JSON the body held."""
        is_object = isinstance(args, dict)
        request = _request(run, tool, args if is_object else {}, headers)
        if not is_object:
            message = "the body must be a JSON object with the arguments of the tool"
            return self._refuse(request, error(400, "invalid_arguments", message))
        if not tool.effectful:
            await self._work(request)
            return self._read(request)
        if request.call.key is None:
            await self._work(request)
            return self._execute(request)
        return await self._collapse(request, request.call.key)

    def status(self, run: Run, tool: Tool, key: str) -> Response:
        """What is known of the effect under a key: `applied` with its result, `in_flight`, or `unknown`."""
        key = _plain(key)
        call = Call(world=run.world, run_id=run.run_id, tenant=run.tenant, tool=tool.name, key=key)
        found = self._ledger.remembered(call)
        if found is not None:
            return Response(200, b'{"state":"applied","result":' + found.body + b"}")
        under_way = (run.world, run.tenant, tool.name, key) in self._under_way
        return Response(200, json_bytes({"state": "in_flight" if under_way else "unknown", "result": None}))

    async def _collapse(self, request: Request, key: str) -> Response:
        """A call with a key: at most one effect under it."""
        call = request.call
        known = self._ledger.remembered(call)
        slot = (call.world, call.tenant, call.tool, key)
        if known is None and slot not in self._under_way:
            self._under_way[slot] = call.args_digest
            try:
                await self._work(request)
                return self._execute(request)
            finally:
                del self._under_way[slot]
        if (known.args_digest if known is not None else self._under_way[slot]) != call.args_digest:
            message = f"the key {key!r} was used for this tool before, with other arguments"
            return self._refuse(request, error(422, "key_reused", message))
        if known is not None:
            return self._repeat(request, known, known.body)
        message = "a request with this key is being processed"
        answer = error(409, "in_flight", message, retryable=True, may_have_taken_effect=True)
        return self._refuse(request, answer)

    async def _work(self, request: Request) -> None:
        seconds = request.run.latency_s.get(request.tool.name, 0.0)
        if seconds > 0:
            await asyncio.sleep(seconds)

    def _execute(self, request: Request) -> Response:
        """Applies the effect of a call, or refuses it. Nothing is awaited between looking and committing."""
        run, tool, call = request.run, request.tool, request.call
        if run.over:
            return error(410, "run_over", "this run is over; nothing has been done")
        recorded = self._recorded(request)
        if recorded is not None and not recorded.ok:
            return self._refuse(request, Response(recorded.status, json_bytes(recorded.body)))
        wrong = faults(request.args, tool.args) if recorded is None else []
        if wrong:
            return self._refuse(request, error(400, "invalid_arguments", "; ".join(wrong)))
        answer = recorded or synthesised(tool, request.args, self._ledger.numbers(call).of_tool)
        if tool.idempotency == "natural" and (standing := self._ledger.standing(call)) is not None:
            # Setting what is set already changes nothing, so that it is no second effect.
            return self._repeat(request, standing, json_bytes(answer.body))
        undone, how = self._undone(request)
        if undone is None and recorded is None and run.registry.undoing(tool.name):
            message = f"{tool.name} found nothing that these arguments name"
            return self._refuse(request, error(404, "not_found", message))
        if undone is not None and how is not None and how.until_s is not None:
            age = time.time() - undone.t
            if age > how.until_s:
                message = f"this can be undone for {how.until_s:g} s; {age:.1f} s have passed"
                return self._refuse(request, error(410, "expired", message))
        return self._apply(request, answer, undone)

    def _apply(self, request: Request, answer: Answer, undone: Effect | None) -> Response:
        tool, call, body = request.tool, request.call, answer.body
        base = business_id(tool, body)
        named = own_id(self._ledger, call, base)
        path = id_path(tool)
        if named != base and path is not None:
            body = with_value(body, path, named)
        encoded = json_bytes(body)
        compensates = undone.effect_id if undone is not None else None
        self._ledger.apply(call, encoded, compensates=compensates, base_id=base, business_id=named)
        return Response(answer.status, encoded)

    def _read(self, request: Request) -> Response:
        """A tool that changes nothing leaves no trace in the ledger."""
        recorded = self._recorded(request)
        if recorded is None:
            wrong = faults(request.args, request.tool.args)
            if wrong:
                return error(400, "invalid_arguments", "; ".join(wrong))
            recorded = synthesised(request.tool, request.args, 1)
        return Response(recorded.status, json_bytes(recorded.body))

    def _recorded(self, request: Request) -> Answer | None:
        """The recorded answer to this call. A call that failed in the recording and was then retried there gets the
        next recorded answer on its next attempt. Arguments that stand in the recording were good for the real
        service, so that the schema is not asked about them."""
        run, name, args_digest = request.run, request.tool.name, str(request.call.args_digest)
        call = (name, args_digest, request.number)
        answer = run.recording.answer(name, args_digest, call=request.number, attempt=run.refusals[call] + 1)
        if answer is not None and not answer.ok:
            run.refusals[call] += 1
        return answer

    def _undone(self, request: Request) -> tuple[Effect | None, Compensation | None]:
        """The effect that this call undoes, and how: the one whose result has the id that its argument names.

        One that is undone already is found again: whether an undo is safe to repeat is for the verdict to say.
        """
        for tool in request.run.registry.undoing(request.tool.name):
            how = tool.compensation
            if how is None:
                continue
            if how.of_arg is None:
                # The registry does not say which effect is meant; an undo without an address is for the last one.
                found = self._ledger.last_of_run(request.call, tool.name)
            else:
                named = how.of_arg.find(request.args)
                found = None if named is MISSING else self._ledger.forward(request.call, tool.name, named)
            if found is not None:
                return found, how
        return None, None

    def _repeat(self, request: Request, known: Effect | Remembered, body: bytes) -> Response:
        self._ledger.note(request.call, "deduplicated", earlier=known)
        return Response(200, body, REPLAYED)

    def _refuse(self, request: Request, answer: Response) -> Response:
        if request.tool.effectful and not request.run.over:
            self._ledger.note(request.call, "rejected")
        return answer


def _request(run: Run, tool: Tool, args: dict[str, Any], headers: Mapping[str, str]) -> Request:
    number = headers.get(CALL_HEADER, "")
    key = tool.key_of(args, headers) if tool.idempotency == "keyed" else None
    call = Call(
        world=run.world,
        run_id=run.run_id,
        tenant=run.tenant,
        tool=tool.name,
        args_digest=tool.args_digest(args),
        key=None if key is None else _plain(key),
        wire=headers.get(WIRE_HEADER) or None,
        caused_by=headers.get(CAUSE_HEADER) or None,
    )
    return Request(run=run, tool=tool, call=call, args=args, number=int(number) if number.isdecimal() else 1)


def _plain(text: str) -> str:
    """Text that SQLite and UTF-8 can hold: lone surrogates become escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
