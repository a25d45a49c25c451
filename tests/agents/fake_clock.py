"""Time that passes only when somebody waits."""

from __future__ import annotations


class FakeClock:
    """A virtual clock: `sleep` moves it on at once, and remembers how long was asked for."""

    def __init__(self, now: float = 1000.0) -> None:
        self.time = now
        self.slept: list[float] = []

    def now(self) -> float:
        """The present instant."""
        return self.time

    def sleep(self, seconds: float) -> None:
        """Move on."""
        self.slept.append(seconds)
        self.time += max(0.0, seconds)
