"""A proxy with a counting service behind it, and raw sockets in front: what leaves the socket, what was executed.

mitmproxy allows one proxy per process, so that all tests share one rig; each test opens runs of its own.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from injectors.drivers.proxy import ProxyDriver
from traces.history import Record
from traces.providers import for_path
from traces.providers.sse import json_bytes
from traces.providers.turn import Turn, tool_call

T = TypeVar("T")

CHARGE = {"order_id": "o-1", "amount_cents": 1200, "note": "by card"}
CHARGE_RESULT = {"id": "ch_1", "state": "captured", "amount_cents": 1200}
ORDER = Turn(
    text="I will charge the card.",
    tool_calls=(tool_call("call_1", "charge", CHARGE),),
    stop_reason="tool_use",
    input_tokens=120,
    output_tokens=40,
)
REGISTRY: dict[str, Any] = {
    "charge": {
        "match": {"method": "POST", "path": "/tools/charge"},
        "idempotency": "keyed",
        "severity": "money",
        "resource_group": "payments",
        "compensation": {"tool": "refund", "strength": "strong"},
    },
    "refund": {
        "match": {"method": "POST", "path": "/tools/refund"},
        "idempotency": "keyed",
        "severity": "money",
        "resource_group": "payments",
        "avoid": True,
    },
    "look_up": {"match": {"method": "POST", "path": "/tools/look_up"}, "idempotency": "natural"},
}


@dataclass(frozen=True, slots=True)
class Executed:
    """A request that reached the service whole, and so took effect."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def wire(self) -> str:
        return self.headers.get("x-stormproof-wire", "")

    @property
    def run(self) -> str:
        return self.headers.get("x-stormproof-run", "")


@dataclass(slots=True)
class Service:
    """Tools and model behind the proxy. What it answers can be changed by a test, on its own copy of a path."""

    executed: list[Executed] = field(default_factory=list)
    turn: Turn = ORDER
    latency_s: float = 0.0
    event_gap_s: float = 0.0
    answer: bytes | None = None
    """Sent as it is in place of any answer, then the connection ends."""
    connections: int = 0

    def of(self, run_id: str) -> list[Executed]:
        """What was executed for a run."""
        return [request for request in self.executed if request.run == run_id]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                request = await _read_request(reader)
                self.executed.append(request)
                await asyncio.sleep(self.latency_s)
                if self.answer is not None:
                    writer.write(self.answer)
                    await writer.drain()
                    return
                await self._answer(request, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.connections -= 1
            writer.close()

    async def _answer(self, request: Executed, writer: asyncio.StreamWriter) -> None:
        provider = for_path(request.path)
        if provider is None:
            body = json_bytes(CHARGE_RESULT)
        elif b'"stream":true' in request.body:
            head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            writer.write(head)
            for event in provider.write_stream(self.turn, "stand-in", "msg_1"):
                writer.write(b"%x\r\n%b\r\n" % (len(event), event))
                await writer.drain()
                if self.event_gap_s:
                    await asyncio.sleep(self.event_gap_s)
            writer.write(b"0\r\n\r\n")
            await writer.drain()
            return
        else:
            body = json_bytes(provider.write_reply(self.turn, "stand-in", "msg_1"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body))
        writer.write(body)
        await writer.drain()


async def _read_request(reader: asyncio.StreamReader) -> Executed:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Executed(method, path, headers, body)


@dataclass(frozen=True, slots=True)
class Heard:
    """What a raw socket got: all bytes, and how it ended: `fin`, `rst`, or `open` (silence up to the time-out)."""

    data: bytes
    end: str
    seconds: float

    @property
    def status(self) -> int:
        return int(self.data.split(b" ", 2)[1]) if self.data else 0

    @property
    def headers(self) -> dict[str, str]:
        lines = self.data.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
        return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}

    @property
    def body(self) -> bytes:
        return self.data.partition(b"\r\n\r\n")[2]

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def unchunked(self) -> tuple[bytes, bool]:
        """The body without its chunk framing, and whether the closing chunk came."""
        rest, parts = self.body, list[bytes]()
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            length = int(size, 16)
            if length == 0:
                return b"".join(parts), True
            parts.append(rest[:length])
            rest = rest[length + 2 :]
        return b"".join(parts), False


def post(
    port: int,
    path: str,
    body: Any,
    *,
    headers: dict[str, str] | None = None,
    host: str | None = None,
    target: str | None = None,
    method: str = "POST",
) -> bytes:
    """The bytes of a request; `target` replaces the path in the request line (absolute form)."""
    encoded = body if isinstance(body, bytes) else json_bytes(body)
    lines = [f"{method} {target or path} HTTP/1.1", f"host: {host or f'127.0.0.1:{port}'}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    lines += ["content-type: application/json", f"content-length: {len(encoded)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + encoded


def listen(connection: socket.socket, timeout: float = 0.5) -> Heard:
    """Read until the connection ends, an answer is whole, or nothing more comes for so many seconds."""
    began, data = time.monotonic(), b""
    connection.settimeout(timeout)
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionResetError:
            return Heard(data, "rst", time.monotonic() - began)
        except TimeoutError:
            return Heard(data, "open", time.monotonic() - began)
        if not part:
            return Heard(data, "fin", time.monotonic() - began)
        data += part


@dataclass(slots=True)
class OpenRun:
    """An open run of the rig. `close` ends it; the results then stand in the other fields."""

    rig: Rig
    run_id: str
    port: int
    events: list[dict[str, Any]]
    result: dict[str, Any] = field(default_factory=dict)

    def send(self, path: str, body: Any, *, timeout: float = 0.5, **more: Any) -> Heard:
        """One request on a connection of its own."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(post(self.port, path, body, **more))
            return listen(connection, timeout)

    def charge(self, *, timeout: float = 0.5, **more: Any) -> Heard:
        """One call of the tool `charge`."""
        return self.send("/tools/charge", CHARGE, timeout=timeout, **more)

    def ask(self, *, api: str = "anthropic", stream: bool = True, timeout: float = 0.5, say: str = "hi") -> Heard:
        """One call of the model."""
        path = "/v1/messages" if api == "anthropic" else "/v1/chat/completions"
        body: dict[str, Any] = {"model": "stand-in", "messages": [{"role": "user", "content": say}], "max_tokens": 99}
        return self.send(path, body | ({"stream": True} if stream else {}), timeout=timeout)

    def close(self, limit_s: float = 5.0) -> dict[str, Any]:
        """Close the run and keep what it says."""
        if not self.result:
            self.result = self.rig.do(self.rig.driver.close_run(self.run_id, limit_s))
        return self.result

    @property
    def executed(self) -> list[Executed]:
        """What the service executed for this run."""
        return self.rig.service.of(self.run_id)

    @property
    def records(self) -> list[Record]:
        """The records of the closed run; each has to be a valid record of a history."""
        return [msgspec.convert(data, Record) for data in self.close()["records"]]

    def of_type(self, kind: str) -> list[Record]:
        """The records of one type."""
        return [record for record in self.records if record.type == kind]

    @property
    def outcomes(self) -> list[str | None]:
        """How the tool calls ended, in order."""
        return [record.outcome for record in self.of_type("tool_call_finished")]

    @property
    def fired(self) -> int:
        """How often the only fault has struck; its records have to say the same."""
        fired = sum(self.close()["fired"].values())
        assert len(self.of_type("fault_injected")) == fired
        return int(fired)


class Rig:
    """The proxy and the service, on a loop in a thread of its own."""

    def __init__(self, confdir: Path) -> None:
        self.service = Service()
        self.events: list[dict[str, Any]] = []
        self.on_event: Callable[[dict[str, Any]], None] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._numbers = 0
        self._thread.start()
        self.upstream = self.do(self._start(confdir))

    async def _start(self, confdir: Path) -> int:
        self.driver = ProxyDriver(confdir=confdir, emit=self._emit)
        await self.driver.start()
        self._server = await asyncio.start_server(lambda r, w: self.service.serve(r, w), "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    def _emit(self, event: dict[str, Any]) -> None:
        if event["event"] == "seen":  # that a run's first request is here; no test waits for it
            return
        self.events.append(event)
        if self.on_event is not None:
            self.on_event(event)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the rig's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def call(self, function: Callable[..., object], *args: Any) -> None:
        """Call something on the rig's loop."""
        self._loop.call_soon_threadsafe(function, *args)

    def spec(self, *faults: dict[str, Any], **more: Any) -> dict[str, Any]:
        """What `open_run` takes."""
        self._numbers += 1
        url = f"http://127.0.0.1:{self.upstream}"
        numbered = [{"id": f"f{n}", "scenario": "204"} | fault for n, fault in enumerate(faults, 1)]
        head = {"run_id": f"run-{self._numbers}", "intent_id": "intent-1", "registry": REGISTRY, "faults": numbered}
        return head | {"upstreams": {"model": url, "tools": url}} | more

    @contextmanager
    def run(self, *faults: dict[str, Any], **more: Any) -> Iterator[OpenRun]:
        """Open a run with these faults; it is closed in the end. The service is as new."""
        self.service = Service()
        spec = self.spec(*faults, **more)
        events: list[dict[str, Any]] = []
        opened = OpenRun(self, spec["run_id"], self.do(self.driver.open_run(spec)), events)
        try:
            yield opened
        finally:
            opened.close()

    def stop(self) -> None:
        """End proxy, service and thread; nothing may be left."""

        async def stop() -> list[asyncio.Task[Any]]:
            await self.driver.stop()
            self._server.close()
            await asyncio.sleep(0.05)
            return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

        left = self.do(stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()
        assert not left, left


def fault(kind: str, *, tool: str = "charge", at: Any = None, times: Any = 1, **parameters: Any) -> dict[str, Any]:
    """A fault as the control protocol carries it; by default on the first attempt of the first `charge`."""
    return {"kind": kind, "at": at or {"tool": tool}, "times": times, "with": parameters}


def model_fault(kind: str, *, call: int = 1, times: Any = 1, **parameters: Any) -> dict[str, Any]:
    """A fault on a model call, by default the first."""
    return {"kind": kind, "at": {"model": True, "call": call}, "times": times, "with": parameters}
