"""What a fault gets to see: a boundary crossing, with the request and, once there is one, the reply."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

from injectors.site import Place
from traces.providers import Provider, for_api
from traces.providers.turn import Turn

Headers = tuple[tuple[str, str], ...]


class Point(IntEnum):
    """The boundaries of one attempt that can be seen from outside, in the order in which they are crossed."""

    BEFORE_SEND = 1
    """The request has reached the proxy; nothing of it has been forwarded."""
    AFTER_EFFECT = 2
    """The other side has answered; nothing of the answer has been passed on."""
    AFTER_REPLY = 3
    """The whole answer has left for the agent."""

    @property
    def word(self) -> str:
        """The point as scenario files write it, such as `after-effect`."""
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True)
class Request:
    """A request as it came from the agent. `api` names the model provider (`""` on tool calls)."""

    method: str
    path: str
    body: bytes = b""
    headers: Headers = ()
    api: str = ""
    tool: str = ""

    @property
    def provider(self) -> Provider | None:
        """The provider whose wire format this is, `None` on tool calls."""
        return for_api(self.api) if self.api else None


@dataclass(frozen=True)
class Reply:
    """An answer: status, headers (names in lower case), decoded body."""

    status: int
    headers: Headers = ()
    body: bytes = b""

    def header(self, name: str) -> str:
        """The first value of a header, `""` where it is absent."""
        return next((value for key, value in self.headers if key == name), "")

    @property
    def streamed(self) -> bool:
        """True for a stream of server-sent events."""
        return self.header("content-type").startswith("text/event-stream")


@dataclass(frozen=True)
class Moment:
    """One boundary crossing of one attempt. `reply` is `None` before the send."""

    point: Point
    place: Place
    request: Request
    reply: Reply | None = None

    @cached_property
    def turn(self) -> Turn | None:
        """What the model says in the reply; `None` where no model has answered."""
        provider, reply = self.request.provider, self.reply
        if provider is None or reply is None or reply.status >= 400:
            return None
        return provider.read_reply(reply.status, reply.header("content-type"), reply.body)


def header_of(headers: Headers, name: str) -> str | None:
    """The first value of a header whose name is given in lower case, `None` where it is absent."""
    return next((value for key, value in headers if key.lower() == name), None)
