"""Anthropic Messages, plain and streamed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from agents.reference.turn import Call, Conversation, Turn

_STOPS: Final = {
    "tool_use": "tool_use",
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "max_tokens": "max_tokens",
}


class AnthropicMessages:
    """The provider's wire shapes; see https://docs.anthropic.com/en/api/messages."""

    path = "/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        """Authentication and API version."""
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def body(self, conversation: Conversation, *, model: str, max_tokens: int, stream: bool) -> dict[str, Any]:
        """The request body."""
        messages: list[dict[str, Any]] = [{"role": "user", "content": conversation.request}]
        for exchange in conversation.exchanges:
            said: list[dict[str, Any]] = [{"type": "text", "text": exchange.text}] if exchange.text else []
            said += [
                {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
                for call in exchange.calls
            ]
            told = [
                {
                    "type": "tool_result",
                    "tool_use_id": answer.id,
                    "content": answer.content,
                    "is_error": answer.is_error,
                }
                for answer in exchange.answers
            ]
            messages += [{"role": "assistant", "content": said}, {"role": "user", "content": told}]
        tools = [
            {"name": tool.name, "description": tool.description, "input_schema": _schema(tool.input_schema)}
            for tool in conversation.offers
        ]
        body = {"model": model, "max_tokens": max_tokens, "messages": messages, "stream": stream}
        return body | ({"tools": tools} if tools else {})

    def read(self, data: Mapping[str, Any]) -> Turn:
        """A whole message. Blocks of unknown types are passed over."""
        blocks = [block for block in data.get("content") or () if isinstance(block, dict)]
        stop = data.get("stop_reason")
        usage = data.get("usage") or {}
        return Turn(
            text="".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text"),
            calls=tuple(
                Call(str(block.get("id")), str(block.get("name")), json.dumps(block.get("input", {})))
                for block in blocks
                if block.get("type") == "tool_use"
            ),
            stop=_STOPS.get(str(stop), str(stop or "")),
            ended=stop is not None,
            input_tokens=usage.get("input_tokens"),
            output_tokens=usage.get("output_tokens"),
        )

    def reader(self) -> AnthropicReader:
        """A collector for one stream."""
        return AnthropicReader()


class AnthropicReader:
    """Puts the blocks of a stream together. Only `message_stop` ends it."""

    def __init__(self) -> None:
        self._text: dict[int, str] = {}
        self._calls: dict[int, Call] = {}
        self._stop = ""
        self._ended = False
        self._usage: dict[str, int] = {}
        self._error: tuple[str, str] | None = None

    def event(self, name: str | None, data: str) -> bool:
        """Take one event. Data that is no JSON object is no event of this protocol and is passed over."""
        try:
            body = json.loads(data)
        except ValueError:
            return False
        if not isinstance(body, dict):
            return False
        index = body.get("index", 0)
        match body.get("type") or name:
            case "message_start":
                self._usage.update((body.get("message") or {}).get("usage") or {})
            case "content_block_start":
                block = body.get("content_block") or {}
                if block.get("type") == "tool_use":
                    self._calls[index] = Call(str(block.get("id")), str(block.get("name")), "")
                elif block.get("type") == "text":
                    self._text[index] = str(block.get("text", ""))
            case "content_block_delta":
                self._delta(index, body.get("delta") or {})
            case "message_delta":
                stop = (body.get("delta") or {}).get("stop_reason")
                self._stop = _STOPS.get(str(stop), str(stop or ""))
                self._usage.update(body.get("usage") or {})
            case "message_stop":
                self._ended = True
            case "error":
                error = body.get("error") or {}
                self._error = (str(error.get("type") or "error"), str(error.get("message") or ""))
                return True
        return self._ended

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        if delta.get("type") == "text_delta":
            self._text[index] = self._text.get(index, "") + str(delta.get("text", ""))
        elif delta.get("type") == "input_json_delta" and index in self._calls:
            call = self._calls[index]
            self._calls[index] = Call(call.id, call.name, call.raw + str(delta.get("partial_json", "")))

    def turn(self) -> Turn:
        """What has come so far."""
        return Turn(
            text="".join(self._text[index] for index in sorted(self._text)),
            calls=tuple(self._calls[index] for index in sorted(self._calls)),
            stop=self._stop,
            ended=self._ended,
            input_tokens=self._usage.get("input_tokens"),
            output_tokens=self._usage.get("output_tokens"),
            error=self._error,
        )


def _schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    return dict(schema) if schema else {"type": "object", "properties": {}}
