"""OpenAI's wire shapes."""

from __future__ import annotations

import json

from agents.reference.task import Offer
from agents.reference.turn import Answered, Call, Conversation, Exchange, Wanted
from agents.reference.wire_openai import OpenAIChat

WIRE = OpenAIChat()


def test_the_request() -> None:
    """Turns become an assistant message with tool_calls and one tool message per call."""
    exchange = Exchange("", (Wanted("c1", "t", {"a": "ü"}),), (Answered("c1", "r", is_error=False),))
    conversation = Conversation("Do.", (exchange,), (Offer("t", "does", {}),))
    body = WIRE.body(conversation, model="m", max_tokens=9, stream=True)
    function = {"name": "t", "arguments": '{"a": "ü"}'}
    assert body["messages"] == [
        {"role": "user", "content": "Do."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "r"},
    ]
    assert body["stream_options"] == {"include_usage": True}
    assert body["tools"][0]["function"]["parameters"] == {"type": "object", "properties": {}}
    assert "stream" not in WIRE.body(conversation, model="m", max_tokens=9, stream=False)


def test_a_whole_completion() -> None:
    """The first choice counts."""
    call = {"id": "c", "type": "function", "function": {"name": "t", "arguments": '{"a":1}'}}
    turn = WIRE.read(
        {
            "choices": [{"message": {"content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3},
        }
    )
    assert (turn.calls, turn.stop, turn.ended, turn.input_tokens) == (
        (Call("c", "t", '{"a":1}'),),
        "tool_use",
        True,
        7,
    )
    assert WIRE.read({"choices": []}).ended is False
    assert WIRE.read({"choices": [{"message": {}, "finish_reason": "length"}]}).stop == "max_tokens"


def test_a_stream_of_two_calls_at_every_length() -> None:
    """Deltas are put together by index; only `[DONE]` ends the stream."""

    def delta(index: int, **function: str) -> str:
        calls = [{"index": index, "function": function, **({"id": f"c{index}"} if "name" in function else {})}]
        return json.dumps({"choices": [{"delta": {"tool_calls": calls}, "finish_reason": None}]})

    data = [
        json.dumps({"choices": [{"delta": {"role": "assistant", "content": "Hm"}}]}),
        delta(0, name="a", arguments=""),
        delta(0, arguments='{"x":'),
        delta(1, name="b", arguments='{"y":'),
        delta(0, arguments="1}"),
        delta(1, arguments="2}"),
        json.dumps({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
        json.dumps({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}),
        "[DONE]",
    ]
    for length in range(len(data) + 1):
        reader = WIRE.reader()
        for item in data[:length]:
            reader.event(None, item)
        turn = reader.turn()
        assert turn.ended is (length == len(data))
    assert turn.calls == (Call("c0", "a", '{"x":1}'), Call("c1", "b", '{"y":2}'))
    assert (turn.text, turn.stop, turn.output_tokens) == ("Hm", "tool_use", 3)


def test_an_error_in_the_stream() -> None:
    """An error object ends the reading and is kept."""
    reader = WIRE.reader()
    assert reader.event(None, '{"error": {"type": "server_error", "message": "m"}}') is True
    assert reader.turn().error == ("server_error", "m")
    assert reader.event(None, "rubbish") is False
