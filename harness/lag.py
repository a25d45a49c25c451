"""How late the harness's own clock runs, and whether it was set: neither must be taken for the agent's doing."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import Callable

TICK_S = 0.05
CLOCK_STEP_S = 0.05
"""So much may the wall clock move against the monotonic one; records of a run may be out of order by no more."""
_READ_S = 0.001
_READS = 10

Clock = Callable[[], float]


class LagMonitor:
    """Samples how much later than asked the event loop wakes up, and how far apart the two clocks are.

    Moments are seconds of the monotonic clock.
    """

    def __init__(self, *, monotonic: Clock = time.monotonic, wall: Clock = time.time) -> None:
        self._monotonic, self._wall = monotonic, wall
        self._due: float | None = None
        self._whens: list[float] = []
        self._lates: list[float] = []
        """Only what no later sample exceeds, so that the first since a moment is the worst since then."""
        self._steps: list[tuple[float, float]] = []
        self._offset = self._measured_offset()

    async def watch(self) -> None:
        """Sample for ever; run it as a task and cancel it."""
        while True:
            self._due = self._monotonic() + TICK_S
            await asyncio.sleep(TICK_S)
            self.look()

    def look(self) -> None:
        """Take a sample now: a wait that is not over yet counts as far as it has gone."""
        now = self._monotonic()
        late = 0.0 if self._due is None else max(0.0, now - self._due)
        while self._lates and self._lates[-1] <= late:
            self._whens.pop()
            self._lates.pop()
        self._whens.append(now)
        self._lates.append(late)
        moved = self._measured_offset() - self._offset
        if abs(moved) > CLOCK_STEP_S:
            self._steps.append((now, moved))
            self._offset += moved

    def worst_since(self, moment: float) -> float:
        """The worst lateness (seconds) sampled since a moment; 0 without a sample."""
        first = bisect_left(self._whens, moment)
        return self._lates[first] if first < len(self._lates) else 0.0

    def clock_moved_since(self, moment: float) -> float:
        """By how many seconds the wall clock was set forward (or, negative, back) since a moment, at its largest."""
        return max((moved for when, moved in self._steps if when >= moment), key=abs, default=0.0)

    def _measured_offset(self) -> float:
        """Wall minus monotonic time. A pause of ours between the two readings is no step of the clock."""
        best, width = 0.0, float("inf")
        for _ in range(_READS):
            before, wall, after = self._monotonic(), self._wall(), self._monotonic()
            if after - before < width:
                best, width = wall - (before + after) / 2, after - before
            if width <= _READ_S:
                break
        return best
