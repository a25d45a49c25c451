"""What the scripted model of the agent's tests says, in the words of either provider."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Says:
    """One turn of the scripted model. `cut` ends the stream that many characters into the last call's arguments."""

    text: str = ""
    calls: Sequence[tuple[str, Json]] = ()
    stop: str | None = None
    cut: int | None = None
    raw: str | None = None


def _calls(says: Says) -> list[tuple[str, str, str]]:
    """Ids, names and argument texts of the calls."""
    made = []
    for place, (name, arguments) in enumerate(says.calls):
        raw = json.dumps(arguments)
        last = place == len(says.calls) - 1
        if last and says.raw is not None:
            raw = says.raw
        if last and says.cut is not None:
            raw = raw[: says.cut]
        made.append((f"call_{abs(hash((name, raw, place)))}", name, raw))
    return made


def _stop(says: Says) -> str:
    return says.stop or ("tool_use" if says.calls else "end_turn")


def anthropic(says: Says) -> Json:
    """A whole message of Anthropic."""
    content: list[Json] = [{"type": "text", "text": says.text}] if says.text else []
    for (call_id, name, raw), (_, arguments) in zip(_calls(says), says.calls, strict=True):
        try:
            whole = json.loads(raw)
        except ValueError:
            whole = dict(list(arguments.items())[:1])
        content.append({"type": "tool_use", "id": call_id, "name": name, "input": whole})
    usage = {"input_tokens": 100, "output_tokens": 20}
    return {"type": "message", "role": "assistant", "content": content, "stop_reason": _stop(says), "usage": usage}


def openai(says: Says) -> Json:
    """A whole completion of OpenAI."""
    calls = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": raw}}
        for call_id, name, raw in _calls(says)
    ]
    stop = {"tool_use": "tool_calls", "end_turn": "stop", "max_tokens": "length"}[_stop(says)]
    message = {"role": "assistant", "content": says.text or None, "tool_calls": calls or None}
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    return {"choices": [{"index": 0, "message": message, "finish_reason": stop}], "usage": usage}


def anthropic_events(says: Says) -> Iterator[bytes]:
    """The same as a stream."""

    def event(name: str, **fields: Any) -> bytes:
        return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()

    yield event("message_start", message={"usage": {"input_tokens": 100, "output_tokens": 1}})
    yield event("ping")
    index = 0
    if says.text:
        yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": says.text})
        yield event("content_block_stop", index=0)
        index = 1
    for place, (call_id, name, raw) in enumerate(_calls(says)):
        block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        yield event("content_block_start", index=index + place, content_block=block)
        for start in range(0, len(raw), 7):
            delta = {"type": "input_json_delta", "partial_json": raw[start : start + 7]}
            yield event("content_block_delta", index=index + place, delta=delta)
        if says.cut is not None and says.stop is None and place == len(says.calls) - 1:
            return
        yield event("content_block_stop", index=index + place)
    yield event("message_delta", delta={"stop_reason": _stop(says)}, usage={"output_tokens": 20})
    yield event("message_stop")


def openai_events(says: Says) -> Iterator[bytes]:
    """The same as a stream."""

    def chunk(delta: Json, stop: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": stop}
        return f"data: {json.dumps({'choices': [choice]})}\n\n".encode()

    yield chunk({"role": "assistant", "content": says.text})
    for place, (call_id, name, raw) in enumerate(_calls(says)):
        function = {"name": name, "arguments": ""}
        yield chunk({"tool_calls": [{"index": place, "id": call_id, "type": "function", "function": function}]})
        for start in range(0, len(raw), 7):
            part = {"arguments": raw[start : start + 7]}
            yield chunk({"tool_calls": [{"index": place, "function": part}]})
        if says.cut is not None and says.stop is None and place == len(says.calls) - 1:
            return
    yield chunk({}, {"tool_use": "tool_calls", "end_turn": "stop", "max_tokens": "length"}[_stop(says)])
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    yield f"data: {json.dumps({'choices': [], 'usage': usage})}\n\n".encode()
    yield b"data: [DONE]\n\n"
