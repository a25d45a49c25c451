"""Rate-limited: too many requests, come back later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from injectors.core import Action, Aftermath, Fault, Moment, Point, Respond, integer
from injectors.replies import error_reply


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimited(Fault):
    """Status 429 with a `Retry-After` in seconds, in the words of the tool or of the model's provider; the request is
    not forwarded."""

    kind: ClassVar[str] = "rate-limited"
    layer: ClassVar[str] = "tool"
    agent_sees: ClassVar[str] = "429 and how long to wait."
    world_sees: ClassVar[str] = "Nothing."
    changes_server_state: ClassVar[bool] = False
    fixed_point: ClassVar[Point] = Point.BEFORE_SEND
    aftermath: ClassVar[Aftermath] = Aftermath.IS_ANSWERED

    retry_after_s: int = integer(1, unit="s", least=0)

    def strike(self, moment: Moment) -> tuple[Action, ...]:
        message = f"Too many requests; try again in {self.retry_after_s} s."
        return (Respond(error_reply(moment.request, 429, message, retry_after_s=self.retry_after_s)),)
