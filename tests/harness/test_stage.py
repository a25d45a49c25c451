"""The processes of a session: up together, down together, and a lost one is noticed at once."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.stage import Stage


def test_up_and_down(tmp_path: Path) -> None:
    """Three processes get ready, say where they listen, and are gone afterwards."""

    async def session() -> list[int]:
        async with Stage(tmp_path) as stage:
            assert set(stage.upstreams) == {"tools", "model"}
            return [child.pid or 0 for child in (stage.proxy, stage.standins, stage.launcher)]

    for pid in asyncio.run(session()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_lost_process_is_told_to_every_run(tmp_path: Path) -> None:
    """Runs do not wait for a process that has died: each of them hears of it, and requests fail in words."""

    async def session() -> None:
        async with Stage(tmp_path) as stage:
            queues = [stage.listen(run) for run in ("a", "b")]
            os.kill(stage.proxy.pid or 0, signal.SIGKILL)
            for queue in queues:
                assert await asyncio.wait_for(queue.get(), 5) == {"event": "lost", "process": "the proxy"}
            with pytest.raises(HarnessError, match=r"not running|has ended"):
                await stage.proxy.ask("close_run", run_id="a", limit_s=1)

    asyncio.run(session())
