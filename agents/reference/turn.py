"""What a model said, and the conversation so far, in no provider's words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agents.reference.task import Offer


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call the model asked for. `raw` is the JSON text of the arguments as it came, whole or not."""

    id: str
    name: str
    raw: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the model. `ended` is false where the answer broke off before its terminal event."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    stop: str = ""
    ended: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None
    error: tuple[str, str] | None = None
    """Kind and message of an error that came inside the stream."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A tool call taken from a turn that ended normally, with readable arguments."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answered:
    """What the model is told about one of its calls."""

    id: str
    content: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Exchange:
    """A turn of the model and the answers to its calls, in the order of the calls."""

    text: str
    calls: tuple[Wanted, ...]
    answers: tuple[Answered, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """All that the next model call is about."""

    request: str
    exchanges: tuple[Exchange, ...]
    offers: tuple[Offer, ...]


class Reader(Protocol):
    """Collects the events of a streamed answer."""

    def event(self, name: str | None, data: str) -> bool:
        """Take one server-sent event; true once it was the terminal one."""

    def turn(self) -> Turn:
        """What has come so far."""


class Wire(Protocol):
    """A provider's API."""

    path: str

    def headers(self, key: str) -> dict[str, str]:
        """Headers beyond the content type."""

    def body(self, conversation: Conversation, *, model: str, max_tokens: int, stream: bool) -> dict[str, Any]:
        """The request body."""

    def read(self, data: Mapping[str, Any]) -> Turn:
        """A whole answer."""

    def reader(self) -> Reader:
        """A collector for a streamed answer."""


@dataclass(frozen=True, slots=True)
class Harvest:
    """What may be used of a turn: its calls (none: the final answer), or why nothing may.

    `rescuable` says that asking again is sensible.
    """

    calls: tuple[Wanted, ...] = ()
    fault: str | None = None
    rescuable: bool = False


def harvest(turn: Turn) -> Harvest:
    """Use nothing of a message without a normal end; of one with a normal end use all or nothing."""
    if not turn.ended:
        return Harvest(fault="cut", rescuable=True)
    if turn.stop == "max_tokens":
        return Harvest(fault="max_tokens", rescuable=True)
    if turn.stop not in ("tool_use", "end_turn"):
        return Harvest(fault=f"stopped: {turn.stop or 'no reason given'}")
    if bool(turn.calls) != (turn.stop == "tool_use"):
        return Harvest(fault="calls and stop reason disagree", rescuable=True)
    wanted = tuple(readable(call) for call in turn.calls)
    if any(call is None for call in wanted):
        return Harvest(fault="unreadable arguments", rescuable=True)
    return Harvest(calls=tuple(call for call in wanted if call is not None))


def readable(call: Call) -> Wanted | None:
    """The call with its arguments read, `None` where they are no JSON object. No text means no arguments."""
    try:
        arguments = json.loads(call.raw or "{}")
    except ValueError:
        return None
    return Wanted(call.id, call.name, arguments) if isinstance(arguments, dict) else None


def sse_events(buffer: bytearray, chunk: bytes) -> Sequence[tuple[str | None, str]]:
    """Add a chunk and take the whole server-sent events out of the buffer, as (name, data)."""
    buffer += chunk
    events: list[tuple[str | None, str]] = []
    while True:
        ends = [(at, len(mark)) for mark in (b"\n\n", b"\r\n\r\n") if (at := buffer.find(mark)) >= 0]
        if not ends:
            return events
        at, width = min(ends)
        block = bytes(buffer[:at]).decode("utf-8", "replace")
        del buffer[: at + width]
        name: str | None = None
        data: list[str] = []
        for line in block.splitlines():
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                name = value
            elif field == "data":
                data.append(value)
        if data:
            events.append((name, "\n".join(data)))
