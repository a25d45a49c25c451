"""Errors as a contract: every failure, of a tool or a model, becomes one `Failure`.

There are two conversion points and no third: `from_reply` for an answer that is an error, `from_loss` for no answer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from agents.reference.transport import Loss, Reply

SERVER_DIRECTED: Final = frozenset({429, 503, 529})
"""The statuses whose Retry-After is obeyed."""

_RETRYABLE: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_CERTAIN: Final = frozenset({425, 429, 501})
"""Statuses that say the request was not carried out; of other 4xx only 408 and 409 leave a doubt."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure. Unknown is not retryable, and what is not known to be untouched may have taken effect."""

    kind: str
    message: str
    retryable: bool = False
    may_have_taken_effect: bool = False
    retry_after_s: float | None = None
    status: int | None = None
    rejected: bool = False
    """The service understood the call and refused it: other arguments may do better."""
    answered: bool = True
    """False where no answer came at all."""

    def certain(self) -> Failure:
        """The same failure, now known to have left nothing behind."""
        refused = self.status is not None and 400 <= self.status < 500 and not self.retryable
        return replace(self, may_have_taken_effect=False, rejected=refused)

    def after(self, earlier: Failure | None) -> Failure:
        """This failure as the end of a call whose `earlier` attempt failed: a doubt stays until it is settled."""
        if earlier is None or not earlier.may_have_taken_effect:
            return self
        return replace(self, may_have_taken_effect=True, rejected=False)

    def as_json(self) -> dict[str, Any]:
        """The wire form of contract section 3, `error`."""
        return {
            "kind": self.kind,
            "message": self.message,
            "retryable": self.retryable,
            "retry_after_s": self.retry_after_s,
            "may_have_taken_effect": self.may_have_taken_effect,
            "rejected": self.rejected,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Failure:
        """Read back what `as_json` wrote."""
        return cls(
            str(data.get("kind") or "unknown"),
            str(data.get("message") or ""),
            bool(data.get("retryable")),
            bool(data.get("may_have_taken_effect")),
            data.get("retry_after_s"),
            rejected=bool(data.get("rejected")),
        )


class RunStopped(Exception):
    """The run cannot go forward: an explicit end, with the budget that ran out where one did."""

    def __init__(self, failure: Failure, *, budget: str | None = None) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.budget = budget


def from_reply(reply: Reply, now: float) -> Failure:
    """The failure that an answer with an error status means."""
    said = _error_in(reply.body)
    status = reply.status
    kind = said.get("kind") or said.get("type")
    retryable = said.get("retryable")
    effect = said.get("may_have_taken_effect")
    doubtful = status in (408, 409) or (status >= 500 and status not in _CERTAIN)
    is_retryable = retryable if isinstance(retryable, bool) else status in _RETRYABLE
    may_stand = effect if isinstance(effect, bool) else doubtful
    return Failure(
        kind=kind if isinstance(kind, str) and kind else f"http_{status}",
        message=str(said.get("message") or f"status {status}")[:500],
        retryable=is_retryable,
        may_have_taken_effect=may_stand,
        retry_after_s=_wait(reply.headers.get("retry-after"), said.get("retry_after_s"), now)
        if status in SERVER_DIRECTED
        else None,
        status=status,
        rejected=400 <= status < 500 and not is_retryable and not may_stand,
    )


def from_loss(loss: Loss) -> Failure:
    """The failure that a missing answer means: whatever was sent may have been carried out."""
    return Failure(
        kind=loss.kind,
        message=str(loss),
        retryable=True,
        may_have_taken_effect=loss.sent,
        answered=False,
    )


def unreadable(reply: Reply) -> Failure:
    """A success whose result cannot be read: carried out, as far as one can tell, with the result lost."""
    return Failure(
        "unreadable", f"status {reply.status} with a body that is no JSON", True, True, status=reply.status
    )


def unexpected(fault: BaseException) -> Failure:
    """A failure of the agent itself."""
    return Failure("internal_error", f"{type(fault).__name__}: {fault}"[:500])


def _error_in(body: bytes) -> Mapping[str, Any]:
    try:
        data = json.loads(body)
    except ValueError:
        return {}
    error = data.get("error") if isinstance(data, dict) else None
    return error if isinstance(error, dict) else {}


def _wait(header: str | None, said: Any, now: float) -> float | None:
    """Seconds to wait, from the header (seconds or HTTP date) or else the body; what cannot be read says nothing."""
    for value in (header, said):
        if value is None or isinstance(value, bool):
            continue
        try:
            seconds = float(value)
        except (TypeError, ValueError):
            seconds = _seconds_to(str(value), now)
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return None


def _seconds_to(date: str, now: float) -> float:
    from email.utils import parsedate_to_datetime  # rare: kept off the start

    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - now)
    except (TypeError, ValueError):
        return math.nan
