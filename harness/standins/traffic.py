"""What of a run is under way in this process, and the handshake that waits until nothing is."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager


class Traffic:
    """The requests of one run, by the wire ids that the proxy gave them (empty where there is none)."""

    def __init__(self) -> None:
        self.under_way: Counter[str] = Counter()
        self.done: set[str] = set()
        self._changed = asyncio.Event()

    @contextmanager
    def request(self, wire: str) -> Iterator[None]:
        """Counts a request as under way from its arrival until its work is done, however it ends."""
        self.under_way[wire] += 1
        try:
            yield
        finally:
            self.under_way[wire] -= 1
            if not self.under_way[wire]:
                del self.under_way[wire]
            self.done.add(wire)
            self._changed.set()

    async def drained(self, sent: Collection[str], *, limit_s: float) -> list[str]:
        """Waits until all that was sent is done and nothing is under way; what is not after `limit_s` seconds."""
        try:
            async with asyncio.timeout(limit_s):
                while self._open(sent):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass
        return self._open(sent)

    def _open(self, sent: Collection[str]) -> list[str]:
        missing = [wire for wire in sent if wire not in self.done or self.under_way[wire]]
        return [*missing, *(wire for wire in self.under_way if wire not in missing)]
