"""The few decisions on which everything rests, gathered so that a variant of the agent can replace exactly one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.reference import errors, keys, saga, turn
from agents.reference.budget import Scope
from agents.reference.errors import Failure
from agents.reference.ledger import Action, Ledger
from agents.reference.tools import Tool
from agents.reference.transport import Loss


def same_scope(scope: Scope, attempt: int, now: float) -> Scope:
    """A retry gets what is left of the time, never new time."""
    return scope


@dataclass(frozen=True, slots=True)
class Decisions:
    """What the reference agent does, each at the place where a plausible agent does something worse."""

    present: Callable[[Tool, str, Mapping[str, Any]], keys.Presented] = keys.present
    """How a call shows which action it is."""

    judge_loss: Callable[[Loss], Failure] = errors.from_loss
    """What a missing answer means."""

    attempt_scope: Callable[[Scope, int, float], Scope] = same_scope
    """How much time the n-th attempt has."""

    harvest: Callable[[turn.Turn], turn.Harvest] = turn.harvest
    """What of a model's answer may be executed."""

    undo_order: Callable[[Sequence[Action]], Sequence[Action]] = saga.strict_reverse
    """In which order effects are undone."""

    ledger: type[Ledger] = Ledger
    """When the ledger is written."""


REFERENCE = Decisions()
