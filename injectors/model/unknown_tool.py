"""Unknown tool: the model calls a tool that does not exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from injectors.core import AT_MODEL, Action, Aftermath, Channel, Fault, Moment, Point, Replace, text
from injectors.replies import said_instead
from traces.providers.turn import renamed


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownTool(Fault):
    """A tool call of the message goes to `name` (by default the tool's own name with `_v2`), which nobody offers.
    `tool` picks the call to rename; without it the first."""

    kind: ClassVar[str] = "unknown-tool"
    layer: ClassVar[str] = "model"
    agent_sees: ClassVar[str] = "A well-formed call of a tool it does not have."
    world_sees: ClassVar[str] = "The model has answered in full."
    changes_server_state: ClassVar[bool] = False
    channels: ClassVar[frozenset[Channel]] = AT_MODEL
    fixed_point: ClassVar[Point] = Point.AFTER_EFFECT
    aftermath: ClassVar[Aftermath] = Aftermath.GOES_ON

    name: str | None = text(None)
    tool: str | None = text(None)

    def strike(self, moment: Moment) -> tuple[Action, ...]:
        turn = moment.turn
        called = next((c.name for c in turn.tool_calls if self.tool in (None, c.name)), None) if turn else None
        if turn is None or called is None:
            return ()
        other = renamed(turn, self.name or f"{called}_v2", tool=called)
        reply = said_instead(moment, other) if other else None
        return () if reply is None else (Replace(reply),)
