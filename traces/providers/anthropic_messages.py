"""The Anthropic Messages API on the wire: requests, replies, streams, errors.

Shapes follow the public API as seen in recorded traffic (`anthropic-version: 2023-06-01`): named server-sent events
with cumulative usage in `message_delta`, errors as `{"type": "error", "error": {..}, "request_id"}`.
Request checks are in `anthropic_checks`.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from traces.digest import digest
from traces.json_bodies import shallow
from traces.providers.anthropic_checks import request_fault
from traces.providers.sse import Event, events, write_event
from traces.providers.tokens import pieces
from traces.providers.turn import (
    MALFORMED,
    NORMAL_ENDS,
    Conversation,
    Fragment,
    Message,
    ToolCall,
    ToolResult,
    Turn,
    best_guess,
    compact,
    raw_call,
    tool_call,
)

api = "anthropic-messages"
path = "/v1/messages"
overloaded_status = 529
TEXT_PIECE = 24
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def read_request(body: dict[str, Any]) -> Conversation:
    """The conversation in a request that `check_request` has let pass; what it does not know, it leaves out."""
    messages: list[Message] = []
    system = _plain(body.get("system"))
    if system:
        messages.append(Message("system", system))
    messages.extend(_message(entry) for entry in body.get("messages") or [])
    tools = tuple(
        {
            "name": tool.get("name", ""),
            "description": tool.get("description", ""),
            "input_schema": tool.get("input_schema", {}),
        }
        for tool in body.get("tools") or []
    )
    return Conversation(
        messages=tuple(messages),
        tools=tools,
        stream=bool(body.get("stream")),
        model=str(body.get("model", "")),
        max_tokens=body.get("max_tokens"),
        include_usage=True,
    )


def _message(entry: dict[str, Any]) -> Message:
    content = entry.get("content")
    if not isinstance(content, list):
        return Message(str(entry.get("role", "")), _plain(content))
    calls = [
        tool_call(block.get("id", ""), block.get("name", ""), block.get("input") or {})
        for block in content
        if block.get("type") == "tool_use"
    ]
    results = [
        ToolResult(block.get("tool_use_id", ""), _plain(block.get("content")), bool(block.get("is_error")))
        for block in content
        if block.get("type") == "tool_result"
    ]
    return Message(str(entry.get("role", "")), _plain(content), tuple(calls), tuple(results))


def _plain(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(block.get("text", "")) for block in content if block.get("type") == "text")
    return ""


def write_request(conversation: Conversation) -> dict[str, Any]:
    """The request body of a conversation. System messages at its beginning become `system`, tool results are blocks
    of a user message."""
    instructions = ("system", "developer")
    first = next((n for n, m in enumerate(conversation.messages) if m.role not in instructions), 0)
    system = "\n\n".join(m.text for m in conversation.messages[:first])
    body: dict[str, Any] = {"model": conversation.model, "max_tokens": conversation.max_tokens or 4096}
    if system:
        body["system"] = system
    body["messages"] = [_entry(m) for m in conversation.messages[first:] if m.text or m.role not in instructions]
    if conversation.tools:
        body["tools"] = [dict(tool) for tool in conversation.tools]
    if conversation.stream:
        body["stream"] = True
    return body


def _entry(message: Message) -> dict[str, Any]:
    role = {"assistant": "assistant", "system": "system", "developer": "system"}.get(message.role, "user")
    if not message.tool_calls and not message.tool_results:
        return {"role": role, "content": message.text}
    results = [
        {"type": "tool_result", "tool_use_id": result.id, "content": result.content}
        | ({"is_error": True} if result.is_error else {})
        for result in message.tool_results
    ]
    text = [{"type": "text", "text": message.text}] if message.text else []
    return {"role": role, "content": [*results, *text, *(_tool_use(call) for call in message.tool_calls)]}


def _tool_use(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": best_guess(call)}


def check_request(body: Any) -> dict[str, Any] | None:
    """The body of the 400 that the provider answers to a bad request, or `None` where it is good."""
    fault = request_fault(body)
    return None if fault is None else error_body(400, fault)[0]


def read_reply(status: int, content_type: str, body: bytes) -> Turn:
    """The turn in a reply, plain or streamed, as far as it came; nothing of it is `complete` unless it ended."""
    if status >= 400:
        return Turn(stop_reason=None, complete=False)
    if "event-stream" in content_type:
        return _read_stream(events(body))
    try:
        message = shallow(json.loads, body)
        read = _message({"role": "assistant", "content": message["content"]})
        usage, stop = message.get("usage") or {}, message.get("stop_reason")
        return Turn(
            text=read.text,
            tool_calls=read.tool_calls,
            stop_reason=stop,
            input_tokens=usage.get("input_tokens") or 0,
            output_tokens=usage.get("output_tokens") or 0,
            complete=stop in NORMAL_ENDS,
        )
    except MALFORMED:
        return Turn(stop_reason=None, complete=False)


def _read_stream(stream: list[Event]) -> Turn:
    heard = _Heard()
    for event in stream:
        # An event that is none of the provider's says nothing; clients must tolerate unknown ones, too.
        with suppress(*MALFORMED):
            heard.take(event.json())
    calls = tuple(raw_call(call, name, "".join(parts)) for _, (call, name, parts) in sorted(heard.calls.items()))
    complete = heard.ended and heard.stop in NORMAL_ENDS
    return Turn("".join(heard.text), calls, heard.stop, **heard.usage, complete=complete)


class _Heard:
    """What the events of a stream have said so far."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.calls: dict[int, tuple[str, str, list[str]]] = {}
        self.usage = {"input_tokens": 0, "output_tokens": 0}
        self.stop: str | None = None
        self.ended = False

    def take(self, data: Any) -> None:
        kind = data["type"]
        if kind == "message_start":
            _count(self.usage, data["message"].get("usage"))
        elif kind == "content_block_start":
            block = data["content_block"]
            if block["type"] == "tool_use":
                # A non-empty `input` here is how some proxies send calls without deltas.
                first = [compact(block["input"])] if block.get("input") else []
                self.calls[int(data["index"])] = (str(block["id"]), str(block["name"]), first)
            elif block["type"] == "text":
                self.text.append(str(block.get("text", "")))
        elif kind == "content_block_delta":
            delta = data["delta"]
            if delta["type"] == "text_delta":
                self.text.append(str(delta["text"]))
            elif delta["type"] == "input_json_delta" and data["index"] in self.calls:
                self.calls[data["index"]][2].append(str(delta["partial_json"]))
        elif kind == "message_delta":
            self.stop = data["delta"].get("stop_reason") or self.stop
            _count(self.usage, data.get("usage"))
        elif kind == "message_stop":
            self.ended = True


def _count(usage: dict[str, int], said: Any) -> None:
    for name in usage:
        if isinstance(said, dict) and isinstance(said.get(name), int):
            usage[name] = said[name]


def write_reply(turn: Turn, model: str, reply_id: str) -> dict[str, Any]:
    """The plain reply. Cut arguments appear as the provider's lenient reading of them, as in real replies."""
    text = [{"type": "text", "text": turn.text}] if turn.text else []
    return {
        "id": reply_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [*text, *(_tool_use(call) for call in turn.tool_calls)],
        "stop_reason": turn.stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": turn.input_tokens, "output_tokens": turn.output_tokens},
    }


def write_stream(turn: Turn, model: str, reply_id: str, *, include_usage: bool = True) -> list[bytes]:
    """The reply as server-sent events. A turn that has no stop reason ends without its last two events.

    `include_usage` is there for the common signature: this API always sends usage.
    """
    start = {"input_tokens": turn.input_tokens, "output_tokens": 1 if turn.output_tokens else 0}
    head = {"id": reply_id, "type": "message", "role": "assistant", "model": model, "content": []}
    message = head | {"stop_reason": None, "stop_sequence": None, "usage": start}
    sent: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    index = 0
    if turn.text:
        sent.append(_block_start(index, {"type": "text", "text": ""}))
        for at in range(0, len(turn.text), TEXT_PIECE):
            sent.append(_delta(index, {"type": "text_delta", "text": turn.text[at : at + TEXT_PIECE]}))
        sent.append({"type": "content_block_stop", "index": index})
        index += 1
    for call in turn.tool_calls:
        sent.append(_block_start(index, {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}))
        for part in ["", *pieces(call.raw)]:
            sent.append(_delta(index, {"type": "input_json_delta", "partial_json": part}))
        sent.append({"type": "content_block_stop", "index": index})
        index += 1
    if index:
        sent.insert(2, {"type": "ping"})
    if turn.stop_reason is not None:
        usage = {"input_tokens": turn.input_tokens, "output_tokens": turn.output_tokens}
        delta = {"stop_reason": turn.stop_reason, "stop_sequence": None}
        sent.append({"type": "message_delta", "delta": delta, "usage": usage})
        sent.append({"type": "message_stop"})
    return [write_event(data, data["type"]) for data in sent]


def _block_start(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def error_body(status: int, message: str, *, code: str | None = None) -> tuple[dict[str, Any], dict[str, str]]:
    """The provider's error body and headers for a status; `code` replaces the usual error type.

    The request id is derived from the error, so that a repeated run shows the same bytes.
    """
    request_id = "req_011C" + digest([api, status, message])[:20]
    kind = code or _ERROR_TYPES.get(status) or ("api_error" if status >= 500 else "invalid_request_error")
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id}
    return body, {"content-type": "application/json", "request-id": request_id}


def stream_error(status: int, message: str) -> bytes:
    """The event that ends a stream with an error after it had begun with status 200."""
    kind = _ERROR_TYPES.get(status, "api_error")
    return write_event({"type": "error", "error": {"type": kind, "message": message}}, "error")


def is_terminal(event: Event) -> bool:
    """True for the event after which the message is whole."""
    data = event.json()
    return isinstance(data, dict) and data.get("type") == "message_stop"


def fragments(stream: list[Event]) -> list[Fragment]:
    """The pieces of argument text in a stream, in order; `call` counts the tool calls of the message from 0."""
    names: dict[int, str] = {}
    found: list[Fragment] = []
    for position, event in enumerate(stream):
        with suppress(*MALFORMED):
            data = event.json()
            if data["type"] == "content_block_start" and data["content_block"]["type"] == "tool_use":
                names[data["index"]] = str(data["content_block"]["name"])
            elif data["type"] == "content_block_delta" and data["index"] in names:
                index, part = data["index"], str(data["delta"]["partial_json"])
                found.append(Fragment(position, list(names).index(index), names[index], part))
    return found
