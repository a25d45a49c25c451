"""The process of the stand-ins: tool service and model gateway on two loopback ports, run by the line protocol.

`stormproof _standins --state DIR` keeps the ledger in DIR, so that a restarted process still knows what it did.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import sys
from pathlib import Path

from harness.errors import HarnessError
from harness.processes.control import Message, serve
from harness.standins.conversation import POLICIES
from harness.standins.gateway import Gateway
from harness.standins.ledger import Ledger
from harness.standins.recording import Recordings
from harness.standins.runs import Run, Runs
from harness.standins.service import ToolService
from harness.standins.tool_endpoint import ToolEndpoint

LEDGER = "effects.sqlite3"


class StandIns:
    """The operations of the control protocol."""

    def __init__(self, ledger: Ledger, runs: Runs) -> None:
        self._ledger = ledger
        self._runs = runs
        self._recordings = Recordings()

    async def open_run(self, message: Message) -> Message:
        """`{run_id, world, intent_id, tenant, trace, registry, policy, latency_s?, secret?}`: from now on requests
        with this run id are answered. `latency_s`: seconds that the service works on a call, by tool. `secret`: what
        requests have to carry in `x-stormproof-secret`, where they have to."""
        policy = message.get("policy", "continue")
        if policy not in POLICIES:
            raise HarnessError(f"there is no policy {policy!r}; there are {', '.join(POLICIES)}")
        run = Run(
            run_id=message["run_id"],
            world=message["world"],
            intent_id=message["intent_id"],
            tenant=message["tenant"],
            recording=self._recordings.get(message["trace"], message["registry"]),
            policy=policy,
            latency_s=message.get("latency_s") or {},
            secret=message.get("secret") or "",
        )
        self._runs.open(run)
        return {}

    async def drain(self, message: Message) -> Message:
        """`{run_id, sent, limit_s}`: waits until every request sent is done and nothing of the run is under way, then
        tells all effects of the run so far. `unfinished`: the wire ids that were not done within the limit."""
        run = self._runs.get(message["run_id"])
        if run is None:
            raise HarnessError(f"there is no open run {message['run_id']!r}")
        unfinished = await run.traffic.drained(message["sent"], limit_s=message["limit_s"])
        if run.failure is not None:
            raise HarnessError(run.failure)
        return {"effects": self._ledger.effects(run.run_id), "unfinished": unfinished}

    async def close_world(self, message: Message) -> Message:
        """`{world}`: forgets the runs and effects of a world."""
        self._runs.close_world(message["world"])
        self._ledger.forget(message["world"])
        return {}


async def _serve(ledger: Ledger) -> None:
    runs = Runs()
    standins = StandIns(ledger, runs)
    tools, model = ToolEndpoint(runs, ToolService(ledger)), Gateway(runs)
    handlers = {
        "open_run": standins.open_run,
        "drain": standins.drain,
        "close_world": standins.close_world,
    }
    try:
        ready = {"tools": await tools.start(), "model": await model.start()}
        await serve(handlers, ready=ready)
    finally:
        await tools.stop()
        await model.stop()
        ledger.close()


def main(argv: list[str]) -> int:
    """Run the process until its standard input ends; 3 where the ledger or a port cannot be had."""
    parser = argparse.ArgumentParser(prog="stormproof _standins")
    parser.add_argument("--state", type=Path, required=True, help="folder of the ledger")
    arguments = parser.parse_args(argv)
    try:
        arguments.state.mkdir(parents=True, exist_ok=True)
        asyncio.run(_serve(Ledger(arguments.state / LEDGER)))
    except (OSError, sqlite3.Error) as error:
        print(f"stand-ins: {arguments.state}: {error}", file=sys.stderr)  # noqa: T201 - this is the log
        return 3
    return 0
