"""mitmproxy, reduced to what is needed: one `Master` per process, few addons, one port per run.

What depends on how mitmproxy is built inside is here, in `sockets`, `prompt` and `lean`. Verified on 11.0.2 and 12.3.
Two masters in one process would both serve with the addons of the second: there is one.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from mitmproxy.addons.proxyserver import Proxyserver
from mitmproxy.master import Master
from mitmproxy.options import Options
from mitmproxy.proxy.mode_specs import ProxyMode
from mitmproxy.proxy.server import ConnectionHandler

from injectors.drivers.proxy.lean import check_insides, skip_type_checks
from injectors.drivers.proxy.run import DriverError

_ATTEMPTS = 50


class Engine:
    """The running proxy server. `addon` receives the hooks."""

    def __init__(self, confdir: Path, addon: Any) -> None:
        self._confdir = confdir
        self._addon = addon
        # mitmproxy leaves part of its own functions untyped; these two go unchecked.
        new: Any = Proxyserver
        self._proxyserver: Proxyserver = new()
        self._modes: dict[int, ProxyMode] = {}
        self._used: deque[int] = deque(maxlen=2000)
        self._changing = asyncio.Lock()
        self._master: Any = None
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Bring the master up; no port is open yet. Raises `DriverError` where mitmproxy is not as expected."""
        check_insides()
        skip_type_checks()
        options: Any = Options(confdir=str(self._confdir), mode=[])
        master: Any = Master(options)
        master.addons.add(self._proxyserver, self._addon)
        # The option exists once the addon that defines it is there. `eager` might connect before a request is read.
        options.update(connection_strategy="lazy")
        self._master = master
        self._running = asyncio.create_task(master.run())
        while not self._proxyserver.is_running:
            if self._running.done():
                raise DriverError("mitmproxy ended before it had started") from self._running.exception()
            await asyncio.sleep(0.001)

    async def stop(self, limit_s: float = 5.0) -> None:
        """Close all ports and connections, then end the master. Nothing is left, not even a task.

        A connection that is not gone after `limit_s` seconds is torn down and named on standard error.
        """
        if self._master is None or self._running is None:
            return
        await self._serve({})
        for handler in list(self._proxyserver.connections.values()):
            _cut(handler)
        deadline = time.monotonic() + limit_s
        while self._proxyserver.connections and time.monotonic() < deadline:  # noqa: ASYNC110 - no event for it
            await asyncio.sleep(0.005)
        for handler in self._proxyserver.connections.values():
            print(f"the connection of {handler.client.peername} did not end", file=sys.stderr)  # noqa: T201
            _tear(handler)
        self._master.shutdown()
        await self._running

    async def open_port(self) -> int:
        """Listen on a fresh port of the loopback address. Raises `DriverError` where none can be had."""
        async with self._changing:
            refusal: Exception | None = None
            for _ in range(_ATTEMPTS):
                port = self._unused_port()
                mode = ProxyMode.parse(f"regular@127.0.0.1:{port}")
                await self._serve({**self._modes, port: mode})
                refusal = self._proxyserver.servers[mode].last_exception
                if refusal is None:
                    self._modes[port] = mode
                    return port
                await self._serve(self._modes)
            raise DriverError(f"no port could be opened on 127.0.0.1: {refusal}")

    async def close_port(self, port: int) -> None:
        """Stop listening on a port. Its live connections stay."""
        async with self._changing:
            if self._modes.pop(port, None) is not None:
                await self._serve(self._modes)

    def handler(self, client_id: str) -> ConnectionHandler | None:
        """The handler of a client connection, `None` once it is closed."""
        return self._proxyserver.connections.get(client_id)

    def connections(self, port: int) -> Iterator[ConnectionHandler]:
        """The live client connections of a port."""
        for handler in list(self._proxyserver.connections.values()):
            if handler.client.sockname[1] == port:
                yield handler

    def from_address(self, peername: tuple[str, int]) -> ConnectionHandler | None:
        """The handler of the client connection that comes from an address."""
        return next((h for h in self._proxyserver.connections.values() if h.client.peername == peername), None)

    def cut(self, handler: ConnectionHandler) -> None:
        """End a client connection, and what it has upstream."""
        _cut(handler)

    async def _serve(self, modes: dict[int, ProxyMode]) -> None:
        await self._proxyserver.servers.update(modes.values())

    def _unused_port(self) -> int:
        """A free port that no earlier run of this process had: what survived of that run may still call it.

        The sockets stay bound while choosing, so that the same number does not come again.
        """
        held = []
        try:
            while True:
                probe = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                held.append(probe)
                probe.bind(("127.0.0.1", 0))
                port: int = probe.getsockname()[1]
                if port not in self._used:
                    self._used.append(port)
                    return port
        except OSError as error:
            raise DriverError(f"no port is free on 127.0.0.1: {error}") from error
        finally:
            for probe in held:
                probe.close()


def _cut(handler: ConnectionHandler) -> None:
    for io in list(handler.transports.values()):
        if io.handler is not None:
            with suppress(RuntimeError):
                io.handler.cancel("closed by the proxy driver")


def _tear(handler: ConnectionHandler) -> None:
    """Close the sockets of a connection below whatever still holds it."""
    for io in handler.transports.values():
        if isinstance(io.writer, asyncio.StreamWriter):
            io.writer.transport.abort()
