"""Truncated output: the model ran into its output limit in the middle of a tool call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from injectors.core import (
    AT_MODEL,
    Action,
    Aftermath,
    Channel,
    Fault,
    Moment,
    Point,
    Replace,
    choice,
    text,
)
from injectors.replies import said_instead
from traces.providers.turn import truncated


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedOutput(Fault):
    """The message ends in good order with the stop reason `max_tokens` (`length`), its last tool call cut inside a
    number or a string. `tool` picks the call to cut."""

    kind: ClassVar[str] = "truncated-output"
    layer: ClassVar[str] = "model"
    agent_sees: ClassVar[str] = "A whole message that says it is not: output limit reached, arguments cut."
    world_sees: ClassVar[str] = "The model has answered in full."
    changes_server_state: ClassVar[bool] = False
    channels: ClassVar[frozenset[Channel]] = AT_MODEL
    fixed_point: ClassVar[Point] = Point.AFTER_EFFECT
    aftermath: ClassVar[Aftermath] = Aftermath.GOES_ON

    inside: str = choice("number", "string")
    tool: str | None = text(None)

    def strike(self, moment: Moment) -> tuple[Action, ...]:
        cut = truncated(moment.turn, inside=self.inside, tool=self.tool) if moment.turn else None
        reply = said_instead(moment, cut) if cut else None
        return () if reply is None else (Replace(reply),)
