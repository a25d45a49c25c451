"""The processes that a run is played on: proxy, stand-ins and launcher, started once for many runs."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from pathlib import Path
from typing import IO

from harness.errors import HarnessError
from harness.processes.control import ChildProcess, Message


class Stage:
    """Proxy, stand-ins and launcher, all on the loopback address.

    Use as an asynchronous context manager. Raises `HarnessError` if one of them does not start; `log` (a file below
    `folder`) then says why.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.secret = secrets.token_hex(16)
        """What the stand-ins know the proxy by. Told on standard input only, where no agent can read it."""
        self.proxy = ChildProcess("_proxy", on_event=self._deliver)
        self.standins = ChildProcess("_standins", on_event=self._deliver)
        self.launcher = ChildProcess("_launcher", on_event=self._deliver)
        self.listeners: dict[str, asyncio.Queue[Message]] = {}
        """Events by run: what the run's own task has to act on."""
        self._log: IO[bytes] | None = None

    @property
    def upstreams(self) -> dict[str, str]:
        """Base URLs of the stand-ins, as the proxy reaches them."""
        tools, model = self.standins.ready["tools"], self.standins.ready["model"]
        return {"tools": f"http://127.0.0.1:{tools}", "model": f"http://127.0.0.1:{model}"}

    async def __aenter__(self) -> Stage:
        self.folder.mkdir(parents=True, exist_ok=True)
        log = (self.folder / "processes.log").open("ab")
        self._log = log
        try:
            await asyncio.gather(
                self.launcher.start(log=log.fileno()),
                self.proxy.start("--confdir", str(self.folder / "proxy"), log=log.fileno()),
                self.standins.start("--state", str(self.folder / "service"), log=log.fileno()),
            )
        except HarnessError as error:
            await self.stop()
            raise HarnessError(f"{error}; see {self.folder / 'processes.log'}") from None
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """End the processes; agents first, so that nothing they do meets a closed door."""
        with contextlib.suppress(HarnessError):
            await self.launcher.stop()
        await asyncio.gather(self.proxy.stop(), self.standins.stop(), return_exceptions=True)
        if self._log:
            self._log.close()
            self._log = None

    def listen(self, run_id: str) -> asyncio.Queue[Message]:
        """The events of a run from now on: `exited` of its agent, `process` from the proxy, `lost` of one of ours."""
        queue: asyncio.Queue[Message] = asyncio.Queue()
        self.listeners[run_id] = queue
        return queue

    def _deliver(self, event: Message) -> None:
        if event["event"] == "lost":
            for queue in self.listeners.values():
                queue.put_nowait(event)
            return
        if listening := self.listeners.get(str(event.get("run_id"))):
            listening.put_nowait(event)
