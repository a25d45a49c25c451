"""What the OpenAI Chat Completions API refuses with a 400, in its own words.

Sources: the API reference and error texts quoted in public issue trackers. A call id that returns in a later turn is
accepted: recorded conversations of the public API hold such repeats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_ROLES = ("system", "assistant", "user", "function", "tool", "developer")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TYPE_NAMES = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", int: "an integer"}


@dataclass(frozen=True, slots=True)
class RequestFault:
    """One refusal: the sentence, the parameter it is about, the machine-readable code."""

    message: str
    param: str | None = None
    code: str | None = None


def request_fault(body: Any) -> RequestFault | None:
    """The first fault of a request body, or `None`."""
    return next(_faults(body), None)


def _faults(body: Any) -> Iterator[RequestFault]:
    if not isinstance(body, dict):
        yield RequestFault("We could not parse the JSON body of your request.")
        return
    yield from _top(body)
    yield from _tools(body)
    for n, message in enumerate(body["messages"]):
        yield from _shape(message, f"messages[{n}]")
    yield from _order(body["messages"])


def _wrong_type(param: str, expected: str, value: Any) -> RequestFault:
    got = "null" if value is None else _TYPE_NAMES.get(type(value), "a decimal")
    message = f"Invalid type for '{param}': expected {expected}, but got {got} instead."
    return RequestFault(message, param, "invalid_type")


def _empty(param: str) -> RequestFault:
    message = (
        f"Invalid '{param}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    )
    return RequestFault(message, param, "empty_array")


def _missing(param: str) -> RequestFault:
    return RequestFault(f"Missing required parameter: '{param}'.", param, "missing_required_parameter")


def _top(body: dict[str, Any]) -> Iterator[RequestFault]:
    if body.get("model") is None:
        yield RequestFault("you must provide a model parameter")
    if not isinstance(body["model"], str):
        yield _wrong_type("model", "a string", body["model"])
    if "messages" not in body:
        yield _missing("messages")
    if not isinstance(body["messages"], list):
        yield _wrong_type("messages", "an array of objects", body["messages"])
    if not body["messages"]:
        yield _empty("messages")
    if not isinstance(body.get("stream") or False, bool):
        yield _wrong_type("stream", "a boolean", body["stream"])
    if not isinstance(body.get("stream_options") or {}, dict):
        yield _wrong_type("stream_options", "an object", body["stream_options"])
    if body.get("stream_options") is not None and not body.get("stream"):
        text = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        yield RequestFault(text, "stream_options")
    for name in ("max_tokens", "max_completion_tokens"):
        limit = body.get(name)
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool)):
            yield _wrong_type(name, "an integer", limit)
        elif limit is not None and limit < 1:
            text = f"Invalid '{name}': integer below minimum value. Expected a value >= 1, but got {limit} instead."
            yield RequestFault(text, name, "integer_below_min_value")


def _tools(body: dict[str, Any]) -> Iterator[RequestFault]:
    tools = body.get("tools")
    if tools is None:
        return
    if not isinstance(tools, list):
        yield _wrong_type("tools", "an array of objects", tools)
        return
    if not tools:
        yield _empty("tools")
    for n, tool in enumerate(tools):
        at = f"tools[{n}]"
        if not isinstance(tool, dict):
            yield _wrong_type(at, "an object", tool)
            continue
        for name in ("type", "function"):
            if name not in tool:
                yield _missing(f"{at}.{name}")
        if not isinstance(tool["function"], dict):
            yield _wrong_type(f"{at}.function", "an object", tool["function"])
        called = tool["function"].get("name")
        if called is None:
            yield _missing(f"{at}.function.name")
        if not isinstance(called, str) or not _TOOL_NAME.fullmatch(called):
            param = f"{at}.function.name"
            text = (
                f"Invalid '{param}': string does not match pattern. Expected a string that matches the pattern "
                "'^[a-zA-Z0-9_-]+$'."
            )
            yield RequestFault(text, param, "invalid_value")


def _shape(message: Any, at: str) -> Iterator[RequestFault]:
    if not isinstance(message, dict):
        yield _wrong_type(at, "an object", message)
        return
    role = message.get("role")
    if role is None:
        yield _missing(f"{at}.role")
    if role not in _ROLES:
        known = ", ".join(f"'{name}'" for name in _ROLES[:-1])
        text = f"Invalid value: '{role}'. Supported values are: {known}, and '{_ROLES[-1]}'."
        yield RequestFault(text, f"{at}.role", "invalid_value")
    content = message.get("content")
    calls = message.get("tool_calls")
    if content is None and not (role == "assistant" and (calls or message.get("function_call"))):
        text = "Invalid value for 'content': expected a string, got null."
        yield RequestFault(text, f"messages.{at[8:]}.content")
    if content is not None and not isinstance(content, (str, list)):
        yield _wrong_type(f"{at}.content", "one of a string or array of objects", content)
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        text = "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'."
        yield RequestFault(text, f"messages.{at[8:]}.tool_call_id")
    if calls is not None:
        yield from _calls(calls, f"{at}.tool_calls")


def _calls(calls: Any, at: str) -> Iterator[RequestFault]:
    if not isinstance(calls, list):
        yield _wrong_type(at, "an array of objects", calls)
        return
    if not calls:
        yield _empty(at)
    for n, call in enumerate(calls):
        one = f"{at}[{n}]"
        if not isinstance(call, dict):
            yield _wrong_type(one, "an object", call)
            continue
        for name in ("id", "type", "function"):
            if name not in call:
                yield _missing(f"{one}.{name}")
        if not isinstance(call["id"], str):
            yield _wrong_type(f"{one}.id", "a string", call["id"])
        function = call["function"]
        if not isinstance(function, dict):
            yield _wrong_type(f"{one}.function", "an object", function)
        for name in ("name", "arguments"):
            if name not in function:
                yield _missing(f"{one}.function.{name}")
            if not isinstance(function[name], str):
                yield _wrong_type(f"{one}.function.{name}", "a string", function[name])


def _order(messages: list[dict[str, Any]]) -> Iterator[RequestFault]:
    """Faults between messages: each tool call is answered by a tool message right after it, and by nothing else."""
    called: list[str] | None = None
    waiting: list[str] = []
    for n, message in enumerate(messages):
        if message["role"] == "tool":
            wanted = message["tool_call_id"]
            if called is None:
                text = (
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    "'tool_calls'."
                )
                yield RequestFault(text, f"messages.[{n}].role")
            elif wanted not in called:
                text = (
                    f"Invalid parameter: 'tool_call_id' of '{wanted}' not found in 'tool_calls' of previous message."
                )
                yield RequestFault(text, f"messages.[{n}].tool_call_id")
            elif wanted not in waiting:
                text = f"Duplicate value for 'tool_call_id' of '{wanted}'"
                yield RequestFault(text, f"messages.[{n}].tool_call_id")
            else:
                waiting.remove(wanted)
            continue
        yield from _unanswered(n, waiting)
        called, waiting = None, []
        if message.get("tool_calls"):
            ids = [call["id"] for call in message["tool_calls"]]
            repeated = next((call for call in ids if ids.count(call) > 1), None)
            if repeated is not None:
                text = f"Duplicate value for 'tool_call_id' of '{repeated}'"
                yield RequestFault(text, f"messages.[{n}].tool_calls")
            called, waiting = ids, list(ids)
    yield from _unanswered(len(messages), waiting)


def _unanswered(n: int, ids: list[str]) -> Iterator[RequestFault]:
    if ids:
        text = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(ids)}"
        )
        yield RequestFault(text, f"messages.[{n}].role")
