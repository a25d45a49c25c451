"""Hang: the connection stays open and silent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from injectors.core import WHEN, Action, Aftermath, Fault, KeepSilent, Moment, Point, choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang(Fault):
    """Nothing comes back until the agent gives up, before (`when: before`) or after the service has acted."""

    kind: ClassVar[str] = "hang"
    layer: ClassVar[str] = "network"
    agent_sees: ClassVar[str] = "Silence, until its own time-out."
    world_sees: ClassVar[str] = "Nothing with `when: before`, one execution with `when: after`."
    changes_server_state: ClassVar[bool] = True
    aftermath: ClassVar[Aftermath] = Aftermath.ENDS

    when: str = choice("before", "after")

    @property
    def strikes_at(self) -> Point:
        return WHEN[self.when]

    def strike(self, moment: Moment) -> tuple[Action, ...]:
        return (KeepSilent(),)
