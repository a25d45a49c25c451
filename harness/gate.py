"""How many agents start up at once: starting computes, and on a full machine every start would look slow."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


def usable_cores() -> int:
    """The cores that this process may use; a container or `taskset` may have left it fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


class StartGate:
    """Lets so many agents start up at once, first come, first served.

    A restart never waits: its run's clock is running, and the wait would be ours. It takes a place of its own, and
    first starts wait until there is one less than `places` again.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def starting(self, *, again: bool = False) -> AsyncIterator[None]:
        """Hold a place while an agent starts up; `again`: it is a restart within a run."""
        if again or self._inside < self._places:
            self._inside += 1
        else:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn  # whoever leaves has counted us in
            except asyncio.CancelledError:
                if not turn.cancelled():
                    self._leave()
                raise
        try:
            yield
        finally:
            self._leave()

    def _leave(self) -> None:
        self._inside -= 1
        while self._waiting and self._inside < self._places:
            turn = self._waiting.popleft()
            if not turn.done():
                self._inside += 1
                turn.set_result(None)
