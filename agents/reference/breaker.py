"""A three-state breaker per tool: a run of failures opens it, a pause and a bounded probe may close it again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from agents.reference.clock import Clock
from agents.reference.events import Events

THRESHOLD: Final = 5
COOL_DOWN_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Ticket:
    """Leave to call. `era` tells in which state it was given: only calls of the present state are heard."""

    tool: str
    era: int


@dataclass(slots=True)
class _State:
    name: str = "closed"
    era: int = 0
    failures: int = 0
    tripped: bool = False
    under_way: int = 0
    probes: int = 0
    opened_at: float = 0.0


class Breakers:
    """All breakers of a run. A half-open one lets `probes` calls through; 0 keeps an open one open for good."""

    def __init__(self, events: Events, clock: Clock, *, probes: int = 0, threshold: int = THRESHOLD) -> None:
        self._events, self._clock = events, clock
        self._probes, self._threshold = probes, threshold
        self._states: dict[str, _State] = {}
        self._lock = threading.Lock()

    @contextmanager
    def entrance(self, tool: str) -> Iterator[Ticket | None]:
        """Ask for leave to call; `None` refuses. What is announced inside is not overtaken by an opening."""
        with self._lock:
            state = self._states.setdefault(tool, _State())
            yield self._admit(tool, state)

    def report(self, ticket: Ticket, *, healthy: bool) -> None:
        """Say how the service did. Every ticket must come back, or the opening would be waited for in vain."""
        with self._lock:
            state = self._states[ticket.tool]
            state.under_way -= 1
            if ticket.era == state.era:
                self._hear(ticket.tool, state, healthy=healthy)
            if state.tripped and state.under_way == 0:
                self._change(ticket.tool, state, "open")

    def _admit(self, tool: str, state: _State) -> Ticket | None:
        if state.name == "open" and self._probes and self._clock.now() >= state.opened_at + COOL_DOWN_S:
            self._change(tool, state, "half_open")
        full = state.name == "half_open" and state.probes >= self._probes
        if state.name == "open" or state.tripped or full:
            return None
        state.under_way += 1
        state.probes += state.name == "half_open"
        return Ticket(tool, state.era)

    def _hear(self, tool: str, state: _State, *, healthy: bool) -> None:
        if healthy:
            state.failures = 0
            if state.name == "half_open" and not state.tripped:
                self._change(tool, state, "closed")
            return
        state.failures += 1
        # The opening is announced once the calls under way have come back, so that a call admitted before it is
        # never seen to start after it. Until then nothing new is admitted.
        state.tripped = state.tripped or state.name == "half_open" or state.failures >= self._threshold

    def _change(self, tool: str, state: _State, to: str) -> None:
        self._events.emit(
            "breaker_state_changed",
            tool=tool,
            failures=state.failures,
            threshold=self._threshold,
            **{"from": state.name, "to": to},
        )
        state.name, state.tripped, state.probes = to, False, 0
        state.era += 1
        if to == "open":
            state.opened_at = self._clock.now()
        if to == "closed":
            state.failures = 0
