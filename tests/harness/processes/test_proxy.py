"""The proxy process, over its line protocol."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HarnessError
from harness.processes.control import ChildProcess, own_command
from tests.injectors.rig import CHARGE, REGISTRY, Service, fault, post

CLIENT = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    connection.sendall(sys.stdin.buffer.read())
    print(connection.recv(65536)[:15].decode(), flush=True)
"""


class Stage:
    """The process, a service behind it, and what it has said without being asked."""

    def __init__(self) -> None:
        self.service = Service()
        self.events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.proxy = ChildProcess("_proxy", on_event=self.events.put_nowait)
        self.url = ""

    def run(self, run_id: str, *faults: dict[str, Any]) -> dict[str, Any]:
        """What `open_run` takes."""
        numbered = [{"id": f"f{n}"} | data for n, data in enumerate(faults, 1)]
        upstreams = {"model": self.url, "tools": self.url}
        return {"run_id": run_id, "registry": REGISTRY, "upstreams": upstreams, "faults": numbered}


@asynccontextmanager
async def stage(folder: Path) -> AsyncIterator[Stage]:
    """A running proxy process."""
    made = Stage()
    server = await asyncio.start_server(made.service.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with (folder / "log").open("wb") as log:
        await made.proxy.start("--confdir", str(folder / "confdir"), log=log.fileno())
        try:
            yield made
        finally:
            await made.proxy.stop()
            server.close()


async def client(port: int) -> asyncio.subprocess.Process:
    """A process that sends one call and prints how the answer begins."""
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-S", "-c", CLIENT, str(port), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    if started.stdin is not None:
        started.stdin.write(post(port, "/tools/charge", CHARGE))
        started.stdin.close()
    return started


def test_a_run_from_open_to_close(tmp_path: Path) -> None:
    """Open, one call, close: the answer says what was sent, seen and fired; the home directory is not needed."""

    async def play() -> None:
        async with stage(tmp_path) as on:
            port = (await on.proxy.ask("open_run", run=on.run("r1", fault("rate-limited", tool="refund"))))["port"]
            said, _ = await (await client(port)).communicate()
            assert said.decode().strip() == "HTTP/1.1 200 OK"
            closed = await on.proxy.ask("close_run", run_id="r1", limit_s=5)
            assert (closed["sent"], closed["fired"], closed["failure"]) == (["w1"], {"f1": 0}, None)
            assert closed["flows"]["tool"] == 1
            assert [record["type"] for record in closed["records"]] == ["tool_call_started", "tool_call_finished"]

    asyncio.run(play())


def test_a_kill_waits_for_the_harness(tmp_path: Path) -> None:
    """The event comes with a token, the flow is held until the answer, and the agent has got nothing."""

    async def play() -> None:
        async with stage(tmp_path) as on:
            run = on.run("r1", fault("kill", point="after-effect"))
            port = (await on.proxy.ask("open_run", run=run))["port"]
            agent = await client(port)
            assert await asyncio.wait_for(on.events.get(), 10) == {"event": "seen", "run_id": "r1"}
            event = await asyncio.wait_for(on.events.get(), 10)
            assert (event["event"], event["run_id"], event["action"]) == ("process", "r1", "kill")
            os.kill(agent.pid, signal.SIGKILL)
            await agent.wait()
            await on.proxy.ask("acted", token=event["token"])
            closed = await on.proxy.ask("close_run", run_id="r1", limit_s=5)
            assert (closed["fired"], closed["failure"]) == ({"f1": 1}, None)
            assert len(on.service.executed) == 1

    asyncio.run(play())


def test_every_process_of_a_run_is_told_of_when_it_has_come_up(tmp_path: Path) -> None:
    """The first request of a run is told, no other one, and again the first of the process after a kill."""

    async def play() -> None:
        async with stage(tmp_path) as on:
            run = on.run("r1", fault("kill", point="after-effect"))
            port = (await on.proxy.ask("open_run", run=run))["port"]
            agent = await client(port)
            told = [await asyncio.wait_for(on.events.get(), 10) for _ in range(2)]
            assert [event["event"] for event in told] == ["seen", "process"]
            os.kill(agent.pid, signal.SIGKILL)
            await agent.wait()
            await on.proxy.ask("acted", token=told[1]["token"])
            for _ in range(3):
                await (await client(port)).communicate()
            assert await asyncio.wait_for(on.events.get(), 10) == {"event": "seen", "run_id": "r1"}
            closed = await on.proxy.ask("close_run", run_id="r1", limit_s=5)
            assert (closed["flows"]["tool"], closed["failed_at"]) == (4, None)
            assert on.events.empty()

    asyncio.run(play())


def test_mistakes_are_answered_in_words(tmp_path: Path) -> None:
    """A run that is not there, one opened twice, an unknown kind, a token nobody gave: errors, and it lives on."""

    async def play() -> None:
        async with stage(tmp_path) as on:
            with pytest.raises(HarnessError, match="no open run"):
                await on.proxy.ask("close_run", run_id="nobody", limit_s=1)
            with pytest.raises(HarnessError, match="did you mean `reset`"):
                await on.proxy.ask("open_run", run=on.run("r1", fault("rest")))
            await on.proxy.ask("open_run", run=on.run("r1"))
            with pytest.raises(HarnessError, match="open already"):
                await on.proxy.ask("open_run", run=on.run("r1"))
            with pytest.raises(HarnessError, match="nobody waits"):
                await on.proxy.ask("acted", token="none")
            await on.proxy.ask("close_run", run_id="r1", limit_s=1)

    asyncio.run(play())


def test_it_ends_with_its_harness(tmp_path: Path) -> None:
    """A closed standard input ends the process at once, with an open run and a held connection too."""
    command = own_command("_proxy", "--confdir", str(tmp_path))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        if process.stdout is None or process.stdin is None:
            pytest.fail("no pipes")
        assert json.loads(process.stdout.readline())["event"] == "ready"
        url = "http://127.0.0.1:9"
        run = {
            "run_id": "r",
            "registry": REGISTRY,
            "upstreams": {"model": url, "tools": url},
            "faults": [fault("hang")],
        }
        process.stdin.write(json.dumps({"id": 1, "op": "open_run", "run": run}).encode() + b"\n")
        process.stdin.flush()
        port = json.loads(process.stdout.readline())["port"]
        agent = subprocess.Popen([sys.executable, "-S", "-c", CLIENT, str(port)], stdin=subprocess.PIPE)
        if agent.stdin is not None:
            agent.stdin.write(post(port, "/tools/charge", CHARGE))
            agent.stdin.close()
        process.stdin.close()
        assert process.wait(5) == 0
        agent.wait(5)
