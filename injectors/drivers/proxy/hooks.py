"""The hooks of the proxy: which run a connection belongs to, where a request goes, when its ends are reached."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable
from contextlib import suppress
from string import punctuation
from typing import Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

from mitmproxy.connection import Client
from mitmproxy.http import HTTPFlow
from mitmproxy.proxy.layer import NextLayer
from mitmproxy.proxy.server import ConnectionHandler
from mitmproxy.proxy.server_hooks import ServerConnectionHookData

from injectors.core import Reply, Request
from injectors.drivers.proxy.crossing import Crossing, forward, response
from injectors.drivers.proxy.engine import Engine
from injectors.drivers.proxy.guard import guarded
from injectors.drivers.proxy.prompt import PromptHttp, flow_hooks
from injectors.drivers.proxy.run import DriverError, Run, first_of
from injectors.drivers.proxy.sockets import ClientGoneError, kill, watch, writer_of

_HERE = frozenset({"127.0.0.1", "localhost", "::1"})
_CROSSING = "stormproof"


class Hooks:
    """The addon. `runs` holds the open runs by port; mitmproxy calls the rest."""

    name = "stormproof"

    def __init__(self) -> None:
        self.runs: dict[int, Run] = {}
        self.engine: Engine | None = None
        self._gone: dict[str, asyncio.Event] = {}
        self._sending: WeakKeyDictionary[Client, tuple[Run, str]] = WeakKeyDictionary()
        """What will be written upstream next. An entry lives as long as its connection, which may write once more
        after the agent is known to have left."""
        self._kills: dict[str, asyncio.Future[bool]] = {}
        self._flow_hooks = flow_hooks(self)

    # ------------------------------------------------------------------------------------------ connections

    @guarded
    def next_layer(self, data: NextLayer) -> None:
        # Plain HTTP and nothing else: guessing protocols, as mitmproxy would, lets bytes through uninspected.
        data.layer = PromptHttp(data.context, self._flow_hooks)

    @guarded
    def server_connect(self, data: ServerConnectionHookData) -> None:
        if data.server.address is None or data.server.address[:2] not in _known(self._run_of(data.client)):
            data.server.error = "only the stand-ins of a run can be reached"
            raise DriverError(f"a connection to {data.server.address} was about to be opened")

    @guarded
    def server_connected(self, data: ServerConnectionHookData) -> None:
        """Watch what is really written upstream: a request whose agent has left in time is never sent."""
        handler, client = self._engine.handler(data.client.id), data.client

        def sending() -> None:
            under_way = self._sending.pop(client, None)
            if under_way is not None:
                run, wire = under_way
                run.sent.append(wire)

        if handler is not None:
            with suppress(ClientGoneError):  # closed again already: nothing will be sent
                watch(writer_of(handler, data.server), sending)

    @guarded
    def client_disconnected(self, client: Client) -> None:
        gone = self._gone.pop(client.id, None)
        if gone is not None:
            gone.set()

    @guarded
    def http_connect(self, flow: HTTPFlow) -> None:
        run = self._run_of(flow.client_conn)
        if run is None:
            kill(flow)
        else:
            self._refuse_host(flow, run)

    def stormproof_rest(self, rest: Awaitable[None]) -> Awaitable[None]:
        """What a hook has left to be awaited; it is guarded already."""
        return rest

    # ---------------------------------------------------------------------------------------------- requests

    @guarded
    def request(self, flow: HTTPFlow) -> Awaitable[None] | None:
        run = self._run_of(flow.client_conn)
        if run is None or run.closing.is_set():
            kill(flow)
            return None
        if run.killing is not None:
            return self._hold(flow, run.killing)
        request = flow.request
        if request.data.host not in _HERE or request.data.port != run.port:
            self._refuse_host(flow, run)
            return None
        way = run.route(printable(request.method), printable(request.path))
        if way.target == "nowhere":
            run.unroutable[f"{printable(request.method)} {way.path.partition('?')[0]}"] = None
            _refuse(flow, 404, "unknown_endpoint", way.words)
            return None
        if not run.greeted:
            run.greeted = True
            run.emit({"event": "seen", "run_id": run.run_id})
        run.seen[way.target] += 1
        wire, now = run.next_wire(), time.time()
        if way.asks_outcome:
            run.wire.asked_for_outcome(way.tool, way.key, now)
            forward(flow, run, way, wire=wire)
            self.sending(flow, run, wire)
            return None
        exchange = run.wire.meet(_request(flow, api=way.api, tool=way.tool), wire=wire, t=now)
        exchange.connection = flow.client_conn.id
        run.open[wire] = exchange
        crossing = Crossing(self, flow, run, way, exchange)
        flow.metadata[_CROSSING] = crossing
        if crossing.armed:
            return crossing.before_send()
        crossing.forward()
        return None

    @guarded
    def responseheaders(self, flow: HTTPFlow) -> None:
        crossing = _crossing(flow)
        if crossing is None or crossing.holds_answer or flow.response is None:
            return
        if flow.response.headers.get("content-type", "").startswith("text/event-stream"):
            crossing.pass_live()

    @guarded
    def response(self, flow: HTTPFlow) -> Awaitable[None] | None:
        crossing = _crossing(flow)
        if crossing is None:
            return None
        if crossing.holds_answer:
            return crossing.after_effect()
        crossing.answered()
        return None

    @guarded
    def error(self, flow: HTTPFlow) -> None:
        crossing = _crossing(flow)
        if crossing is None or crossing.exchange.finished:
            if crossing is not None:
                crossing.over()
            return
        left = not flow.client_conn.connected or crossing.run.closing.is_set()
        crossing.run.wire.lost(crossing.exchange, "timeout" if left else "unknown", time.time())
        crossing.over()
        if not left:
            why = flow.error.msg if flow.error else "nobody knows why"
            crossing.run.fail(f"the {crossing.route.target} stand-in gave no whole answer: {why}")

    # ------------------------------------------------------------------------- what crossings and guards need

    def handler(self, flow: HTTPFlow) -> ConnectionHandler | None:
        """The handler of the agent's connection."""
        return self._engine.handler(flow.client_conn.id)

    def gone(self, flow: HTTPFlow) -> asyncio.Event:
        """Set once the agent's connection is closed."""
        event = self._gone.setdefault(flow.client_conn.id, asyncio.Event())
        if self.handler(flow) is None:
            self._gone.pop(flow.client_conn.id)
            event.set()
        return event

    def sending(self, flow: HTTPFlow, run: Run, wire: str) -> None:
        """The next thing written upstream for this connection is this request."""
        self._sending[flow.client_conn] = (run, wire)

    async def kill_agent(self, run: Run, wire: str) -> None:
        """Have the agent killed, and hold whatever it still sends.

        Raises `DriverError` if that is never done, and `ClientGoneError` where another fault is killing it already or
        where it had ended of itself by then.
        """
        if run.killing is not None:
            await asyncio.shield(run.killing)
            raise ClientGoneError
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        token = f"{run.run_id}/{wire}"
        self._kills[token], run.killing = done, done
        # From here on requests are held, so that the next one is the first of another process.
        run.greeted = False
        dead = asyncio.Event()
        done.add_done_callback(lambda _done: dead.set())
        try:
            run.emit({"event": "process", "run_id": run.run_id, "token": token, "action": "kill"})
            await first_of(dead, run.closing)
            if not done.done():
                raise DriverError("the run was closed before its agent had been killed")
            if not done.result():
                raise ClientGoneError
        finally:
            del self._kills[token]
            run.killing = None
            if not done.done():
                done.set_result(False)

    def acted(self, token: str, *, struck: bool) -> None:
        """The harness has acted on the event with this token; `struck`: it met a living agent."""
        done = self._kills.get(token)
        if done is None:
            raise DriverError(f"nobody waits for {token!r}")
        if not done.done():
            done.set_result(struck)

    def failed(self, subject: Any, why: str) -> None:
        """A hook has raised: fail the run, kill the flow. Where there is no flow, the connection is cut."""
        client = _client_of(subject)
        run = self._run_of(client) if client is not None else None
        try:
            for broken in [run] if run else self.runs.values():
                broken.fail(why)
            crossing = _crossing(subject) if isinstance(subject, HTTPFlow) else None
            if crossing is not None:
                crossing.over()
                crossing.run.wire.lost(crossing.exchange, "unknown", time.time())
        finally:
            if isinstance(subject, HTTPFlow):
                kill(subject)
            elif client is not None:
                self._cut(client)

    def crashed(self, peername: Any, why: str) -> None:
        """Something inside mitmproxy has crashed, which it only logs. What it was about would hang: cut it."""
        handler = self._engine.from_address(tuple(peername)) if peername else None
        self.failed(handler.client if handler is not None else None, why)

    def _cut(self, client: Client) -> None:
        handler = self._engine.handler(client.id)
        if handler is not None:
            self._engine.cut(handler)

    def waiting(self, subject: Any, by: int) -> None:
        """One hook more or less waits on behalf of a flow."""
        run = self._run_of(subject.client_conn) if isinstance(subject, HTTPFlow) else None
        if run is not None:
            run.hooks += by

    # ------------------------------------------------------------------------------------------------- details

    @property
    def _engine(self) -> Engine:
        if self.engine is None:
            raise DriverError("the proxy has not been started")
        return self.engine

    def _run_of(self, client: Client) -> Run | None:
        return self.runs.get(client.sockname[1])

    async def _hold(self, flow: HTTPFlow, killing: asyncio.Future[bool]) -> None:
        """A request of an agent that is being killed: it comes from the time after its death."""
        await asyncio.shield(killing)
        kill(flow)

    def _refuse_host(self, flow: HTTPFlow, run: Run) -> None:
        host = f"{printable(flow.request.host)}:{flow.request.port}"
        run.egress[host] = None
        _refuse(
            flow,
            403,
            "egress_refused",
            f"{host} is no part of this run; the model and the tools are reached through the base URLs given, "
            f"at http://127.0.0.1:{run.port}",
        )


def _known(run: Run | None) -> set[tuple[str, int]]:
    """Where connections of a run may lead."""
    return {(up.host, up.port) for up in run.upstreams.values()} if run else set()


def _client_of(subject: Any) -> Client | None:
    """The agent's connection that the argument of a hook is about: a flow, a layer, a connection."""
    holder = getattr(subject, "context", subject)
    candidates = (getattr(holder, "client_conn", None), getattr(holder, "client", None), subject)
    return next((found for found in candidates if isinstance(found, Client)), None)


def _crossing(flow: HTTPFlow) -> Crossing | None:
    found = flow.metadata.get(_CROSSING)
    return found if isinstance(found, Crossing) else None


def printable(text: str) -> str:
    """What stands in a request's first line, in ASCII: agents may send any bytes there, records are UTF-8."""
    return text if text.isascii() else quote(text.encode("utf-8", "surrogateescape"), safe=punctuation)


def _request(flow: HTTPFlow, *, api: str, tool: str) -> Request:
    request = flow.request
    headers = tuple(
        (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in request.headers.fields
    )
    body = request.raw_content or b""
    if any(name == "content-encoding" for name, _ in headers):
        request.decode(strict=False)  # forwarded as it was read: the service need not undo it in its own way
        body = request.raw_content or b""
    return Request(printable(request.method), printable(request.path), body, headers, api=api, tool=tool)


def _refuse(flow: HTTPFlow, status: int, kind: str, message: str) -> None:
    error = {"kind": kind, "message": message, "retryable": False, "may_have_taken_effect": False}
    body = json.dumps({"error": error}).encode()
    flow.response = response(Reply(status, (("content-type", "application/json"),), body))
