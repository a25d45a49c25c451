"""OpenAI Chat Completions: what is refused, in which words."""

from __future__ import annotations

from typing import Any

import pytest

from traces.providers.openai_chat import check_request

ASK = {"role": "user", "content": "Charge it."}


def call(call_id: str, **more: Any) -> dict[str, Any]:
    """A tool call."""
    return {"id": call_id, "type": "function", "function": {"name": "charge", "arguments": "{}"}} | more


def said(*calls: dict[str, Any]) -> dict[str, Any]:
    """A message of the assistant with tool calls."""
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def result(call_id: str) -> dict[str, Any]:
    """A tool message."""
    return {"role": "tool", "tool_call_id": call_id, "content": "ok"}


def request(*messages: Any, **more: Any) -> dict[str, Any]:
    """A request body."""
    return {"model": "m", "messages": list(messages)} | more


@pytest.mark.parametrize(
    "body",
    [
        request(ASK),
        request(ASK, said(call("a"), call("b")), result("b"), result("a")),
        request(ASK, said(call("a")), result("a"), said(call("a")), result("a")),
        request(ASK, stream=True, stream_options={"include_usage": True}),
    ],
)
def test_good_requests(body: dict[str, Any]) -> None:
    """Whole conversations pass, also where a call id returns in a later turn, as recorded ones do."""
    assert check_request(body) is None


@pytest.mark.parametrize(
    ("body", "message", "param"),
    [
        (
            request(ASK, said(call("a"), call("b")), result("a"), ASK),
            "did not have response messages: b",
            "messages.[3].role",
        ),
        (
            request(ASK, said(call("a"))),
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each",
            "messages.[2].role",
        ),
        (
            request(ASK, result("a")),
            "messages with role 'tool' must be a response to a preceeding",
            "messages.[1].role",
        ),
        (request(ASK, said(call("a")), result("b")), "'tool_call_id' of 'b' not found", "messages.[2].tool_call_id"),
        (request(ASK, said(call("a")), result("a"), result("a")), "Duplicate value for 'tool_call_id' of 'a'", None),
        (request(ASK, said(call("a"), call("a")), result("a")), "Duplicate value for 'tool_call_id' of 'a'", None),
        (request(), "Invalid 'messages': empty array.", "messages"),
        ({"model": "m"}, "Missing required parameter: 'messages'.", "messages"),
        ({"messages": [ASK]}, "you must provide a model parameter", None),
        (
            request({"role": "robot", "content": "x"}),
            "Invalid value: 'robot'. Supported values are:",
            "messages[0].role",
        ),
        (request({"content": "x"}), "Missing required parameter: 'messages[0].role'.", "messages[0].role"),
        (request({"role": "assistant", "content": None}), "expected a string, got null", "messages.[0].content"),
        (request(ASK, said()), "Invalid value for 'content': expected a string, got null.", "messages.[1].content"),
        (
            request(ASK, {"role": "assistant", "content": "x", "tool_calls": []}),
            "Invalid 'messages[1].tool_calls': empty array.",
            "messages[1].tool_calls",
        ),
        (
            request(ASK, said(call("a", function={"name": "charge", "arguments": {}}))),
            "expected a string, but got an object instead.",
            "messages[1].tool_calls[0].function.arguments",
        ),
        (request(ASK, {"role": "tool", "content": "x"}), "Missing parameter 'tool_call_id'", None),
        (
            request(ASK, stream_options={"include_usage": True}),
            "only allowed when 'stream' is enabled",
            "stream_options",
        ),
        (request(ASK, tools=[]), "Invalid 'tools': empty array.", "tools"),
        (
            request(ASK, tools=[{"type": "function", "function": {"name": "a b"}}]),
            "string does not match pattern",
            "tools[0].function.name",
        ),
        (request(ASK, max_tokens=0), "integer below minimum value", "max_tokens"),
        ("x", "We could not parse the JSON body", None),
    ],
)
def test_bad_requests_get_the_providers_words(body: Any, message: str, param: str | None) -> None:
    """A bad request is answered by the provider's own 400, with the parameter it is about."""
    answer = check_request(body)
    assert answer is not None
    assert answer["error"]["type"] == "invalid_request_error"
    assert message in answer["error"]["message"]
    assert param in (None, answer["error"]["param"])
