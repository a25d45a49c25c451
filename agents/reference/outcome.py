"""How a run ended, in one structure for success, part of it, and failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.reference.errors import Failure
from agents.reference.ledger import Action


@dataclass(frozen=True, slots=True)
class Outcome:
    """`status` as in contract section 3. `completed` holds the steps that stand, `failed` what is missing and why."""

    status: str
    completed: tuple[int, ...] = ()
    failure: Failure | None = None
    failed: tuple[dict[str, Any], ...] = ()
    recoverable: bool = False
    advice: str | None = None
    degraded: tuple[dict[str, str], ...] = ()
    answer: str | None = None
    handover: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The last line on standard output, and the fields of `run_finished`."""
        error = None
        if self.failure is not None:
            error = {"kind": self.failure.kind or "unknown", "message": self.failure.message}
        return {
            "status": self.status,
            "error": error,
            "completed": list(self.completed),
            "failed": list(self.failed),
            "recoverable": self.recoverable,
            "advice": self.advice,
            "degraded": list(self.degraded),
            "answer": self.answer,
        }


def shortfalls(actions: Sequence[Action]) -> tuple[dict[str, Any], ...]:
    """Steps that did not come about, with their reasons."""
    return tuple(
        {"step": action.step, "tool": action.tool, "reason": action.failure.kind if action.failure else action.state}
        for action in actions
        if action.state not in ("succeeded", "declared")
    )


def advice_for(status: str, failure: Failure | None) -> str | None:
    """What the reader may do next."""
    if status == "partial_success":
        return "what is completed stands and will not be repeated; the rest may be asked for again"
    if status == "handed_off":
        return "a person has to settle the steps named in the hand-over; do not repeat them"
    if status in ("rolled_back", "failed"):
        again = failure is not None and (failure.retryable or failure.kind == "budget_exhausted")
        return "nothing stands; the task may be started again" if again else "nothing stands"
    return None
