"""Anthropic Messages: what is refused, in which words."""

from __future__ import annotations

from typing import Any

import pytest

from traces.providers.anthropic_messages import check_request

TOOL = {"name": "charge", "input_schema": {"type": "object"}}
ASK = {"role": "user", "content": "Charge it."}


def use(call: str, **more: Any) -> dict[str, Any]:
    """A tool_use block."""
    return {"type": "tool_use", "id": call, "name": "charge", "input": {}} | more


def result(call: str) -> dict[str, Any]:
    """A tool_result block."""
    return {"type": "tool_result", "tool_use_id": call, "content": "ok"}


def said(*content: dict[str, Any]) -> dict[str, Any]:
    """A message of the assistant."""
    return {"role": "assistant", "content": list(content)}


def back(*content: dict[str, Any]) -> dict[str, Any]:
    """A message of the user."""
    return {"role": "user", "content": list(content)}


def request(*messages: Any, **more: Any) -> dict[str, Any]:
    """A request body."""
    return {"model": "m", "max_tokens": 9, "messages": list(messages), "tools": [TOOL]} | more


TEXT = {"type": "text", "text": "well"}


@pytest.mark.parametrize(
    "body",
    [
        request(ASK),
        request(ASK, ASK),
        request(ASK, said(use("a"), use("b")), back(result("b"), result("a"), TEXT)),
        request(ASK, said(use("a"), use("b")), back(result("a")), back(result("b"))),
        request(ASK, said(TEXT), said(use("a")), back(result("a"))),
        request(ASK, said(use("a")), back(result("a")), said(use("a")), back(result("a"))),
        request(ASK, said(use("a")), back(result("a")), {"role": "system", "content": "Be brief."}),
        request(ASK, {"role": "assistant", "content": "The answer is"}),
        request(ASK, {"role": "assistant", "content": ""}),
    ],
)
def test_good_requests(body: dict[str, Any]) -> None:
    """Whole conversations pass, also where messages of one role follow each other or an id returns."""
    assert check_request(body) is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (request(ASK, said(use("a")), ASK), "messages.1: `tool_use` ids were found without `tool_result` blocks"),
        (request(ASK, said(use("a"))), "messages.1: `tool_use` ids were found without `tool_result` blocks"),
        (request(ASK, said(use("a"), use("b")), back(result("a"))), "immediately after: b. Each `tool_use`"),
        (request(ASK, said(use("a")), back(TEXT, result("a"))), "immediately after: a."),
        (
            request(back(result("x"))),
            "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: x",
        ),
        (
            request(ASK, said(use("a")), back(result("a")), said(TEXT), back(result("a"))),
            "messages.4.content.0: unexpected `tool_use_id`",
        ),
        (request(ASK, said(use("a")), back(result("a"), result("a"))), "each tool_use must have a single result"),
        (
            request(ASK, said(use("a"), use("a")), back(result("a"))),
            "messages.1.content.1: `tool_use` ids must be unique",
        ),
        (
            request(ASK, said(use("a b")), back(result("a b"))),
            "messages.1.content.0.tool_use.id: String should match",
        ),
        (request(ASK, said(use("a", input="{}"))), "tool_use.input: Input should be a valid dictionary"),
        (request(), "messages: at least one message is required"),
        ({"model": "m", "messages": [ASK]}, "max_tokens: Field required"),
        (request(ASK, max_tokens=0), "max_tokens: Input should be greater than or equal to 1"),
        (request(ASK, max_tokens="9"), "max_tokens: Input should be a valid integer"),
        ({"max_tokens": 9, "messages": [ASK]}, "model: Field required"),
        (request({"role": "system", "content": "x"}, ASK), 'Unexpected role "system"'),
        (request({"role": "tool", "content": "x"}), 'Unexpected role "tool"'),
        (request(said(TEXT)), 'first message must use the "user" role'),
        (request({"role": "user", "content": ""}), "all messages must have non-empty content"),
        (request(back({"type": "text", "text": ""})), "text content blocks must be non-empty"),
        (request(ASK, {"role": "assistant", "content": "So "}), "cannot end with trailing whitespace"),
        (request(ASK, tools=[TOOL, TOOL]), "tools: Tool names must be unique."),
        (
            request(ASK, tools=[{"name": "a b", "input_schema": {}}]),
            "tools.0.custom.name: String should match pattern",
        ),
        (request(ASK, tools=[{"name": "a"}]), "tools.0.custom.input_schema: Field required"),
        (request(ASK, said(use("a")), back(result("a")), tools=[]), "must define tools"),
        (request("hello"), "messages.0: Input should be a valid dictionary"),
        (request(ASK, stream="yes"), "stream: Input should be a valid boolean"),
        ([], "Input should be a valid dictionary"),
    ],
)
def test_bad_requests_get_the_providers_words(body: Any, message: str) -> None:
    """A bad request is answered by the provider's own 400."""
    answer = check_request(body)
    assert answer is not None
    assert answer["error"]["type"] == "invalid_request_error"
    assert message in answer["error"]["message"]
