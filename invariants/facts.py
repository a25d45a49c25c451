"""What the fold remembers of a history while it passes: worlds, runs, calls and forward effects.

Everything here grows with keys (runs, attempts, steps, effects), never with records, and is dropped when its world
finishes. Lines are positions in the history, 1-based; 0 means that there is no such record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from traces.history import Limits

TOLERANCE = 1e-6
"""Comparisons of times and sums allow this much (contract section 4)."""

LAG_S = 0.25
"""A harness that was late by more than this cannot vouch for times (contract section 4, `harness_lag`)."""

NO_LIMITS = Limits()


class Call(msgspec.Struct, eq=False, gc=False):
    """One counted start of an `attempt_id`: its line, whether a compensation was open then, its counted finish.

    `claim` is the effect it may turn out to be, until its finish decides on that.
    """

    started: int
    step: int | None
    undoing: bool
    finished: int = 0
    claim: Forward | None = None


class Forward(msgspec.Struct, eq=False, gc=False):
    """A forward effect, seen by the service or (`claimed`) told by the agent alone.

    A claimed one begins as a mere call whose `fate` is open until its counted finish, and is a forward effect only
    if its world ends without an `effect` record of its tool. `call` is its call where the start is on record;
    `undoing` says whether a compensation of the run was open where the effect stands.
    """

    line: int
    t: float
    tool: str | None
    tenant: str | None
    step: int | None
    key: str | None
    intent_id: str | None
    args_digest: str | None
    intent_digest: str | None
    undoing: bool
    effect_id: str | None
    attempt_id: str | None
    call: Call | None
    claimed: bool = False
    fate: Literal["open", "applied", "none"] = "applied"
    named: frozenset[str] | None = None
    """Tools that the compensations open at the start had named: a call of one of them is their own."""

    @property
    def position(self) -> int:
        """Where its call was started; without a start on record, where it stands."""
        return self.call.started if self.call is not None else self.line

    @property
    def during_undoing(self) -> bool:
        """Whether a compensation of the run was open there."""
        return self.call.undoing if self.call is not None else self.undoing

    def describe(self) -> str:
        """A few words for messages: tool and step."""
        tool = f"`{self.tool}`" if self.tool is not None else "a call without tool name"
        return tool if self.step is None else f"{tool} (step {self.step})"


class World(msgspec.Struct, eq=False):
    """Runs that share services."""

    name: str
    notes: list[Any]
    """What each invariant remembers of the world, by its slot."""
    runs: list[Run] = []
    observed: set[str | None] = set()
    """Tools of which the service wrote an `effect` record of any outcome or cause."""
    undone: dict[str, int] = {}
    """effect_id -> line of the first compensating effect that names it."""


@dataclass(slots=True, eq=False)
class Run:
    """One run, as far as it has been read.

    A dataclass, not a Struct: its attributes are set for every record, which is where these are faster.
    """

    run_id: str
    order: int
    world: World
    tenant: str
    limits: Limits
    latest: float
    """Greatest `t` so far."""
    notes: list[Any]
    """What each invariant remembers of the run, by its slot."""
    start_line: int = 0
    start_t: float = 0.0
    last_line: int = 0
    """Last record of the agent or the wire, or `process_exited`."""
    last_t: float = 0.0
    end_line: int = 0
    """Last `run_finished`."""
    end_t: float = 0.0
    end_status: str | None = None
    end_completed: list[int] | None = None
    stopped: bool = False
    """A `run_finished` or `process_exited` has been read: a further `run_started` is a resumption."""
    recovered: bool = False
    """It compensated, resumed or was killed by a fault: recovery has time of its own."""
    lagged: bool = False
    """The harness's own clock was late."""
    effectful: bool = False
    """It started a call with `effectful` true."""
    has_effect: bool = False
    """The service wrote a forward or compensating effect in it."""
    steps: dict[int, int] = field(default_factory=dict)
    """Distinct steps in records of the agent or the wire, each with its first line."""
    calls: dict[str, Call] = field(default_factory=dict)
    forwards: list[Forward] = field(default_factory=list)
    """Forward effects; complete, with their calls and in file order, once the world is closing."""
    claims: list[Forward] | None = None
    """Effectful calls of tools that the service has not been heard of yet."""
    claimed_forwards: Sequence[Forward] = ()
    """Those of `forwards` that are claimed only."""
    open_calls: bool = False
    """Whether a claimed-only effectful call is open; known once the world is closing."""
    completed: set[int] | None = None
    """Steps that any `partial_success_returned` named."""
    windows: dict[int | None, set[str]] | None = None
    """Steps whose compensation has begun and not finished, with the tools it named."""
    undo_began: int = 0
    """First `compensation_started`."""
    undo_starts: dict[int, list[int]] | None = None
    """Lines of `compensation_started` by step."""
    undo_ends: dict[int, list[int]] | None = None
    """Lines of `compensation_finished` with outcome `ok` by step."""
