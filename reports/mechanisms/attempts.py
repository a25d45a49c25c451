"""Attempts of calls: a start joined with its finish, and what its end means for the caller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from traces.history import Record

Line = tuple[int, Record]
"""A record with its 1-based line number in the history."""

MODEL = "model"
"""The tool name under which model calls appear in observations."""

WAIT_TOLERANCE_S = 0.05
"""How much earlier than stated a server-directed wait may end: clocks of two processes, contract section 3."""
DEADLINE_TOLERANCE_S = 0.25
"""How far an instant may move between two starts before a deadline counts as started again (section 4.2)."""

BUSY = frozenset({429, 503, 529})
RETRYABLE_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
_HARNESS_TYPES = frozenset({"fault_injected", "harness_lag", "process_started", "process_exited"})
_WIRE_TYPES = frozenset({"model_tool_call"})


def source_of(record: Record) -> str:
    """Who says so, with the defaults of contract section 3."""
    if record.source is not None:
        return record.source
    if record.type == "effect":
        return "service"
    if record.type in _HARNESS_TYPES:
        return "harness"
    return "wire" if record.type in _WIRE_TYPES else "agent"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a tool or model call: its start, and its finish if there is one on record."""

    line: int
    start: Record
    end_line: int | None = None
    finish: Record | None = None

    @property
    def tool(self) -> str:
        """The tool's name; `model` for model calls, empty where nobody says."""
        if self.start.type == "model_call_started":
            return MODEL
        return self.start.tool or (self.finish.tool if self.finish else None) or ""

    @property
    def digest(self) -> str | None:
        """Digest of the business intent, else of the arguments."""
        return self.start.intent_digest or self.start.args_digest

    @property
    def intent(self) -> tuple[str, str | int | None]:
        """What makes two attempts one logical call: the tool, and the digest, else the step."""
        return (self.tool, self.digest or self.start.step)

    @property
    def outcome(self) -> str:
        """The outcome on record, `never` where the call has no finish."""
        return (self.finish.outcome or "ok") if self.finish else "never"

    @property
    def ok(self) -> bool:
        """Whether the caller got its answer."""
        return self.outcome in {"ok", "deduplicated"}

    @property
    def uncertain(self) -> bool:
        """Whether the caller cannot know if the call took effect."""
        error = self.finish.error if self.finish else None
        doubtful = bool(error and error.may_have_taken_effect)
        return self.outcome in {"unknown", "timeout", "never"} or (self.outcome == "error" and doubtful)

    @property
    def retryable(self) -> bool:
        """Whether the attempt ended so that another one may help."""
        if self.finish is None or self.ok:
            return False
        error = self.finish.error
        if error is not None and error.retryable is not None:
            return error.retryable
        if self.outcome in {"timeout", "unknown"}:
            return True
        status = self.finish.http_status
        return self.outcome == "error" and (status is None or status in RETRYABLE_STATUS)

    @property
    def wait_s(self) -> float | None:
        """The wait that the server asked for with 429, 503 or 529, in seconds; `None` where it did not."""
        if self.finish is None or (self.finish.http_status not in BUSY and self.outcome != "error"):
            return None
        if self.finish.http_status is not None and self.finish.http_status not in BUSY:
            return None
        asked = self.finish.retry_after_s
        if asked is None and self.finish.error is not None:
            asked = self.finish.error.retry_after_s
        return asked if asked is not None and asked > 0 else None


def paired(records: Sequence[Line], first: str, last: str) -> list[Attempt]:
    """Joins starts with finishes by `attempt_id`; of several finishes the first after the start counts.

    Calls without an id are joined with the next finish of their tool and step that has none either.
    """
    attempts: list[Attempt] = []
    waiting: dict[object, int] = {}
    seen: set[str] = set()
    for line, record in records:
        if record.type not in (first, last):
            continue
        who: object = record.attempt_id or (record.tool, record.step)
        if record.type == first:
            if record.attempt_id is not None and record.attempt_id in seen:
                continue
            seen.add(record.attempt_id or "")
            waiting[who] = len(attempts)
            attempts.append(Attempt(line, record))
        elif who in waiting:
            at = waiting.pop(who)
            attempts[at] = Attempt(attempts[at].line, attempts[at].start, line, record)
    return attempts


def with_digests(attempts: list[Attempt]) -> list[Attempt]:
    """Gives attempts that lack the intent's digest that of another attempt with their key or their arguments.

    What never reached the wire is the agent's own record, and an agent need not compute what the wire does.
    """
    intents: dict[tuple[str, str], Record] = {}
    arguments: dict[tuple[str, str], Record] = {}
    for attempt in attempts:
        start, key = attempt.start, attempt.start.idempotency_key
        for mark in (key, start.args_digest):
            if mark is not None and start.intent_digest is not None:
                intents.setdefault((attempt.tool, mark), start)
        if key is not None and start.args_digest is not None:
            arguments.setdefault((attempt.tool, key), start)

    def completed(attempt: Attempt) -> Attempt:
        start, key = attempt.start, attempt.start.idempotency_key
        if start.intent_digest is not None:
            return attempt
        like = intents.get((attempt.tool, key or "")) or intents.get((attempt.tool, start.args_digest or ""))
        if like is None and start.args_digest is None:
            like = arguments.get((attempt.tool, key or ""))
        if like is None:
            return attempt
        digests = {"args_digest": like.args_digest, "intent_digest": like.intent_digest}
        return replace(attempt, start=msgspec.structs.replace(start, **digests))

    return [completed(attempt) for attempt in attempts]
