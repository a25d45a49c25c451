"""What the proxy knows of one run. Nothing here touches mitmproxy."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from injectors.catalogue import fault_from
from injectors.core import Fault
from injectors.plan import Plan
from injectors.routing import Route, route
from injectors.wire import Exchange, Wire
from traces.registry import Registry

Emit = Callable[[dict[str, Any]], None]


class DriverError(Exception):
    """The driver could not do its work. Never the agent's fault: the run it belongs to has no result."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where requests of one channel are forwarded: plain HTTP on the loopback address; `base` stands before paths."""

    host: str
    port: int
    base: str = ""

    @classmethod
    def at(cls, url: str) -> Upstream:
        """The upstream at a base URL. Raises `DriverError` where it is no plain HTTP URL with a port."""
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname or not parts.port:
            raise DriverError(f"an upstream is http://HOST:PORT, not {url!r}")
        return cls(parts.hostname, parts.port, parts.path.rstrip("/"))


@dataclass(slots=True, kw_only=True)
class Run:
    """One run: its port, its plan, and everything seen of it so far."""

    run_id: str
    port: int
    registry: Registry
    plan: Plan
    wire: Wire
    upstreams: Mapping[str, Upstream]
    emit: Emit
    secret: str = field(default="", repr=False)
    """Proves to the stand-ins that a request came through here; empty where they do not ask for it."""
    sent: list[str] = field(default_factory=list)
    fired: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    """Requests by channel, status queries included."""
    egress: dict[str, None] = field(default_factory=dict)
    """Hosts that were asked for and refused, in order."""
    unroutable: dict[str, None] = field(default_factory=dict)
    open: dict[str, Exchange] = field(default_factory=dict)
    """Exchanges that have not come to their end, by wire id."""
    routes: dict[tuple[str, str], Route] = field(default_factory=dict)
    """Routes found before; queries are not kept."""
    hooks: int = 0
    """Hooks that are waiting for something."""
    failure: str | None = None
    failed_at: float | None = None
    """Unix time of the first failure; what was seen before it is sound."""
    greeted: bool = False
    """Whether the harness was told that the agent's process has come up."""
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    killing: asyncio.Future[bool] | None = None

    _numbers: int = 0

    @classmethod
    def opened(cls, spec: Mapping[str, Any], *, port: int, registry: Registry, emit: Emit) -> Run:
        """The run that an `open_run` describes. Raises `FaultError` or `DriverError` where it cannot be."""
        wanted = {(ask["tool"], ask["meaning"]): int(ask["count"]) for ask in spec.get("wanted") or ()}
        return cls(
            run_id=spec["run_id"],
            port=port,
            registry=registry,
            plan=Plan(tuple(_fault(data) for data in spec.get("faults") or ())),
            wire=Wire(
                run_id=spec["run_id"], registry=registry, intent_id=spec.get("intent_id"), wanted=wanted or None
            ),
            upstreams={name: Upstream.at(spec["upstreams"][name]) for name in ("model", "tools")},
            emit=emit,
            secret=spec.get("secret") or "",
        )

    def route(self, method: str, path: str) -> Route:
        """Where a request goes."""
        found = self.routes.get((method, path))
        if found is None:
            found = route(method, path, self.registry)
            if "?" not in path and found.target != "nowhere":
                self.routes[method, path] = found
        return found

    def next_wire(self) -> str:
        """A fresh wire id."""
        self._numbers += 1
        return f"w{self._numbers}"

    def fail(self, why: str) -> None:
        """Note that the driver failed in this run; the first failure is the one that is told."""
        print(f"run {self.run_id}: {why}", file=sys.stderr, flush=True)  # noqa: T201 - standard error is the log
        if self.failure is None:
            self.failure, self.failed_at = why, time.time()

    def struck(self, exchange: Exchange, fault: Fault, t: float) -> None:
        """A fault has acted, decided at the instant `t`."""
        self.fired[fault.id or fault.kind] += 1
        self.wire.struck(exchange, fault, t)

    def result(self) -> dict[str, Any]:
        """What `close_run` answers."""
        flows = {"model": self.seen["model"], "tool": self.seen["tools"]}
        return {
            "sent": self.sent,
            "records": self.wire.records,
            "fired": {fault.id or fault.kind: self.fired[fault.id or fault.kind] for fault in self.plan.faults},
            "flows": {**flows, "egress": list(self.egress), "unroutable": list(self.unroutable)},
            "failure": self.failure,
            "failed_at": self.failed_at,
        }


def _fault(data: Mapping[str, Any]) -> Fault:
    return fault_from(
        kind=data["kind"],
        at=data["at"],
        times=data.get("times", 1),
        parameters=data.get("with"),
        scenario=data.get("scenario"),
        id=str(data.get("id", "")),
    )


async def first_of(*events: asyncio.Event, limit_s: float | None = None) -> None:
    """Wait until one of the events is set, or so many seconds have passed."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
