"""What the Anthropic Messages API refuses with a 400, in its own words.

Sources: the API reference (consecutive messages of one role are read as one; tool results come first in the message
after their calls), error texts quoted in public issue trackers, and recorded traffic: a call id may return in a later
turn, and a `system` message may stand within a conversation, though not begin it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def request_fault(body: Any) -> str | None:
    """The message of the first fault of a request body, or `None`."""
    return next(_faults(body), None)


def _faults(body: Any) -> Iterator[str]:
    if not isinstance(body, dict):
        yield "Input should be a valid dictionary or object to extract fields from"
        return
    yield from _top(body)
    yield from _tools(body)
    yield from _shapes(body["messages"])
    yield from _order(body)


def _top(body: dict[str, Any]) -> Iterator[str]:
    for name in ("model", "messages", "max_tokens"):
        if body.get(name) is None:
            yield f"{name}: Field required"
    if not isinstance(body["model"], str):
        yield "model: Input should be a valid string"
    limit = body["max_tokens"]
    if not isinstance(limit, int) or isinstance(limit, bool):
        yield "max_tokens: Input should be a valid integer"
    elif limit < 1:
        yield "max_tokens: Input should be greater than or equal to 1"
    if not isinstance(body.get("stream", False), bool):
        yield "stream: Input should be a valid boolean"
    if not isinstance(body["messages"], list):
        yield "messages: Input should be a valid list"
    if not body["messages"]:
        yield "messages: at least one message is required"


def _tools(body: dict[str, Any]) -> Iterator[str]:
    tools = body.get("tools")
    if tools is None:
        return
    if not isinstance(tools, list):
        yield "tools: Input should be a valid list"
        return
    names: set[str] = set()
    for n, tool in enumerate(tools):
        if not isinstance(tool, dict):
            yield f"tools.{n}: Input should be a valid dictionary or object to extract fields from"
            continue
        name = tool.get("name")
        if name is None:
            yield f"tools.{n}.custom.name: Field required"
        if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
            yield f"tools.{n}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
        if name in names:
            yield "tools: Tool names must be unique."
        names.add(str(name))
        if "type" not in tool or tool["type"] == "custom":
            if "input_schema" not in tool:
                yield f"tools.{n}.custom.input_schema: Field required"
            schema = tool.get("input_schema")
            if not isinstance(schema, dict):
                yield f"tools.{n}.custom.input_schema: Input should be a valid dictionary"
            elif schema.get("type") != "object":
                yield f"tools.{n}.custom.input_schema.type: Field required"


def _shapes(messages: list[Any]) -> Iterator[str]:
    for n, message in enumerate(messages):
        at = f"messages.{n}"
        if not isinstance(message, dict):
            yield f"{at}: Input should be a valid dictionary or object to extract fields from"
            continue
        for name in ("role", "content"):
            if message.get(name) is None:
                yield f"{at}.{name}: Field required"
        role, content = message["role"], message["content"]
        if role == "system" and n == 0:
            yield (
                'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
                'not "system" as an input message role.'
            )
        if role not in ("user", "assistant", "system"):
            yield f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant"'
        if not isinstance(content, (str, list)):
            yield f"{at}.content: Input should be a valid list"
        final_reply = role == "assistant" and n == len(messages) - 1
        if not content and not final_reply:
            which = "messages" if n == 0 else at
            yield f"{which}: all messages must have non-empty content except for the optional final assistant message"
        if isinstance(content, list):
            for m, block in enumerate(content):
                yield from _block(block, f"{at}.content.{m}", role)


def _block(block: Any, at: str, role: str) -> Iterator[str]:
    if not isinstance(block, dict):
        yield f"{at}: Input should be a valid dictionary or object to extract fields from"
        return
    kind = block.get("type")
    if kind is None:
        yield f"{at}.type: Field required"
    elif kind == "text":
        if not isinstance(block.get("text"), str):
            yield f"{at}.text.text: " + (
                "Field required" if "text" not in block else "Input should be a valid string"
            )
        elif not block["text"]:
            yield "messages: text content blocks must be non-empty"
    elif kind == "tool_use":
        if role != "assistant":
            yield f"{at.rsplit('.', 2)[0]}: `tool_use` blocks can only be in `assistant` messages"
        for name in ("id", "name", "input"):
            if name not in block:
                yield f"{at}.tool_use.{name}: Field required"
        if not isinstance(block["id"], str) or not _CALL_ID.fullmatch(block["id"]):
            yield f"{at}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        if not isinstance(block["name"], str) or not block["name"]:
            yield f"{at}.tool_use.name: String should have at least 1 character"
        if not isinstance(block["input"], dict):
            yield f"{at}.tool_use.input: Input should be a valid dictionary"
    elif kind == "tool_result":
        if role != "user":
            yield f"{at.rsplit('.', 2)[0]}: `tool_result` blocks can only be in `user` messages"
        if "tool_use_id" not in block:
            yield f"{at}.tool_result.tool_use_id: Field required"
        if not isinstance(block["tool_use_id"], str):
            yield f"{at}.tool_result.tool_use_id: Input should be a valid string"
        if not isinstance(block.get("content", ""), (str, list)):
            yield f"{at}.tool_result.content: Input should be a valid list"


def _order(body: dict[str, Any]) -> Iterator[str]:
    """Faults between messages, after those of one role in a row have been joined as the provider joins them."""
    turns: list[tuple[int, str, list[tuple[str, dict[str, Any]]]]] = []
    for n, message in enumerate(body["messages"]):
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        if message["role"] == "system":
            continue
        placed = [(f"messages.{n}.content.{m}", block) for m, block in enumerate(blocks)]
        if turns and turns[-1][1] == message["role"]:
            turns[-1][2].extend(placed)
        else:
            turns.append((n, message["role"], placed))
    if turns[0][1] != "user":
        yield 'messages: first message must use the "user" role'
    last_message = body["messages"][-1]
    if last_message["role"] == "assistant" and str(last_message["content"])[-1:].isspace():
        yield "messages: final assistant content cannot end with trailing whitespace"
    has_calls = False
    open_ids: list[str] = []
    open_at = 0
    for n, _role, blocks in turns:
        answered: set[str] = set()
        results_ended = False
        for at, block in blocks:
            kind = block["type"]
            if kind == "tool_result":
                wanted = block["tool_use_id"]
                if wanted not in open_ids:
                    yield (
                        f"{at}: unexpected `tool_use_id` found in `tool_result` blocks: {wanted}. Each `tool_result` "
                        "block must have a corresponding `tool_use` block in the previous message."
                    )
                if wanted in answered:
                    yield (
                        f"{at}: each tool_use must have a single result. Found multiple `tool_result` blocks with "
                        f"id: {wanted}"
                    )
                if not results_ended:
                    answered.add(wanted)
            else:
                results_ended = True
        yield from _unanswered(open_at, [call for call in open_ids if call not in answered])
        open_ids, open_at = [], n
        for at, block in blocks:
            if block["type"] == "tool_use":
                if block["id"] in open_ids:
                    yield f"{at}: `tool_use` ids must be unique"
                open_ids.append(block["id"])
        has_calls = has_calls or bool(open_ids)
    yield from _unanswered(open_at, open_ids)
    if not body.get("tools") and (has_calls or any(b["type"] == "tool_result" for t in turns for _, b in t[2])):
        yield "Requests which include `tool_use` or `tool_result` blocks must define tools"


def _unanswered(n: int, ids: list[str]) -> Iterator[str]:
    if ids:
        yield (
            f"messages.{n}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
            "message."
        )
