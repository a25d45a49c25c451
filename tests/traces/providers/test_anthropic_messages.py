"""Anthropic Messages: shapes on the wire."""

from __future__ import annotations

import pytest

from traces.providers import anthropic_messages as api
from traces.providers.sse import events
from traces.providers.turn import Conversation, Message, ToolResult, Turn, tool_call

CALL = tool_call("toolu_01", "charge", {"amount": 1200})


def test_stream_tells_events_in_order() -> None:
    """A stream with text and a call has the provider's events, named as their data says."""
    turn = Turn(text="Now.", tool_calls=(CALL,), stop_reason="tool_use", input_tokens=9, output_tokens=5)
    sent = events(b"".join(api.write_stream(turn, "claude-sonnet-4-5", "msg_01")))
    kinds = [event.json()["type"] for event in sent]
    assert [event.name for event in sent] == kinds
    assert kinds[:6] == [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
    ]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    start, end = sent[0].json()["message"], sent[-2].json()
    assert (start["usage"]["input_tokens"], start["stop_reason"], start["content"]) == (9, None, [])
    assert end["delta"]["stop_reason"] == "tool_use"
    assert end["usage"] == {"input_tokens": 9, "output_tokens": 5}
    deltas = [event.json()["delta"] for event in sent if event.json()["type"] == "content_block_delta"]
    assert [delta["partial_json"] for delta in deltas[1:]] == ["", '{"amoun', 't":12', "00", "}"]


def test_reads_a_stream_as_recorded() -> None:
    """Padding, pings between blocks and a call without arguments are read as real streams have them."""
    body = (
        b'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":563,'
        b'"output_tokens":37}}}      \n\n'
        b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":'
        b'{"type":"tool_use","id":"toolu_01U","name":"fixed_version","input":{}}}\n\n'
        b'event: ping\ndata: {"type": "ping"}\n\n'
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":'
        b'{"type":"input_json_delta","partial_json":""}}\n\n'
        b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0 }\n\n'
        b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"tool_use"},'
        b'"usage":{"output_tokens":37}}\n\n'
        b'event: message_stop\ndata: {"type":"message_stop" }\n\n'
    )
    turn = api.read_reply(200, "text/event-stream; charset=utf-8", body)
    assert turn == Turn("", (tool_call("toolu_01U", "fixed_version", {}),), "tool_use", 563, 37, complete=True)


def test_conversation_goes_and_comes() -> None:
    """A conversation written as a request passes the provider's checks and is read back."""
    tools = ({"name": "charge", "description": "Charges.", "input_schema": {"type": "object"}},)
    talk = Conversation(
        messages=(
            Message("system", "Be brief."),
            Message("user", "Charge it."),
            Message("assistant", "Now.", (CALL,)),
            Message("user", "and hurry", tool_results=(ToolResult("toolu_01", "no money", is_error=True),)),
        ),
        tools=tools,
        stream=True,
        model="claude-sonnet-4-5",
        max_tokens=100,
        include_usage=True,
    )
    body = api.write_request(talk)
    assert api.check_request(body) is None
    assert body["messages"][2]["content"][0]["type"] == "tool_result"
    assert api.read_request(body) == talk


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, "invalid_request_error"), (429, "rate_limit_error"), (500, "api_error"), (529, "overloaded_error")],
)
def test_error_body(status: int, kind: str) -> None:
    """Errors have the provider's envelope, and one request id in body and header, the same every time."""
    body, headers = api.error_body(status, "no")
    assert body["type"] == "error"
    assert body["error"] == {"type": kind, "message": "no"}
    assert headers["request-id"] == body["request_id"]
    assert api.error_body(status, "no") == (body, headers)


def test_stream_error_is_an_event() -> None:
    """An error in the middle of a stream is an event of that name."""
    [event] = events(api.stream_error(529, "Overloaded"))
    assert event.name == "error"
    assert event.json()["error"]["type"] == "overloaded_error"
