"""Reply lost: the work is done, its answer never arrives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from injectors.core import Action, Aftermath, Disconnect, Fault, Moment, Point, choice


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyLost(Fault):
    """The service acts; in place of its answer the connection ends, orderly (`end: fin`) or by a reset (`rst`)."""

    kind: ClassVar[str] = "reply-lost"
    layer: ClassVar[str] = "network"
    agent_sees: ClassVar[str] = "The end of the connection, not a byte of an answer."
    world_sees: ClassVar[str] = "One execution."
    changes_server_state: ClassVar[bool] = True
    fixed_point: ClassVar[Point] = Point.AFTER_EFFECT
    aftermath: ClassVar[Aftermath] = Aftermath.ENDS

    end: str = choice("fin", "rst")

    def strike(self, moment: Moment) -> tuple[Action, ...]:
        return (Disconnect("rst" if self.end == "rst" else "fin"),)
