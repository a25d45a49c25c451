"""Anthropic's wire shapes."""

from __future__ import annotations

import json
from typing import Any

from agents.reference.task import Offer
from agents.reference.turn import Answered, Call, Conversation, Exchange, Wanted
from agents.reference.wire_anthropic import AnthropicMessages

WIRE = AnthropicMessages()


def test_the_request() -> None:
    """Turns become an assistant message with tool_use blocks and a user message with their results."""
    exchange = Exchange("Hm.", (Wanted("c1", "t", {"a": 1}),), (Answered("c1", '{"b":2}', is_error=True),))
    offers = (Offer("t", "does", {"type": "object"}), Offer("bare", "", {}))
    body = WIRE.body(Conversation("Do.", (exchange,), offers), model="m", max_tokens=9, stream=True)
    assert body["messages"] == [
        {"role": "user", "content": "Do."},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Hm."},
                {"type": "tool_use", "id": "c1", "name": "t", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": '{"b":2}', "is_error": True}],
        },
    ]
    assert (body["max_tokens"], body["stream"], body["tools"][0]["name"]) == (9, True, "t")
    assert body["tools"][1]["input_schema"] == {"type": "object", "properties": {}}
    assert "tools" not in WIRE.body(Conversation("Do.", (), ()), model="m", max_tokens=9, stream=False)


def test_a_whole_message() -> None:
    """Text, calls, usage and stop reason; blocks of other types are passed over."""
    turn = WIRE.read(
        {
            "content": [
                {"type": "thinking", "thinking": "..."},
                {"type": "text", "text": "Hi"},
                {"type": "tool_use", "id": "c", "name": "t", "input": {"a": 1}},
            ],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 7, "output_tokens": 3},
        }
    )
    assert (turn.text, turn.calls, turn.stop, turn.ended) == ("Hi", (Call("c", "t", '{"a": 1}'),), "tool_use", True)
    assert (turn.input_tokens, turn.output_tokens) == (7, 3)
    assert WIRE.read({}).ended is False
    assert WIRE.read({"stop_reason": "stop_sequence"}).stop == "end_turn"


EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}},
    {"type": "ping"},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "c", "name": "t"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a":'}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "12}"}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]


def test_a_stream_at_every_length() -> None:
    """Only `message_stop` ends it: every shorter beginning is a turn that has not ended."""
    for length in range(len(EVENTS) + 1):
        reader = WIRE.reader()
        over = [reader.event(event["type"], json.dumps(event)) for event in EVENTS[:length]]
        turn = reader.turn()
        assert turn.ended is (length == len(EVENTS))
        assert any(over) is turn.ended
    assert (turn.text, turn.calls[0].raw, turn.output_tokens) == ("Hi", '{"a":12}', 4)


def test_rubbish_between_events() -> None:
    """Data that is no event changes nothing."""
    reader = WIRE.reader()
    assert [reader.event(None, data) for data in ("", "x", "[]", "{}", '{"type": "new"}')] == [False] * 5
    assert reader.turn().ended is False
