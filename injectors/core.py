"""The fault: data that decides. Everything a kind's file needs is imported from here.

A fault holds no state and does no input or output, never sleeps and has no clock: `act` is a pure function of the
moment. Drivers carry the actions out, and record `fault_injected` when they have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from injectors.actions import (
    Action,
    CutAt,
    CutEnding,
    Delay,
    Disconnect,
    Ending,
    KeepSilent,
    KillAgent,
    Replace,
    Respond,
)
from injectors.moment import Moment, Point, Reply, Request
from injectors.parameters import choice, choice_or_ordinal, flag, integer, number, parameters_of, text
from injectors.site import Channel, Place, Site

__all__ = [
    "ANYWHERE",
    "AT_MODEL",
    "AT_TOOL",
    "WHEN",
    "Action",
    "Aftermath",
    "Channel",
    "CutAt",
    "CutEnding",
    "Delay",
    "Disconnect",
    "Ending",
    "Fault",
    "KeepSilent",
    "KillAgent",
    "Moment",
    "Place",
    "Point",
    "Replace",
    "Reply",
    "Request",
    "Respond",
    "Site",
    "choice",
    "choice_or_ordinal",
    "flag",
    "integer",
    "number",
    "text",
]

AT_TOOL: frozenset[Channel] = frozenset({"tool"})
AT_MODEL: frozenset[Channel] = frozenset({"model"})
ANYWHERE: frozenset[Channel] = AT_TOOL | AT_MODEL

WHEN = {"before": Point.BEFORE_SEND, "after": Point.AFTER_EFFECT}
"""The points behind the words of a `when` parameter."""


class Aftermath(Enum):
    """What still happens to an attempt once a fault has acted on it."""

    GOES_ON = "goes on"
    """Everything: later points are reached as ever."""
    IS_ANSWERED = "is answered"
    """An answer reaches the agent, but no service has seen the request."""
    ENDS = "ends"
    """Nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(ABC):
    """One fault of a scenario: what happens (its class and parameters), where (`at`) and to how many attempts.

    `times` attempts from `at.attempt` on are struck, `None` means all of them. `scenario` and `id` label records.
    """

    kind: ClassVar[str]
    layer: ClassVar[str]
    agent_sees: ClassVar[str]
    world_sees: ClassVar[str]
    changes_server_state: ClassVar[bool]
    """Whether a struck attempt can have taken effect without the agent being told so."""
    channels: ClassVar[frozenset[Channel]] = ANYWHERE
    fixed_point: ClassVar[Point]
    """Where the kind acts; a kind that lets its parameters say so overrides `strikes_at` instead."""
    aftermath: ClassVar[Aftermath]
    shares_its_point: ClassVar[bool] = False
    """Whether another fault may act at the same point of the same attempt, after this one."""

    at: Site
    times: int | None = 1
    scenario: str | None = None
    id: str = ""

    @property
    def strikes_at(self) -> Point:
        """The point of an attempt at which this fault acts."""
        return self.fixed_point

    def act(self, moment: Moment) -> tuple[Action, ...]:
        """What is to be done at this moment; nothing at another point than the fault's own, and nothing where the
        moment offers no hold (a cut inside a number of a reply without numbers)."""
        return self.strike(moment) if moment.point is self.strikes_at else ()

    @abstractmethod
    def strike(self, moment: Moment) -> tuple[Action, ...]:
        """The actions at the fault's own point."""

    def covers(self, place: Place) -> bool:
        """Whether this attempt is one that the fault is to strike."""
        return self.at.covers(place, self.times)

    def to_data(self) -> dict[str, Any]:
        """The fault as a scenario file writes it, every parameter spelt out."""
        return {
            "kind": self.kind,
            "at": self.at.to_data(),
            "times": "always" if self.times is None else self.times,
            "with": {name: getattr(self, name) for name in parameters_of(type(self))},
        }
