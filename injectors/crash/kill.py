"""Kill: the agent's processes die at an exact boundary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from injectors.core import Action, Aftermath, Fault, KillAgent, Moment, Point, choice

_POINTS = {point.word: point for point in Point}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill(Fault):
    """SIGKILL to the whole process tree of the agent: before its request is forwarded, after the service has acted
    but before the answer is passed on, or once the whole answer has left for it."""

    kind: ClassVar[str] = "kill"
    layer: ClassVar[str] = "crash"
    agent_sees: ClassVar[str] = "Nothing any more; it is started again with the same run and intent."
    world_sees: ClassVar[str] = "Nothing with `point: before-send`, one execution else."
    changes_server_state: ClassVar[bool] = True
    aftermath: ClassVar[Aftermath] = Aftermath.ENDS

    point: str = choice("after-effect", "before-send", "after-reply")

    @property
    def strikes_at(self) -> Point:
        return _POINTS[self.point]

    def strike(self, moment: Moment) -> tuple[Action, ...]:
        return (KillAgent(),)
