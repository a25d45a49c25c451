"""Where time comes from, so that tests can make it virtual."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Unix time in seconds, and waiting."""

    def now(self) -> float:
        """The present instant."""

    def sleep(self, seconds: float) -> None:
        """Return no earlier than `seconds` from now."""


class SystemClock:
    """Real time. It follows the monotonic clock, so that a step of the wall clock moves no deadline."""

    def __init__(self) -> None:
        self._origin = time.time() - time.monotonic()

    def now(self) -> float:
        """The present instant."""
        return self._origin + time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait in this thread."""
        if seconds > 0:
            time.sleep(seconds)
