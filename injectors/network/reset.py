"""Reset: the connection is torn down by a TCP RST."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from injectors.core import WHEN, Action, Aftermath, Disconnect, Fault, Moment, Point, choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset(Fault):
    """A true RST in place of any answer, before (`when: before`) or after the service has acted."""

    kind: ClassVar[str] = "reset"
    layer: ClassVar[str] = "network"
    agent_sees: ClassVar[str] = "`ECONNRESET`, not a byte of an answer."
    world_sees: ClassVar[str] = "Nothing with `when: before`, one execution with `when: after`."
    changes_server_state: ClassVar[bool] = True
    aftermath: ClassVar[Aftermath] = Aftermath.ENDS

    when: str = choice("before", "after")

    @property
    def strikes_at(self) -> Point:
        return WHEN[self.when]

    def strike(self, moment: Moment) -> tuple[Action, ...]:
        return (Disconnect("rst"),)
