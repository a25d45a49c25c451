"""Whether and when to try again: class of the call, share of requests, full jitter, the server's word, deadline."""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from dataclasses import dataclass
from typing import Final

from agents.reference.budget import Scope
from agents.reference.errors import SERVER_DIRECTED, Failure

MAX_ATTEMPTS: Final = 5
BASE_S: Final = 0.05
CAP_S: Final = 1.0
POLITENESS_S: Final = 0.25
"""Most that is added to a wait the server asked for, so that all who were told the same do not come at once."""


class RetryBudget:
    """At most `share` of the requests in a sliding window may be retries, and `minimum` of them in any case."""

    def __init__(self, *, share: float = 0.2, minimum: int = 3, window_s: float = 60.0) -> None:
        self._share, self._minimum, self._window_s = share, minimum, window_s
        self._requests: deque[float] = deque()
        self._retries: deque[float] = deque()
        self._lock = threading.Lock()

    def note_request(self, now: float) -> None:
        """Count a request, first attempt or not."""
        with self._lock:
            self._requests.append(now)

    def left(self, now: float) -> int:
        """Retries that may still be made."""
        with self._lock:
            return self._left(now)

    def take(self, now: float) -> bool:
        """Take one retry; false where the share is used up."""
        with self._lock:
            if self._left(now) < 1:
                return False
            self._retries.append(now)
            return True

    def _left(self, now: float) -> int:
        for times in (self._requests, self._retries):
            while times and times[0] <= now - self._window_s:
                times.popleft()
        return max(self._minimum, int(self._share * len(self._requests))) - len(self._retries)


@dataclass(frozen=True, slots=True)
class Again:
    """Try again after `delay_s`."""

    delay_s: float
    cap_s: float
    server_directed: bool


@dataclass(frozen=True, slots=True)
class Enough:
    """Do not try again: `class`, `not_retryable`, `attempts` or `deadline`."""

    reason: str


@dataclass(frozen=True, slots=True)
class Tried:
    """What the decision rests on: `attempt` is the number of the one that failed, `need_s` what another takes."""

    key: str
    attempt: int
    failure: Failure
    repeatable: bool
    need_s: float
    most: int = MAX_ATTEMPTS


def decide(tried: Tried, scope: Scope, now: float) -> Again | Enough:
    """Pure: the same facts, the same answer. The share of retries is asked for afterwards, since asking spends it."""
    failure = tried.failure
    if not tried.repeatable:
        return Enough("class")
    if not failure.retryable:
        return Enough("not_retryable")
    if tried.attempt >= tried.most:
        return Enough("attempts")
    cap = min(CAP_S, BASE_S * 2 ** (tried.attempt - 1))
    draw = jitter(tried.key, tried.attempt)
    directed = failure.status in SERVER_DIRECTED and failure.retry_after_s is not None
    delay = (failure.retry_after_s or 0.0) + draw * POLITENESS_S if directed else draw * cap
    if not scope.fits(delay + tried.need_s, now):
        return Enough("deadline")
    return Again(delay, cap, directed)


def jitter(key: str, attempt: int) -> float:
    """A number in [0, 1) that looks random over keys and attempts, and is the same whenever a run is repeated."""
    drawn = hashlib.sha256(f"{len(key)}:{key}{attempt}".encode()).digest()
    return int.from_bytes(drawn[:8], "big") / 2**64
