"""How late the harness's own clock runs: on a busy machine its lateness must not be taken for the agent's."""

from __future__ import annotations

import asyncio
import time
from collections import deque

TICK_S = 0.05


class LagMonitor:
    """Samples how much later than asked the event loop wakes up. Seconds, monotonic clock."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=20_000)

    async def watch(self) -> None:
        """Sample for ever; run it as a task and cancel it."""
        while True:
            due = time.monotonic() + TICK_S
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            self._samples.append((now, now - due))

    def worst_since(self, moment: float) -> float:
        """The worst lateness (seconds) sampled since a moment of the monotonic clock; 0 without a sample."""
        worst = 0.0
        for when, late in reversed(self._samples):
            if when < moment:
                break
            worst = max(worst, late)
        return worst
