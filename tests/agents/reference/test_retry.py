"""Whether and when to try again."""

from __future__ import annotations

from typing import Any

import pytest

from agents.reference.budget import Scope
from agents.reference.errors import Failure
from agents.reference.retry import (
    CAP_S,
    MAX_ATTEMPTS,
    POLITENESS_S,
    Again,
    Enough,
    RetryBudget,
    Tried,
    decide,
    jitter,
)

SCOPE = Scope("root", 100.0, 90.0, 100.0)
BROKEN = Failure("http_500", "", True)


def tried(failure: Failure = BROKEN, **given: Any) -> Tried:
    """A failed attempt."""
    return Tried(**{"key": "k", "attempt": 1, "failure": failure, "repeatable": True, "need_s": 2.0, **given})


@pytest.mark.parametrize(
    ("facts", "now", "reason"),
    [
        (tried(repeatable=False), 0.0, "class"),
        (tried(Failure("x", "", False)), 0.0, "not_retryable"),
        (tried(attempt=MAX_ATTEMPTS), 0.0, "attempts"),
        (tried(attempt=1, most=1), 0.0, "attempts"),
        (tried(), 89.0, "deadline"),
        (tried(Failure("x", "", True, retry_after_s=600.0, status=429)), 0.0, "deadline"),
        (tried(Failure("x", "", True, retry_after_s=88.1, status=503)), 0.0, "deadline"),
    ],
)
def test_enough(facts: Tried, now: float, reason: str) -> None:
    """Class, kind of failure, number of attempts, and time for the back-off and a whole attempt: each can say no."""
    assert decide(facts, SCOPE, now) == Enough(reason)


def test_the_backoff_is_full_jitter_under_a_cap() -> None:
    """Delays lie anywhere between nothing and a growing cap, and the cap stops growing."""
    delays = []
    for number in range(200):
        decision = decide(tried(key=f"k{number}", attempt=3), SCOPE, 0.0)
        assert isinstance(decision, Again)
        assert 0.0 <= decision.delay_s < decision.cap_s <= CAP_S
        delays.append(decision.delay_s / decision.cap_s)
    assert min(delays) < 0.05
    assert max(delays) > 0.95
    assert 0.4 < sum(delays) / len(delays) < 0.6


def test_the_servers_word_comes_first() -> None:
    """A stated wait is kept in full, with a little on top; a wait stated by another status is not one."""
    decision = decide(tried(Failure("x", "", True, retry_after_s=7.0, status=429)), SCOPE, 0.0)
    assert isinstance(decision, Again)
    assert (decision.server_directed, 7.0 <= decision.delay_s <= 7.0 + POLITENESS_S) == (True, True)
    other = decide(tried(Failure("x", "", True, retry_after_s=7.0, status=500)), SCOPE, 0.0)
    assert isinstance(other, Again)
    assert (other.server_directed, other.delay_s < 1.0) == (False, True)


def test_the_same_facts_give_the_same_answer() -> None:
    """A repeated run waits the same times; other keys and attempts draw others."""
    assert decide(tried(), SCOPE, 5.0) == decide(tried(), SCOPE, 5.0)
    assert len({jitter("a", 1), jitter("a", 2), jitter("b", 1), jitter("a1", 1)}) == 4


def test_retries_are_a_share_of_requests() -> None:
    """Beside no requests only the minimum is granted; with many, a fifth of them."""
    budget = RetryBudget(minimum=3)
    assert [budget.take(0.0) for _ in range(5)] == [True, True, True, False, False]
    for _ in range(50):
        budget.note_request(1.0)
    assert budget.left(1.0) == 7
    assert sum(budget.take(1.0) for _ in range(99)) == 7


def test_the_window_slides() -> None:
    """Retries of long ago are forgotten, and so are the requests that paid for others."""
    budget = RetryBudget(minimum=1, window_s=10.0)
    assert budget.take(0.0) is True
    assert budget.take(9.9) is False
    assert budget.take(10.1) is True
    for _ in range(100):
        budget.note_request(20.0)
    assert budget.left(29.0) == 20
    assert budget.left(31.0) == 1
