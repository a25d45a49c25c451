"""Truncated body: the answer breaks off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from injectors.core import Action, Aftermath, CutAt, CutEnding, Fault, Moment, Point, choice, integer

_ENDINGS: dict[str, CutEnding] = {"silence": "silence", "fin": "fin", "rst": "rst"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedBody(Fault):
    """The head announces the whole body, then only `keep` bytes of it come (by default half), then silence, the end
    of the connection, or a reset. At least one byte is always missing."""

    kind: ClassVar[str] = "truncated-body"
    layer: ClassVar[str] = "network"
    agent_sees: ClassVar[str] = "A correct status and content length, the beginning of the body, then `end`."
    world_sees: ClassVar[str] = "One execution."
    changes_server_state: ClassVar[bool] = True
    fixed_point: ClassVar[Point] = Point.AFTER_EFFECT
    aftermath: ClassVar[Aftermath] = Aftermath.ENDS

    end: str = choice("fin", "silence", "rst")
    keep: int | None = integer(None, unit="bytes", least=0)

    def strike(self, moment: Moment) -> tuple[Action, ...]:
        if moment.reply is None or not moment.reply.body:
            return ()
        whole = len(moment.reply.body)
        kept = whole // 2 if self.keep is None else min(self.keep, whole - 1)
        return (CutAt(moment.reply, kept, _ENDINGS[self.end]),)
