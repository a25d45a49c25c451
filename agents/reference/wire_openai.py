"""OpenAI Chat Completions, plain and streamed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from agents.reference.turn import Call, Conversation, Turn

_STOPS: Final = {"tool_calls": "tool_use", "stop": "end_turn", "length": "max_tokens"}


class OpenAIChat:
    """The provider's wire shapes; see https://platform.openai.com/docs/api-reference/chat."""

    path = "/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        """Authentication."""
        return {"authorization": f"Bearer {key}"}

    def body(self, conversation: Conversation, *, model: str, max_tokens: int, stream: bool) -> dict[str, Any]:
        """The request body. Tool messages have no error flag: the content says it."""
        messages: list[dict[str, Any]] = [{"role": "user", "content": conversation.request}]
        for exchange in conversation.exchanges:
            calls = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": json.dumps(call.arguments, ensure_ascii=False),
                    },
                }
                for call in exchange.calls
            ]
            messages.append({"role": "assistant", "content": exchange.text or None, "tool_calls": calls})
            messages += [
                {"role": "tool", "tool_call_id": answer.id, "content": answer.content} for answer in exchange.answers
            ]
        tools = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.input_schema) or {"type": "object", "properties": {}},
                },
            }
            for tool in conversation.offers
        ]
        body: dict[str, Any] = {"model": model, "messages": messages, "max_completion_tokens": max_tokens}
        if tools:
            body["tools"] = tools
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body

    def read(self, data: Mapping[str, Any]) -> Turn:
        """A whole completion: its first choice."""
        choices = data.get("choices") or [{}]
        choice = choices[0] if isinstance(choices[0], dict) else {}
        message = choice.get("message") or {}
        stop = choice.get("finish_reason")
        usage = data.get("usage") or {}
        return Turn(
            text=str(message.get("content") or ""),
            calls=tuple(_call(item) for item in message.get("tool_calls") or ()),
            stop=_STOPS.get(str(stop), str(stop or "")),
            ended=stop is not None,
            input_tokens=usage.get("prompt_tokens"),
            output_tokens=usage.get("completion_tokens"),
        )

    def reader(self) -> OpenAIReader:
        """A collector for one stream."""
        return OpenAIReader()


class OpenAIReader:
    """Puts the deltas of the first choice together. Only `[DONE]` ends a stream."""

    def __init__(self) -> None:
        self._text = ""
        self._calls: dict[int, Call] = {}
        self._stop = ""
        self._ended = False
        self._usage: Mapping[str, Any] = {}
        self._error: tuple[str, str] | None = None

    def event(self, name: str | None, data: str) -> bool:
        """Take one event. Data that is no JSON object is no event of this protocol and is passed over."""
        if data.strip() == "[DONE]":
            self._ended = True
            return True
        try:
            body = json.loads(data)
        except ValueError:
            return False
        if not isinstance(body, dict):
            return False
        if isinstance(body.get("error"), dict):
            error = body["error"]
            self._error = (
                str(error.get("code") or error.get("type") or "error"),
                str(error.get("message") or ""),
            )
            return True
        self._usage = body.get("usage") or self._usage
        for choice in (body.get("choices") or ())[:1]:
            delta = choice.get("delta") or {}
            self._text += str(delta.get("content") or "")
            for item in delta.get("tool_calls") or ():
                more = _call(item)
                index = int(item.get("index", 0))
                had = self._calls.get(index, Call("", "", ""))
                self._calls[index] = Call(had.id or more.id, had.name + more.name, had.raw + more.raw)
            stop = choice.get("finish_reason")
            if stop is not None:
                self._stop = _STOPS.get(str(stop), str(stop))
        return False

    def turn(self) -> Turn:
        """What has come so far."""
        return Turn(
            text=self._text,
            calls=tuple(self._calls[index] for index in sorted(self._calls)),
            stop=self._stop,
            ended=self._ended,
            input_tokens=self._usage.get("prompt_tokens"),
            output_tokens=self._usage.get("completion_tokens"),
            error=self._error,
        )


def _call(item: Mapping[str, Any]) -> Call:
    function = item.get("function") or {}
    return Call(str(item.get("id") or ""), str(function.get("name") or ""), str(function.get("arguments") or ""))
