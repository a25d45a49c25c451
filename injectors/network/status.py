"""Status: an error answer that never came from the service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from injectors.core import Action, Aftermath, Fault, Moment, Point, Reply, Respond, choice, integer
from injectors.replies import error_reply, html_reply, reason_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(Fault):
    """The request is answered with `status` on the way and never forwarded; the body is the other side's own error
    (`body: json`), a gateway's page (`html`), or empty."""

    kind: ClassVar[str] = "status"
    layer: ClassVar[str] = "network"
    agent_sees: ClassVar[str] = "An error status at once."
    world_sees: ClassVar[str] = "Nothing."
    changes_server_state: ClassVar[bool] = False
    fixed_point: ClassVar[Point] = Point.BEFORE_SEND
    aftermath: ClassVar[Aftermath] = Aftermath.IS_ANSWERED

    status: int = integer(503, least=400, most=599)
    body: str = choice("json", "html", "empty")
    retry_after_s: int | None = integer(None, unit="s", least=0)

    def strike(self, moment: Moment) -> tuple[Action, ...]:
        return (Respond(self._reply(moment)),)

    def _reply(self, moment: Moment) -> Reply:
        reason = reason_of(self.status)
        if self.body == "json":
            return error_reply(moment.request, self.status, reason, retry_after_s=self.retry_after_s)
        reply = html_reply(self.status, reason) if self.body == "html" else Reply(self.status)
        if self.retry_after_s is None:
            return reply
        return Reply(reply.status, (*reply.headers, ("retry-after", str(self.retry_after_s))), reply.body)
