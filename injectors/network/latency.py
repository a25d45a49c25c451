"""Latency: everything arrives, later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from injectors.core import WHEN, Action, Aftermath, Delay, Fault, Moment, Point, choice, number


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency(Fault):
    """The request (`when: before`) or its answer (`when: after`) is held for `seconds`, then passes untouched."""

    kind: ClassVar[str] = "latency"
    layer: ClassVar[str] = "network"
    agent_sees: ClassVar[str] = "The right answer, late; a time-out where its patience is shorter."
    world_sees: ClassVar[str] = "One execution: late with `when: before`, on time with `when: after`."
    changes_server_state: ClassVar[bool] = False
    aftermath: ClassVar[Aftermath] = Aftermath.GOES_ON
    shares_its_point: ClassVar[bool] = True

    seconds: float = number(1.0, unit="s", least=0, most=3600)
    when: str = choice("before", "after")

    @property
    def strikes_at(self) -> Point:
        return WHEN[self.when]

    def strike(self, moment: Moment) -> tuple[Action, ...]:
        return (Delay(self.seconds),)
