"""Wire knowledge of the model providers, without input or output: used by gateway, proxy, recorder and tests."""

from __future__ import annotations

from typing import Any

from traces.providers import anthropic_messages, openai_chat
from traces.providers.sse import Event, EventReader, events, json_bytes, write_event
from traces.providers.tokens import inside_token
from traces.providers.turn import Provider, Turn

PROVIDERS: tuple[Provider, ...] = (anthropic_messages, openai_chat)

__all__ = [
    "PROVIDERS",
    "Event",
    "EventReader",
    "Provider",
    "Turn",
    "cut_offset",
    "events",
    "for_api",
    "for_path",
    "json_bytes",
    "refragment",
    "reply_bytes",
    "turn_of",
]


def for_api(name: str) -> Provider | None:
    """The provider that a trace calls by this name, such as `anthropic-messages`."""
    return next((provider for provider in PROVIDERS if provider.api == name), None)


def for_path(path: str) -> Provider | None:
    """The provider whose endpoint a request path is, whatever prefix or query it has.

    The version prefix may be missing: clients differ in whether their base URL holds it. Without it, `/messages`
    counts alone: other endpoints end in that word, too.
    """
    bare = "/" + path.partition("?")[0].strip("/")
    for provider in PROVIDERS:
        short = provider.path.removeprefix("/v1")
        if bare == short or bare.endswith(provider.path if short.count("/") == 1 else short):
            return provider
    return None


def cut_offset(
    provider: Provider, body: bytes, inside: str | int = "number", *, tool: str | None = None
) -> int | None:
    """Where to cut a streamed reply: the number of its bytes that still arrive, always at the end of an event.

    `"number"`: what has arrived of a tool call's arguments ends in a shorter number of another value (`12` of
    `1200`); of the first call that has one (of the tool named, if one is) its last such place, so that all earlier
    arguments look right. `"string"`: the same within a string value. An integer: after so many events.
    `None` where the stream has no such place; `refragment` makes a stream that has every place there can be.
    """
    stream = events(body)
    if isinstance(inside, int):
        if inside == 0:
            return 0
        return stream[inside - 1].end if 0 < inside <= len(stream) else None
    if inside not in ("number", "string"):
        raise ValueError(f'a cut is inside a "number", a "string" or after n events, not {inside!r}')
    parts = provider.fragments(stream)
    for call in sorted({part.call for part in parts}):
        own = [part for part in parts if part.call == call]
        if tool not in (None, own[-1].tool):
            continue
        whole = "".join(part.text for part in own)
        so_far = 0
        found: int | None = None
        for part in own:
            so_far += len(part.text)
            if part.text and inside_token(whole, so_far, inside):
                found = stream[part.event].end
        if found is not None:
            return found
    return None


def refragment(provider: Provider, body: bytes) -> bytes:
    """The same streamed reply, split anew so that it can be cut inside each number and string of its arguments."""
    first = next((data for data in (event.json() for event in events(body)) if isinstance(data, dict)), {})
    head = first.get("message") or first
    turn = provider.read_reply(200, "text/event-stream", body)
    usage = any(isinstance(data, dict) and data.get("usage") for data in (e.json() for e in events(body)))
    return b"".join(
        provider.write_stream(turn, str(head.get("model", "")), str(head.get("id", "")), include_usage=usage)
    )


def reply_bytes(response: dict[str, Any]) -> tuple[int, str, bytes]:
    """Status, content type and body of a recorded reply: the `response` of a model exchange (contract section 7)."""
    status = int(response.get("status", 200))
    if "events" in response:
        parts = (write_event(entry.get("data"), entry.get("event")) for entry in response["events"])
        return status, "text/event-stream", b"".join(parts) + str(response.get("rest", "")).encode()
    return status, "application/json", json_bytes(response.get("body"))


def turn_of(provider: Provider, response: dict[str, Any]) -> Turn:
    """The turn that a recorded reply holds."""
    return provider.read_reply(*reply_bytes(response))
