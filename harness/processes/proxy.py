"""The proxy process: one mitmproxy for all runs, told what to do over the line protocol."""

from __future__ import annotations

import argparse
import asyncio
import gc
from pathlib import Path

from harness.processes.control import Message, emit, serve
from injectors.drivers.proxy import ProxyDriver


def main(argv: list[str]) -> int:
    """Serve until standard input ends. `--confdir` is mitmproxy's own folder; the home directory is left alone."""
    parser = argparse.ArgumentParser(prog="stormproof _proxy")
    parser.add_argument("--confdir", type=Path, required=True)
    arguments = parser.parse_args(argv)
    asyncio.run(_serve(arguments.confdir))
    return 0


async def _serve(confdir: Path) -> None:
    driver = ProxyDriver(confdir=confdir, emit=emit)
    await driver.start()

    async def open_run(message: Message) -> Message:
        return {"port": await driver.open_run(message["run"])}

    async def close_run(message: Message) -> Message:
        return await driver.close_run(message["run_id"], float(message["limit_s"]))

    async def acted(message: Message) -> Message:
        driver.acted(message["token"], struck=bool(message.get("struck", True)))
        return {}

    # What is loaded by now stays: the collector need not look at it again.
    gc.collect()
    gc.freeze()
    try:
        await serve({"open_run": open_run, "close_run": close_run, "acted": acted}, ready={})
    finally:
        await driver.stop()
