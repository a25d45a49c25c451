"""The OpenAI Chat Completions API on the wire: requests, replies, chunk streams, errors.

Shapes follow recorded traffic of the public API: `chat.completion` and `chat.completion.chunk`, tool calls in deltas
by index (id and name once, then pieces of `arguments`), a usage chunk without choices where
`stream_options.include_usage` asks for it, and `data: [DONE]`. Request checks are in `openai_checks`.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from traces.digest import digest
from traces.json_bodies import shallow
from traces.providers.openai_checks import RequestFault, request_fault
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
    raw_call,
)

api = "openai-chat"
path = "/v1/chat/completions"
overloaded_status = 503
TEXT_PIECE = 16
CREATED = 1_760_000_000
"""`created` of replies that are written: one instant, so that equal turns are equal bytes."""
_READ_REASON = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
_WRITE_REASON = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
}
_ERRORS: dict[int, tuple[str, str | None]] = {
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}


def read_request(body: dict[str, Any]) -> Conversation:
    """The conversation in a request that `check_request` has let pass; what it does not know, it leaves out."""
    tools = tuple(
        {
            "name": tool["function"].get("name", ""),
            "description": tool["function"].get("description", ""),
            "input_schema": tool["function"].get("parameters", {}),
        }
        for tool in body.get("tools") or []
        if isinstance(tool.get("function"), dict)
    )
    return Conversation(
        messages=tuple(_message(entry) for entry in body.get("messages") or []),
        tools=tools,
        stream=bool(body.get("stream")),
        model=str(body.get("model", "")),
        max_tokens=body.get("max_completion_tokens") or body.get("max_tokens"),
        include_usage=bool((body.get("stream_options") or {}).get("include_usage")),
    )


def _message(entry: dict[str, Any]) -> Message:
    role = str(entry.get("role", ""))
    text = _plain(entry.get("content"))
    if role == "tool":
        return Message(role, tool_results=(ToolResult(str(entry.get("tool_call_id", "")), text),))
    return Message(role, text, _calls(entry.get("tool_calls")))


def _calls(entries: Any) -> tuple[ToolCall, ...]:
    return tuple(
        raw_call(
            entry.get("id", ""),
            (entry.get("function") or {}).get("name", ""),
            (entry.get("function") or {}).get("arguments", ""),
        )
        for entry in entries or []
    )


def _plain(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if part.get("type") == "text")
    return ""


def write_request(conversation: Conversation) -> dict[str, Any]:
    """The request body of a conversation; each tool result is a message of its own, as this API wants it."""
    body: dict[str, Any] = {"model": conversation.model}
    body["messages"] = [entry for message in conversation.messages for entry in _entries(message)]
    if conversation.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool["name"],
                    "description": tool.get("description", ""),
                    "parameters": tool.get("input_schema", {}),
                },
            }
            for tool in conversation.tools
        ]
    if conversation.max_tokens is not None:
        body["max_completion_tokens"] = conversation.max_tokens
    if conversation.stream:
        body["stream"] = True
        if conversation.include_usage:
            body["stream_options"] = {"include_usage": True}
    return body


def _entries(message: Message) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": result.id, "content": result.content} for result in message.tool_results
    ]
    if message.text or message.tool_calls or not found:
        entry: dict[str, Any] = {"role": message.role, "content": message.text or None}
        if message.role != "assistant" or not message.tool_calls:
            entry["content"] = message.text
        if message.tool_calls:
            entry["tool_calls"] = [_call(call) for call in message.tool_calls]
        found.append(entry)
    return found


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.raw}}


def check_request(body: Any) -> dict[str, Any] | None:
    """The body of the 400 that the provider answers to a bad request, or `None` where it is good."""
    fault = request_fault(body)
    return None if fault is None else _error(fault)


def _error(fault: RequestFault) -> dict[str, Any]:
    kind = "invalid_request_error"
    return {"error": {"message": fault.message, "type": kind, "param": fault.param, "code": fault.code}}


def read_reply(status: int, content_type: str, body: bytes) -> Turn:
    """The turn in a reply, plain or streamed, as far as it came; nothing of it is `complete` unless it ended."""
    if status >= 400:
        return Turn(stop_reason=None, complete=False)
    if "event-stream" in content_type:
        return _read_stream(events(body))
    try:
        message = shallow(json.loads, body)
        choice, usage = message["choices"][0], message.get("usage") or {}
        stop = _reason(choice.get("finish_reason"))
        return Turn(
            text=_plain(choice["message"].get("content")),
            tool_calls=_calls(choice["message"].get("tool_calls")),
            stop_reason=stop,
            input_tokens=usage.get("prompt_tokens") or 0,
            output_tokens=usage.get("completion_tokens") or 0,
            complete=stop in NORMAL_ENDS,
        )
    except MALFORMED:
        return Turn(stop_reason=None, complete=False)


def _reason(said: Any) -> str | None:
    return None if said is None else _READ_REASON.get(said, str(said))


def _read_stream(stream: list[Event]) -> Turn:
    heard = _Heard()
    for event in stream:
        heard.ended = heard.ended or is_terminal(event)
        # A chunk of another shape says nothing; clients must tolerate unknown ones, too.
        with suppress(*MALFORMED):
            heard.take(event.json())
    calls = tuple(raw_call(call, name, "".join(parts)) for _, (call, name, parts) in sorted(heard.calls.items()))
    complete = heard.ended and heard.stop in NORMAL_ENDS
    return Turn("".join(heard.text), calls, heard.stop, *heard.used, complete=complete)


class _Heard:
    """What the chunks of a stream have said so far."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.calls: dict[int, tuple[str, str, list[str]]] = {}
        self.used = (0, 0)
        self.stop: str | None = None
        self.ended = False

    def take(self, data: Any) -> None:
        usage = data.get("usage")
        if usage:
            self.used = (int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0))
        for choice in (data.get("choices") or [])[:1]:
            delta = choice.get("delta") or {}
            self.text.append(str(delta.get("content") or ""))
            self.stop = _reason(choice.get("finish_reason")) or self.stop
            for index, call_id, name, part in _pieces_of(delta):
                known_id, known_name, parts = self.calls.get(index, ("", "", []))
                parts.append(part)
                self.calls[index] = (call_id or known_id, name or known_name, parts)


def _pieces_of(delta: dict[str, Any]) -> list[tuple[int, str, str, str]]:
    """The pieces of tool calls in a delta: index, id and name where it says them, argument text."""
    found = []
    for piece in delta.get("tool_calls") or []:
        function = piece.get("function") or {}
        told = (piece.get("id"), function.get("name"), function.get("arguments"))
        call_id, name, part = (str(text or "") for text in told)
        found.append((int(piece.get("index", 0)), call_id, name, part))
    return found


def write_reply(turn: Turn, model: str, reply_id: str) -> dict[str, Any]:
    """The plain reply; the text of cut arguments goes out as it is."""
    content = (turn.text or None) if turn.tool_calls else turn.text
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
    if turn.tool_calls:
        message["tool_calls"] = [_call(call) for call in turn.tool_calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(turn)}
    head = {"id": reply_id, "object": "chat.completion", "created": CREATED, "model": model}
    return head | {"choices": [choice], "usage": _usage(turn)}


def _finish(turn: Turn) -> str | None:
    return None if turn.stop_reason is None else _WRITE_REASON.get(turn.stop_reason, turn.stop_reason)


def _usage(turn: Turn) -> dict[str, int]:
    used = {"prompt_tokens": turn.input_tokens, "completion_tokens": turn.output_tokens}
    return used | {"total_tokens": turn.input_tokens + turn.output_tokens}


def write_stream(turn: Turn, model: str, reply_id: str, *, include_usage: bool = True) -> list[bytes]:
    """The reply as chunks, a chunk with the usage where the request asked for it, and `[DONE]`.

    A turn that has no stop reason ends after its last delta, without `[DONE]`.
    """
    head = {"id": reply_id, "object": "chat.completion.chunk", "created": CREATED, "model": model}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None if turn.tool_calls else ""}]
    for at in range(0, len(turn.text), TEXT_PIECE):
        deltas.append({"content": turn.text[at : at + TEXT_PIECE]})
    for index, call in enumerate(turn.tool_calls):
        function = {"name": call.name, "arguments": ""}
        deltas.append({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})
        for part in pieces(call.raw):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    finish = _finish(turn)
    ends: list[str | None] = [None] * len(deltas)
    if finish is not None:
        deltas.append({})
        ends.append(finish)
    spare = {"usage": None} if include_usage else {}
    sent: list[Any] = [
        head | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": end}]} | spare
        for delta, end in zip(deltas, ends, strict=True)
    ]
    if finish is not None:
        if include_usage:
            sent.append(head | {"choices": [], "usage": _usage(turn)})
        sent.append("[DONE]")
    return [write_event(data) for data in sent]


def error_body(status: int, message: str, *, code: str | None = None) -> tuple[dict[str, Any], dict[str, str]]:
    """The provider's error body and headers for a status; `code` replaces the usual error code.

    The request id is derived from the error, so that a repeated run shows the same bytes.
    """
    kind, usual = _ERRORS.get(status, ("server_error" if status >= 500 else "invalid_request_error", None))
    if code in ("insufficient_quota", "server_error"):
        kind = code
    body = {"error": {"message": message, "type": kind, "param": None, "code": code or usual}}
    request_id = "req_" + digest([api, status, message])[:32]
    return body, {"content-type": "application/json", "x-request-id": request_id}


def stream_error(status: int, message: str) -> bytes:
    """The event that ends a stream with an error after it had begun with status 200."""
    return write_event(error_body(status, message)[0])


def is_terminal(event: Event) -> bool:
    """True for the event after which the message is whole."""
    return event.data.strip() == "[DONE]"


def fragments(stream: list[Event]) -> list[Fragment]:
    """The pieces of argument text in a stream, in order; `call` counts the tool calls of the message from 0."""
    names: dict[int, str] = {}
    found: list[Fragment] = []
    for position, event in enumerate(stream):
        with suppress(*MALFORMED):
            for choice in event.json()["choices"][:1]:
                for index, _, name, part in _pieces_of(choice.get("delta") or {}):
                    names[index] = name or names.get(index, "")
                    found.append(Fragment(position, list(names).index(index), names[index], part))
    return found
