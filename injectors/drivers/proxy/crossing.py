"""One request on its way through the proxy: what the plan decides is carried out here."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Protocol

from mitmproxy.http import Headers, HTTPFlow, Response
from mitmproxy.proxy.server import ConnectionHandler

from injectors.actions import Action, CutAt, Delay, Disconnect, KeepSilent, KillAgent, Replace, Respond
from injectors.core import Fault, Moment, Point, Reply
from injectors.drivers.proxy.guard import told
from injectors.drivers.proxy.run import DriverError, Run, first_of
from injectors.drivers.proxy.sockets import ClientGoneError, cut_bytes, deliver, kill, raw_answer, reset, writer_of
from injectors.replies import reason_of
from injectors.routing import Route
from injectors.wire import Exchange
from traces.providers import EventReader

_OURS = b"x-stormproof-"
_NOT_FORWARDED = frozenset({b"accept-encoding", b"host", b"proxy-authorization", b"proxy-connection"})


class Surroundings(Protocol):
    """What a crossing needs of the proxy around it."""

    def handler(self, flow: HTTPFlow) -> ConnectionHandler | None: ...
    def gone(self, flow: HTTPFlow) -> asyncio.Event: ...
    def sending(self, flow: HTTPFlow, run: Run, wire: str) -> None: ...
    def failed(self, subject: Any, why: str) -> None: ...
    async def kill_agent(self, run: Run, wire: str) -> None: ...


class Crossing:
    """A flow of a run, from the arrival of its request to the end of its answer."""

    __slots__ = ("_around", "_late", "_unconfirmed", "armed", "exchange", "flow", "reply", "route", "run")

    def __init__(self, around: Surroundings, flow: HTTPFlow, run: Run, route: Route, exchange: Exchange) -> None:
        self._around, self.flow, self.run, self.route, self.exchange = around, flow, run, route, exchange
        faults = run.plan.armed(exchange.place) if run.plan.faults else ()
        self.armed = bool(faults)
        self._late = any(fault.strikes_at is not Point.BEFORE_SEND for fault in faults)
        self.reply: Reply | None = None
        self._unconfirmed: tuple[Fault, float] | None = None
        """A fault whose answer stands ready but has not left yet."""

    @property
    def holds_answer(self) -> bool:
        """Whether the answer has to be here as a whole before any of it is passed on."""
        return self._late or self._unconfirmed is not None

    # --------------------------------------------------------------------------------- what hooks ask for

    async def before_send(self) -> None:
        """The request is here and a fault may want it."""
        if await self._decide(Point.BEFORE_SEND) and self.flow.response is None:
            self.forward()

    def forward(self) -> None:
        """Send the request on its way upstream."""
        self.run.wire.started(self.exchange)
        forward(self.flow, self.run, self.route, wire=self.exchange.wire, ordinal=self.exchange.ordinal)
        self._around.sending(self.flow, self.run, self.exchange.wire)

    def pass_live(self) -> None:
        """Let a stream pass as it comes, and take note when its last event goes by."""
        provider, reader, body = self.exchange.request.provider, EventReader(), bytearray()

        def look(chunk: bytes) -> None:
            body.extend(chunk)
            ends = [event for event in reader.feed(chunk) if provider is not None and provider.is_terminal(event)]
            if (ends or not chunk) and not self.exchange.finished:
                self._answered(view(self.flow, bytes(body)), broken=provider is not None and not ends)

        def passing(chunk: bytes) -> bytes | list[bytes]:
            try:
                look(chunk)
            except Exception as error:  # noqa: BLE001 - raised in here, it would only be logged
                self._around.failed(self.flow, told("stream", error))
                reset(writer_of(self._around.handler(self.flow), self.flow.client_conn))
                return []
            return chunk

        if self.flow.response is not None:
            self.flow.response.stream = passing

    async def after_effect(self) -> None:
        """The answer is here as a whole, or was made up, and a fault may want it."""
        if self._unconfirmed is None:
            self.reply = view(self.flow)
            if not await self._decide(Point.AFTER_EFFECT):
                return
        if self.reply is None:
            raise DriverError("there is no answer to pass on")
        self._answered(self.reply)
        if self._unconfirmed is not None:
            self.run.struck(self.exchange, *self._unconfirmed)
        if not await self._decide(Point.AFTER_REPLY):
            return
        self.over()

    def answered(self) -> None:
        """The answer is here and no fault can want it."""
        if not self.exchange.finished:
            self._answered(view(self.flow))
        self.over()

    def over(self) -> None:
        """Nothing more will come of this exchange."""
        self.run.open.pop(self.exchange.wire, None)

    # ------------------------------------------------------------------------------------------- carrying out

    async def _decide(self, point: Point) -> bool:
        """Ask the plan and carry out what it says. True where the attempt goes on."""
        moment = Moment(point, self.exchange.place, self.exchange.request, self.reply)
        for decision in self.run.plan.decide(moment):
            t = time.time()
            try:
                for action in decision.actions:
                    outcome = await self._act(action, decision.fault, t)
                    if outcome is not None:
                        self.run.struck(self.exchange, decision.fault, t)
                        self._end(outcome)
                        return False
            except ClientGoneError:
                self._end("timeout")  # before anything could be done to it: the fault has not fired
                return False
            if self._unconfirmed is None:
                self.run.struck(self.exchange, decision.fault, t)
        return True

    async def _act(self, action: Action, fault: Fault, t: float) -> str | None:
        """Carry out one action. Returns the outcome where it was the last of this attempt, else `None`."""
        if isinstance(action, Delay):
            return await self._delay(action.seconds)
        self.run.wire.started(self.exchange)
        match action:
            case Respond(reply):
                self._set_reply(reply)
                self._unconfirmed = (fault, t)
                return None
            case Replace(reply):
                self._set_reply(reply)
                return None
            case KeepSilent():
                return await self._keep_silent()
            case Disconnect(end):
                writer = self._writer()
                if end == "rst":
                    reset(writer)
                return "unknown"
            case CutAt():
                return await self._cut(action)
            case KillAgent():
                return await self._kill()
        raise DriverError(f"the proxy cannot carry out {action!r} of `{fault.kind}`")

    async def _delay(self, seconds: float) -> str | None:
        gone = self._around.gone(self.flow)
        await first_of(gone, self.run.closing, limit_s=seconds)
        return "timeout" if gone.is_set() or self.run.closing.is_set() else None

    async def _keep_silent(self) -> str:
        self._writer()
        await first_of(self._around.gone(self.flow), self.run.closing)
        return "timeout"

    async def _cut(self, action: CutAt) -> str:
        writer = self._writer()
        sent = Reply(action.reply.status, action.reply.headers, action.reply.body[: action.size])
        self._answered(sent, broken=True)
        await deliver(writer, cut_bytes(action.reply, action.size, action.end))
        if action.end == "rst":
            reset(writer)
        if action.end == "silence":
            await first_of(self._around.gone(self.flow), self.run.closing)
        return "unknown"

    async def _kill(self) -> str:
        if self.exchange.finished and self.flow.response is not None:
            # After the reply: all of it has to be the agent's before it dies.
            await deliver(self._writer(), raw_answer(self.flow.response))
        await self._around.kill_agent(self.run, self.exchange.wire)
        return "unknown"

    def _set_reply(self, reply: Reply) -> None:
        self.reply = reply
        self.flow.response = response(reply)

    def _writer(self) -> asyncio.StreamWriter:
        return writer_of(self._around.handler(self.flow), self.flow.client_conn)

    def _answered(self, reply: Reply, *, broken: bool = False) -> None:
        self.run.wire.answered(self.exchange, reply, time.time(), broken=broken)

    def _end(self, outcome: str) -> None:
        """Let mitmproxy send nothing (more) and close the connection, unless that is done already."""
        self.run.wire.lost(self.exchange, outcome, time.time())
        self.over()
        kill(self.flow)


def forward(flow: HTTPFlow, run: Run, route: Route, *, wire: str | None = None, ordinal: int = 0) -> None:
    """Point the request at its upstream and mark it with our ids; what the agent said in their place is dropped."""
    upstream = run.upstreams[route.target]
    request = flow.request
    host = f"{upstream.host}:{upstream.port}"
    ours = [("host", host), ("x-stormproof-run", run.run_id)]
    if run.secret:
        ours.append(("x-stormproof-secret", run.secret))
    if wire is not None:
        ours.append(("x-stormproof-wire", wire))
    if ordinal and route.target == "tools":
        ours.append(("x-stormproof-call", str(ordinal)))
    kept = [
        (name, value)
        for name, value in request.headers.fields
        if not (low := name.lower()).startswith(_OURS) and low not in _NOT_FORWARDED
    ]
    request.headers = Headers([*((name.encode(), value.encode("utf-8")) for name, value in ours), *kept])
    # Set below the properties, each of which would write the host header again.
    request.data.scheme, request.data.host, request.data.port = b"http", upstream.host, upstream.port
    request.data.path = (upstream.base + route.path).encode("utf-8", "surrogateescape")


def view(flow: HTTPFlow, body: bytes | None = None) -> Reply:
    """The answer of a flow, decoded; headers about its coding are left out."""
    answer = flow.response
    if answer is None:
        raise DriverError("the flow has no answer")
    headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in answer.headers.fields]
    if body is None:
        body = answer.raw_content or b""
        if any(name == "content-encoding" for name, _ in headers):
            body = answer.get_content(strict=False) or b""
            headers = [(name, value) for name, value in headers if name != "content-encoding"]
    return Reply(answer.status_code, tuple(headers), body)


def response(reply: Reply) -> Response:
    """An answer that mitmproxy can send. The connection ends with it, so that nothing leaks into the next call."""
    kept = [
        (name.encode(), value.encode("latin-1", "replace"))
        for name, value in reply.headers
        if name not in ("content-length", "transfer-encoding", "connection", "keep-alive")
    ]
    made = Response.make(reply.status, reply.body, Headers([*kept, (b"connection", b"close")]))
    made.reason = reason_of(reply.status)
    if reply.streamed:
        del made.headers["content-length"]
        made.headers["transfer-encoding"] = "chunked"
    return made
