"""OpenAI Chat Completions: shapes on the wire."""

from __future__ import annotations

import pytest

from traces.providers import openai_chat as api
from traces.providers.sse import events
from traces.providers.turn import Conversation, Message, ToolResult, Turn, tool_call

CALL = tool_call("call_1", "charge", {"amount": 1200})
TURN = Turn(tool_calls=(CALL,), stop_reason="tool_use", input_tokens=75, output_tokens=51)


def test_stream_tells_chunks_in_order() -> None:
    """Role first, then the call with its id and name once, then pieces of its arguments, reason, usage, end."""
    sent = events(b"".join(api.write_stream(TURN, "gpt-4.1", "chatcmpl-1")))
    chunks = [event.json() for event in sent[:-1]]
    assert sent[-1].data == "[DONE]"
    assert all(event.name is None for event in sent)
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert deltas[0] == {"role": "assistant", "content": None}
    assert deltas[1]["tool_calls"] == [
        {"index": 0, "id": "call_1", "type": "function", "function": {"name": "charge", "arguments": ""}}
    ]
    assert [d["tool_calls"][0]["function"]["arguments"] for d in deltas[2:-1]] == ['{"amoun', 't":12', "00", "}"]
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == {"prompt_tokens": 75, "completion_tokens": 51, "total_tokens": 126}


def test_usage_only_where_asked_for() -> None:
    """Without `include_usage` no chunk has usage."""
    sent = events(b"".join(api.write_stream(TURN, "gpt-4.1", "chatcmpl-1", include_usage=False)))
    assert all("usage" not in event.json() for event in sent[:-1])


def test_finish_reasons() -> None:
    """The provider's reasons and ours are one to one for what matters."""
    for ours, theirs in (("end_turn", "stop"), ("max_tokens", "length"), ("refusal", "content_filter")):
        body = api.write_reply(Turn("x", stop_reason=ours), "m", "r")
        assert body["choices"][0]["finish_reason"] == theirs


def test_conversation_goes_and_comes() -> None:
    """A conversation written as a request passes the provider's checks and is read back."""
    tools = ({"name": "charge", "description": "Charges.", "input_schema": {"type": "object"}},)
    talk = Conversation(
        messages=(
            Message("system", "Be brief."),
            Message("user", "Charge it."),
            Message("assistant", "", (CALL,)),
            Message("tool", tool_results=(ToolResult("call_1", "no money"),)),
        ),
        tools=tools,
        stream=True,
        model="gpt-4.1",
        max_tokens=100,
        include_usage=True,
    )
    body = api.write_request(talk)
    assert api.check_request(body) is None
    assert body["messages"][2]["content"] is None
    assert body["stream_options"] == {"include_usage": True}
    assert api.read_request(body) == talk


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, "invalid_request_error", None),
        (401, "invalid_request_error", "invalid_api_key"),
        (429, "requests", "rate_limit_exceeded"),
        (500, "server_error", None),
        (503, "server_error", None),
    ],
)
def test_error_body(status: int, kind: str, code: str | None) -> None:
    """Errors have the provider's envelope and its request id header."""
    body, headers = api.error_body(status, "no")
    assert body["error"] == {"message": "no", "type": kind, "param": None, "code": code}
    assert headers["x-request-id"].startswith("req_")


def test_quota_is_a_kind_of_its_own() -> None:
    """The 429 that no waiting helps says so in type and code."""
    body, _ = api.error_body(429, "You exceeded your current quota", code="insufficient_quota")
    assert (body["error"]["type"], body["error"]["code"]) == ("insufficient_quota", "insufficient_quota")
