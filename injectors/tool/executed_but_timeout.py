"""Executed but timed out: the work is done, the answer is held back for ever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from injectors.core import AT_TOOL, Action, Aftermath, Channel, Fault, KeepSilent, Moment, Point


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutedButTimeout(Fault):
    """The service acts; its answer is held until the agent gives up."""

    kind: ClassVar[str] = "executed-but-timeout"
    layer: ClassVar[str] = "tool"
    agent_sees: ClassVar[str] = "Silence, until its own time-out."
    world_sees: ClassVar[str] = "One execution."
    changes_server_state: ClassVar[bool] = True
    channels: ClassVar[frozenset[Channel]] = AT_TOOL
    fixed_point: ClassVar[Point] = Point.AFTER_EFFECT
    aftermath: ClassVar[Aftermath] = Aftermath.ENDS

    def strike(self, moment: Moment) -> tuple[Action, ...]:
        if moment.reply is None or moment.reply.status >= 400:
            return ()
        return (KeepSilent(),)
