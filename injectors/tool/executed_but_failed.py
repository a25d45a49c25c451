"""Executed but failed: the work is done, the answer denies it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from injectors.core import AT_TOOL, Action, Aftermath, Channel, Fault, Moment, Point, Replace, flag, integer
from injectors.replies import error_reply


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutedButFailed(Fault):
    """The service acts, but its answer is replaced by an error that says it failed.

    `admits: false` makes the error claim that nothing can have happened. An answer that is an error already is left
    alone: nothing was executed then.
    """

    kind: ClassVar[str] = "executed-but-failed"
    layer: ClassVar[str] = "tool"
    agent_sees: ClassVar[str] = "An error answer that asks for another try."
    world_sees: ClassVar[str] = "One execution."
    changes_server_state: ClassVar[bool] = True
    channels: ClassVar[frozenset[Channel]] = AT_TOOL
    fixed_point: ClassVar[Point] = Point.AFTER_EFFECT
    aftermath: ClassVar[Aftermath] = Aftermath.GOES_ON

    status: int = integer(500, least=500, most=599)
    admits: bool = flag(True)

    def strike(self, moment: Moment) -> tuple[Action, ...]:
        if moment.reply is None or moment.reply.status >= 400:
            return ()
        message = f"{moment.request.tool} failed"
        return (Replace(error_reply(moment.request, self.status, message, may_have_taken_effect=self.admits)),)
