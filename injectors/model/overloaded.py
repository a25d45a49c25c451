"""Overloaded: the model's provider has no capacity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from injectors.core import AT_MODEL, Action, Aftermath, Channel, Fault, Moment, Point, Respond, integer
from injectors.replies import error_reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Overloaded(Fault):
    """The provider's own overload answer: 529 from Anthropic, 503 from OpenAI."""

    kind: ClassVar[str] = "overloaded"
    layer: ClassVar[str] = "model"
    agent_sees: ClassVar[str] = "The provider's overload error."
    world_sees: ClassVar[str] = "Nothing."
    changes_server_state: ClassVar[bool] = False
    channels: ClassVar[frozenset[Channel]] = AT_MODEL
    fixed_point: ClassVar[Point] = Point.BEFORE_SEND
    aftermath: ClassVar[Aftermath] = Aftermath.IS_ANSWERED

    retry_after_s: int | None = integer(None, unit="s", least=0)

    def strike(self, moment: Moment) -> tuple[Action, ...]:
        provider = moment.request.provider
        if provider is None:
            return ()
        reply = error_reply(
            moment.request, provider.overloaded_status, "Overloaded", retry_after_s=self.retry_after_s
        )
        return (Respond(reply),)
