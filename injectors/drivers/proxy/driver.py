"""The proxy driver: opens a port for each run, carries out its faults, and says in the end what really happened."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from injectors.drivers.proxy.engine import Engine
from injectors.drivers.proxy.hooks import Hooks
from injectors.drivers.proxy.run import DriverError, Emit, Run
from traces.registry import Registry
from traces.registry_reading import registry_from

_TURNS = 5
"""Turns of the loop that accept what has connected already before a port is closed."""


class ProxyDriver:
    """One proxy for many runs at a time. `emit` takes what the harness has to act on (`process` events)."""

    def __init__(self, *, confdir: Path, emit: Emit) -> None:
        self._emit = emit
        self.hooks = Hooks()
        self.engine = Engine(confdir, self.hooks)
        self.hooks.engine = self.engine
        self._runs: dict[str, Run] = {}
        self._watch = _LogWatch(self.hooks)

    async def start(self) -> None:
        """Bring the proxy up; ports are opened run by run."""
        logging.getLogger("mitmproxy").addHandler(self._watch)
        await self.engine.start()

    async def stop(self) -> None:
        """End everything. Open runs are dropped."""
        for run in self._runs.values():
            run.closing.set()
        await self.engine.stop()
        logging.getLogger("mitmproxy").removeHandler(self._watch)

    async def open_run(self, spec: Mapping[str, Any]) -> int:
        """Open the port of a run and return it. `spec` is the `run` of the control protocol's `open_run`."""
        run_id = str(spec["run_id"])
        if run_id in self._runs:
            raise DriverError(f"the run {run_id} is open already")
        registry = _registry(msgspec.json.encode(spec["registry"]))
        run = Run.opened(spec, port=0, registry=registry, emit=self._emit)
        self._runs[run_id] = run
        try:
            run.port = await self.engine.open_port()
        except BaseException:
            del self._runs[run_id]
            raise
        self.hooks.runs[run.port] = run
        return run.port

    async def close_run(self, run_id: str, limit_s: float) -> dict[str, Any]:
        """Heal the faults of a run, let what is under way come to its end, and say what was sent and seen.

        What has not ended after `limit_s` seconds is cut off, and the run has failed.
        """
        run = self._runs.pop(run_id, None)
        if run is None:
            raise DriverError(f"there is no open run {run_id}")
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        await self.engine.close_port(run.port)
        run.closing.set()
        deadline = time.monotonic() + limit_s
        cut: set[str] = set()
        while not self._drained(run, cut):
            if time.monotonic() > deadline:
                await self._cut_off(run, limit_s)
                break
            await asyncio.sleep(0.001)
        for exchange in list(run.open.values()):
            run.wire.lost(exchange, "unknown", time.time())
        del self.hooks.runs[run.port]
        return run.result()

    def acted(self, token: str, *, struck: bool = True) -> None:
        """What the `process` event with this token asked for is done; `struck`: it met a living agent."""
        self.hooks.acted(token, struck=struck)

    def _drained(self, run: Run, cut: set[str]) -> bool:
        """Whether nothing of the run is left. Idle connections, kept alive for a request that will not come, are cut
        (once: `cut` holds their ids)."""
        busy = {exchange.connection for exchange in run.open.values()}
        connections = list(self.engine.connections(run.port))
        for handler in connections:
            if handler.client.id not in busy | cut:
                cut.add(handler.client.id)
                self.engine.cut(handler)
        return not connections and not run.hooks

    async def _cut_off(self, run: Run, limit_s: float) -> None:
        left = ", ".join(run.open) or "a connection"
        run.fail(f"not at its end {limit_s:g} s after the run: {left}")
        for handler in self.engine.connections(run.port):
            self.engine.cut(handler)
        for _ in range(200):
            if not list(self.engine.connections(run.port)):
                return
            await asyncio.sleep(0.005)


@functools.lru_cache(maxsize=8)
def _registry(encoded: bytes) -> Registry:
    """Runs of one harness share a registry; reading it again for each would cost more than the run's port."""
    return registry_from(msgspec.json.decode(encoded))


class _LogWatch(logging.Handler):
    """mitmproxy only logs it when something inside it crashes. Such a run has no result, and its connection would
    hang."""

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(logging.ERROR)
        self._hooks = hooks

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            why = f"mitmproxy: {record.getMessage()} ({type(error).__name__}: {error})"
            self._hooks.crashed(getattr(record, "client", None), why)
