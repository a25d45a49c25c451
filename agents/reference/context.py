"""What the model is told: the conversation, rebuilt from the ledger, so that a restart and a plain next turn are the
same thing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agents.reference.ledger import Action
from agents.reference.turn import Answered, Exchange, Wanted


def exchanges(turns: Sequence[Mapping[str, Any]], actions: Sequence[Action]) -> tuple[Exchange, ...]:
    """The turns so far with the answers to their calls, in the order of the calls."""
    return tuple(
        Exchange(
            text=str(turn.get("text") or ""),
            calls=tuple(Wanted(call["id"], call["name"], call["arguments"]) for call in turn["calls"]),
            answers=tuple(answer(action) for action in actions if action.turn == number),
        )
        for number, turn in enumerate(turns, start=1)
    )


def answer(action: Action) -> Answered:
    """The answer to one call: its result, or a structured place-holder for it."""
    if action.state == "succeeded":
        return Answered(action.call_id, json.dumps(action.result, ensure_ascii=False), is_error=False)
    failure = action.failure
    error = {
        "kind": failure.kind if failure else "unknown",
        "message": failure.message if failure else "no result",
        "retryable": bool(failure and failure.rejected),
        "may_have_taken_effect": bool(failure and failure.may_have_taken_effect),
        "started": action.state not in ("refused", "skipped"),
    }
    return Answered(action.call_id, json.dumps({"error": error}, ensure_ascii=False), is_error=True)
