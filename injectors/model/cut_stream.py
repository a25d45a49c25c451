"""Cut stream: the model's message breaks off in mid-sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from injectors.core import (
    AT_MODEL,
    Action,
    Aftermath,
    Channel,
    CutAt,
    Fault,
    Moment,
    Point,
    Reply,
    choice,
    choice_or_ordinal,
    text,
)
from traces.providers import cut_offset, refragment


@dataclass(frozen=True, slots=True, kw_only=True)
class CutStream(Fault):
    """The stream ends inside a number or a string of a tool call's arguments, or after `inside` events: cleanly, as
    if it were whole (`end: clean`), or by a reset.

    `tool` picks the call to cut; without it the first that has such a place. A reply that is not streamed is cut in
    the middle of its body, which then looks complete with `end: clean`.
    """

    kind: ClassVar[str] = "cut-stream"
    layer: ClassVar[str] = "model"
    agent_sees: ClassVar[str] = "Events up to the cut, never the one that ends the message."
    world_sees: ClassVar[str] = "The model has answered in full."
    changes_server_state: ClassVar[bool] = False
    channels: ClassVar[frozenset[Channel]] = AT_MODEL
    fixed_point: ClassVar[Point] = Point.AFTER_EFFECT
    aftermath: ClassVar[Aftermath] = Aftermath.ENDS

    end: str = choice("clean", "rst")
    inside: str | int = choice_or_ordinal("number", "string")
    tool: str | None = text(None)

    def strike(self, moment: Moment) -> tuple[Action, ...]:
        reply = moment.reply
        if reply is None or reply.status >= 400 or not reply.body:
            return ()
        cut = self._cut(moment, reply) if reply.streamed else (reply, len(reply.body) // 2)
        return () if cut is None else (CutAt(*cut, "rst" if self.end == "rst" else "clean"),)

    def _cut(self, moment: Moment, reply: Reply) -> tuple[Reply, int] | None:
        provider = moment.request.provider
        if provider is None:
            return None
        # A stream that brings the arguments in one piece has no border inside a number; the same words in smaller
        # pieces have.
        for body in (reply.body, refragment(provider, reply.body)):
            size = cut_offset(provider, body, self.inside, tool=self.tool)
            if size is not None and size < len(body):
                return Reply(reply.status, reply.headers, body), size
        return None
