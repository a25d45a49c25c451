"""A small world for the agent's own tests: a tool service with keys and a ledger, and a model with a script.

It speaks contract section 6 over real sockets, in threads of the test process. What goes wrong is scripted per tool
or per model call, attempt by attempt.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.agents.fake_model import Json, Says, anthropic, anthropic_events, openai, openai_events
from tests.agents.fake_shop import ORDER, REGISTRY, TOOLS, UNDOES


@dataclass(frozen=True)
class Fault:
    """What happens to one attempt. `kind`: `drop` (executed, reply lost), `lose` (not executed, no reply), `hang` and
    `hang_before` (the same, silently), `status` (not executed), `status_after` (executed, said to have failed),
    `late` (executed after its caller has gone), `kill` and `kill_before` (the agent dies), `garbage` (executed, reply
    unreadable)."""

    kind: str
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    error: Mapping[str, Any] = field(default_factory=dict)
    wait_s: float = 0.0


@dataclass(frozen=True)
class Effect:
    """An effect that was applied."""

    id: str
    tool: str
    arguments: Json
    key: str | None
    intent: str | None
    step: str | None
    compensates: str | None = None


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    what: str
    headers: Mapping[str, str]
    body: Any
    at: float


Script = Sequence[Says] | Callable[[int, Json], Says]


class World:
    """One tool service and one model on one port. Thread-safe enough for tests: one lock round every decision."""

    def __init__(self, script: Script = (), folder: Path | None = None) -> None:
        self.script = script
        self.faults: dict[str, list[Fault]] = {}
        self.model_faults: list[Fault | None] = []
        self.effects: list[Effect] = []
        self.seen: list[Seen] = []
        self.pid: int | None = None
        self.answers_status = True
        self.latency_s = 0.0
        self.peak = 0
        self._in_flight = 0
        self._folder = folder
        self._by_key: dict[tuple[str, str], Json] = {}
        self._under_way: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    # --- what tests look at

    def forward(self) -> list[Effect]:
        """Effects that undo nothing."""
        return [effect for effect in self.effects if effect.compensates is None]

    def undone(self) -> list[str]:
        """Tools whose effects were undone, in the order of undoing."""
        tools = {effect.id: effect.tool for effect in self.effects}
        return [tools[effect.compensates] for effect in self.effects if effect.compensates is not None]

    def standing(self) -> list[str]:
        """Tools with an effect that was not undone."""
        undone = {effect.compensates for effect in self.effects}
        return [effect.tool for effect in self.forward() if effect.id not in undone]

    def calls(self, tool: str) -> list[Seen]:
        """Attempts of a tool that arrived."""
        return [seen for seen in self.seen if seen.what == f"POST {tool}"]

    def questions(self, tool: str) -> list[Seen]:
        """Status queries about a tool."""
        return [seen for seen in self.seen if seen.what == f"GET {tool}"]

    def model_calls(self) -> list[Seen]:
        """Requests to the model."""
        return [seen for seen in self.seen if seen.what == "model"]

    def environment(self, folder: Path, **task: Any) -> dict[str, str]:
        """Environment of an agent, with its task file written to `folder`."""
        api = task.get("api", "anthropic-messages")
        content = {
            "request": "Order one thing.",
            "api": api,
            "model": "m",
            "stream": False,
            "limits": {"steps": 20, "wall_clock_s": 30, "recovery_s": 5},
            "tools": TOOLS,
            "registry": REGISTRY,
            **task,
        }
        (folder / "task.json").write_text(json.dumps(content))
        base = f"http://127.0.0.1:{self.port}"
        return {
            "STORMPROOF_RUN_ID": "run-1",
            "STORMPROOF_INTENT_ID": "intent-1",
            "STORMPROOF_TENANT": "acme",
            "STORMPROOF_STATE_DIR": str(folder / "state"),
            "STORMPROOF_TASK": str(folder / "task.json"),
            "STORMPROOF_EVENTS": str(folder / "events.jsonl"),
            "STORMPROOF_TOOLS_URL": f"{base}/tools",
            "ANTHROPIC_BASE_URL": base,
            "OPENAI_BASE_URL": f"{base}/v1",
        }

    # --- the tool service

    def fault_for(self, tool: str) -> Fault | None:
        """The next scripted fault of a tool; it is used up."""
        with self._lock:
            waiting = self.faults.get(tool, [])
            return waiting.pop(0) if waiting else None

    def execute(self, tool: str, body: Json, headers: Mapping[str, str]) -> tuple[int, Json, bool]:
        """Execute a call: status, answer, and whether it was answered from memory."""
        key = headers.get("idempotency-key")
        keyed = REGISTRY[tool]["idempotency"] == "keyed" and key is not None
        with self._lock:
            if keyed and (tool, str(key)) in self._by_key:
                return 200, self._by_key[tool, str(key)], True
            number = sum(effect.tool == tool for effect in self.effects) + 1
            result = {"id": f"{tool}-{number}", "ok": True}
            if tool == "quote":
                return 200, {"price": 1200, "sku": body.get("sku")}, False
            compensates = self._undone_by(tool, body)
            if tool in UNDOES and compensates is None:
                return 404, {"error": {"kind": "not_found", "message": "nothing to undo"}}, False
            self.effects.append(
                Effect(
                    id=str(result["id"]),
                    tool=tool,
                    arguments=body,
                    key=key,
                    intent=headers.get("x-intent-id"),
                    step=headers.get("x-step"),
                    compensates=compensates,
                )
            )
            if keyed:
                self._by_key[tool, str(key)] = result
            return 200, result, False

    def _undone_by(self, tool: str, body: Json) -> str | None:
        forward, argument = UNDOES.get(tool, ("", ""))
        named = body.get(argument)
        return next((e.id for e in self.effects if e.tool == forward and e.id == named), None)

    def status(self, tool: str, key: str) -> Json:
        """What is known of a key."""
        with self._lock:
            if (tool, key) in self._by_key:
                return {"state": "applied", "result": self._by_key[tool, key]}
            return {"state": "in_flight" if (tool, key) in self._under_way else "unknown", "result": None}

    def begin(self, tool: str, key: str | None) -> None:
        """Note that a call is under way."""
        with self._lock:
            self._in_flight += 1
            self.peak = max(self.peak, self._in_flight)
            if key is not None:
                self._under_way.add((tool, key))

    def forget(self, tool: str, key: str | None) -> None:
        """Let nobody know that a call came in."""
        with self._lock:
            self._under_way.discard((tool, str(key)))

    def end(self, tool: str, key: str | None) -> None:
        """Note that a call is over."""
        with self._lock:
            self._in_flight -= 1
            self._under_way.discard((tool, str(key)))

    def hold(self, seconds: float) -> None:
        """Keep a caller waiting, no longer than the world lasts."""
        self._released.wait(seconds)

    def kill(self) -> None:
        """Kill the agent's process."""
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.05)

    def says(self, body: Json) -> Says:
        """The scripted turn that follows the conversation."""
        said = sum(message["role"] == "assistant" for message in body["messages"])
        if callable(self.script):
            return self.script(said, body)
        return self.script[said] if said < len(self.script) else Says("Done.")


def _handler(world: World) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            tool = parts.path.split("/")[2]
            world.seen.append(Seen(f"GET {tool}", _lower(self.headers), None, time.time()))
            if not world.answers_status:
                self.answer(404, {"error": {"kind": "no_route", "message": "no such route"}})
                return
            self.answer(200, world.status(tool, parse_qs(parts.query)["key"][0]))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = _lower(self.headers)
            if self.path.startswith("/tools/"):
                tool = self.path.removeprefix("/tools/")
                world.seen.append(Seen(f"POST {tool}", headers, body, time.time()))
                key = headers.get("idempotency-key")
                world.begin(tool, key)
                try:
                    self.tool(tool, body, headers)
                finally:
                    world.end(tool, key)
            else:
                world.seen.append(Seen("model", headers, body, time.time()))
                self.model(body)

        def tool(self, tool: str, body: Json, headers: Mapping[str, str]) -> None:
            fault = world.fault_for(tool)
            time.sleep(world.latency_s)
            kind = fault.kind if fault else ""
            if fault is not None and kind in ("status", "lose", "hang_before", "kill_before"):
                world.forget(tool, headers.get("idempotency-key"))
                self.strike(fault)
                return
            if fault is not None and kind == "late":
                world.hold(fault.wait_s)
            status, result, replayed = world.execute(tool, body, headers)
            world.forget(tool, headers.get("idempotency-key"))
            if fault is not None:
                self.strike(fault)
                return
            self.answer(status, result, {"Idempotent-Replayed": "true"} if replayed else {})

        def strike(self, fault: Fault) -> None:
            if fault.kind in ("status", "status_after"):
                self.answer(fault.status, {"error": dict(fault.error)}, fault.headers)
                return
            if fault.kind in ("hang", "hang_before"):
                world.hold(fault.wait_s or 20.0)
            if fault.kind in ("kill", "kill_before"):
                world.kill()
            if fault.kind == "garbage":
                self.answer_bytes(200, b"<html>", {"Content-Type": "application/json"})
                return
            self.vanish()

        def vanish(self) -> None:
            self.close_connection = True
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()

        def model(self, body: Json) -> None:
            fault = world.model_faults.pop(0) if world.model_faults else None
            if fault is not None:
                self.strike(fault)
                return
            says = world.says(body)
            is_anthropic = self.path == "/v1/messages"
            if not is_anthropic and self.path != "/v1/chat/completions":
                self.answer(404, {"error": {"message": f"no {self.path} here"}})
                return
            if not body.get("stream"):
                self.answer(200, anthropic(says) if is_anthropic else openai(says))
                return
            events = list(anthropic_events(says) if is_anthropic else openai_events(says))
            self.answer_bytes(200, b"".join(events), {"Content-Type": "text/event-stream"}, chunks=events)

        def answer(self, status: int, body: Json, headers: Mapping[str, str] | None = None) -> None:
            content = json.dumps(body).encode()
            self.answer_bytes(status, content, {"Content-Type": "application/json", **(headers or {})})

        def answer_bytes(
            self, status: int, content: bytes, headers: Mapping[str, str], chunks: Sequence[bytes] = ()
        ) -> None:
            try:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if chunks:
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    for chunk in chunks:
                        self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                    self.wfile.write(b"0\r\n\r\n")
                else:
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
            except OSError:
                self.close_connection = True

        def finish(self) -> None:
            try:
                super().finish()
            except (OSError, ValueError):
                return

    return Handler


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


@contextmanager
def world(script: Script = ORDER) -> Iterator[World]:
    """A world that lasts as long as the block."""
    made = World(script)
    try:
        yield made
    finally:
        made.close()


def events(folder: Path) -> list[Json]:
    """The events an agent wrote."""
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines() if line]
