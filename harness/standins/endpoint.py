"""What both HTTP faces of the stand-ins share: finding the run, counting traffic, failing loudly."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod

from aiohttp import web

from harness.standins.runs import RUN_HEADER, SECRET_HEADER, WIRE_HEADER, Run, Runs

BODY_LIMIT = 32 * 1024 * 1024
"""Bytes of a request, as the Anthropic API limits them."""
KEEP_ALIVE_S = 3600.0
"""An upstream that closes idle connections would be a fault that nobody injected."""


class Endpoint(ABC):
    """An HTTP server on a loopback port, every request of which belongs to an open run."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._runner: web.AppRunner | None = None

    async def start(self) -> int:
        """Starts to listen and returns the port."""
        application = web.Application(client_max_size=BODY_LIMIT)
        application.router.add_route("*", "/{path:.*}", self._handle)
        # A client that leaves must not stop what it has asked for: late effects are effects.
        runner = web.AppRunner(
            application,
            access_log=None,
            handler_cancellation=False,
            keepalive_timeout=KEEP_ALIVE_S,
            shutdown_timeout=0.1,
        )
        self._runner = runner
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return int(runner.addresses[0][1])

    async def stop(self) -> None:
        """Closes the port and its connections."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        run = self._runs.get(request.headers.get(RUN_HEADER))
        if run is None:
            given = request.headers.get(RUN_HEADER)
            why = f"there is no open run {given!r}" if given else f"the request has no {RUN_HEADER} header"
            return self.refuse(request, 404, "unknown_run", f"{why}: it did not come through the proxy of a run")
        if not run.admits(request.headers.get(SECRET_HEADER, "")):
            # Its port can be found in /proc/net/tcp, and our headers can be forged: what came past the proxy is on
            # no record of it, and must not have an effect.
            why = "this port is the proxy's alone; requests go to the base URLs that the agent was given"
            return self.refuse(request, 403, "bypassed_proxy", why)
        with run.traffic.request(request.headers.get(WIRE_HEADER, "")):
            try:
                return await self.answer(run, request)
            except web.HTTPRequestEntityTooLarge:
                return self.refuse(request, 413, "request_too_large", f"a request has at most {BODY_LIMIT} bytes")
            except ConnectionError:
                return web.Response(status=400)  # the client is gone; nobody reads this
            except Exception as error:  # noqa: BLE001 - whatever it is, the run must not pass with it
                traceback.print_exc()
                run.failure = run.failure or f"{type(self).__name__}: {type(error).__name__}: {error}"
                return self.refuse(request, 500, "stand_in_failed", "the stand-in itself failed; see its log")

    @abstractmethod
    async def answer(self, run: Run, request: web.Request) -> web.StreamResponse:
        """Answers a request of an open run."""

    @abstractmethod
    def refuse(self, request: web.Request, status: int, kind: str, message: str) -> web.Response:
        """An error in the shape that this server's clients read."""


def path_of(request: web.Request) -> str:
    """The path of a request with its slashes collapsed: base URLs with and without a last slash are common."""
    return "/" + "/".join(step for step in request.path.split("/") if step)
