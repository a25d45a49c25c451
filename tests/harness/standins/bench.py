"""The real process of the stand-ins for tests: started as the harness starts it, asked over the same lines."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from harness.processes.control import own_command
from tests.harness.standins.shop import HTTP, REGISTRY, recorded
from traces.trace import Trace, write_trace


class Process:
    """One process of the stand-ins, its ports, and the requests that a test sends to it."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self._popen = subprocess.Popen(
            own_command("_standins", "--state", str(state)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._number = 0
        ready = self._line()
        self.tools = f"http://127.0.0.1:{ready['tools']}/tools"
        self.model = f"http://127.0.0.1:{ready['model']}"
        self.tools_port: int = ready["tools"]

    @property
    def pid(self) -> int:
        """The process id."""
        return self._popen.pid

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """One request of the control protocol and its answer."""
        self.send(op, **fields)
        return self.receive()

    def send(self, op: str, **fields: Any) -> None:
        """A request of the control protocol, without waiting for its answer."""
        self._number += 1
        assert self._popen.stdin is not None
        self._popen.stdin.write(json.dumps({"id": self._number, "op": op, **fields}).encode() + b"\n")
        self._popen.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """The next answer."""
        return self._line()

    def open(self, run_id: str = "r1", *, trace: Trace | None = None, **fields: Any) -> None:
        """Open a run over a trace (default: the order of the shop)."""
        path = self.state / f"{run_id}.jsonl"
        if trace is not None or not path.exists():
            write_trace(trace or recorded(), path)
        given = {"world": "w", "intent_id": f"i-{run_id}", "tenant": "t", "policy": "continue"} | fields
        answer = self.ask("open_run", run_id=run_id, trace=str(path), **({"registry": REGISTRY} | given))
        assert answer.get("ok") is True, answer

    def call(
        self, tool: str, args: Any, *, run: str = "r1", key: str | None = None, wire: str = "", **headers: str
    ) -> httpx.Response:
        """Call a tool as the proxy forwards it; further headers by their short names (`call`, `caused_by`)."""
        sent = {"x-stormproof-run": run}
        sent |= {f"x-stormproof-{name.replace('_', '-')}": text for name, text in headers.items()}
        if wire:
            sent["x-stormproof-wire"] = wire
        if key is not None:
            sent["Idempotency-Key"] = key
        return HTTP.post(f"{self.tools}/{tool}", json=args, headers=sent)

    def effects(self, run: str = "r1", sent: Sequence[str] = ()) -> list[dict[str, Any]]:
        """The effects of a run, after a drain that must find nothing unfinished."""
        answer = self.ask("drain", run_id=run, sent=list(sent), limit_s=5.0)
        assert answer.get("unfinished") == [], answer
        effects: list[dict[str, Any]] = answer["effects"]
        return effects

    def close_input(self, *, limit_s: float = 10.0) -> int:
        """End the standard input, as a killed harness does, and return the exit code of the process."""
        assert self._popen.stdin is not None
        self._popen.stdin.close()
        return self._popen.wait(limit_s)

    def kill(self) -> None:
        """End the process by force."""
        self._popen.kill()
        self._popen.wait()
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                pipe.close()

    def _line(self) -> dict[str, Any]:
        assert self._popen.stdout is not None
        line = self._popen.stdout.readline()
        assert line, "the process ended"
        message: dict[str, Any] = json.loads(line)
        return message


@contextmanager
def standins(state: Path) -> Iterator[Process]:
    """A process of the stand-ins for the length of a `with` block."""
    state.mkdir(parents=True, exist_ok=True)
    process = Process(state)
    try:
        yield process
    finally:
        process.kill()
