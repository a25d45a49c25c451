"""What a model and an agent say to each other, whichever provider carries it.

The provider modules read their wire shapes into these types and write them back. `stop_reason` speaks one
language for all of them: `end_turn`, `tool_use`, `max_tokens`, `stop_sequence`, `refusal`, else the provider's
own word; `None` where the message never said that it had ended.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from traces.json_bodies import shallow
from traces.providers.sse import Event
from traces.providers.tokens import cut_points, partial_object

MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What reading a body of another shape than the provider's raises; a reader takes it for "nothing was said"."""
NORMAL_ENDS = frozenset({"end_turn", "tool_use", "stop_sequence", "pause_turn"})


def compact(value: Any) -> str:
    """JSON as models write it on the wire: no blanks, keys in the order given."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call. `raw` is the text of its arguments as it was (or will be) sent.

    `arguments` is what `raw` says, `{}` where `raw` is no whole JSON object. Two calls are equal whatever the blanks
    in their `raw`.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    raw: str = field(compare=False)

    @property
    def whole(self) -> bool:
        """True where the text of the arguments is one whole JSON object."""
        return parse_arguments(self.raw) is not None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the agent reports back for one tool call."""

    id: str
    content: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the model. `complete`: it ended, by its last event where streamed, for a normal reason."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    stop_reason: str | None = "end_turn"
    input_tokens: int = 0
    output_tokens: int = 0
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation: `role` is `user`, `assistant`, `tool`, `system` or `developer`."""

    role: str
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """A request to the model. `tools` are `{"name", "description", "input_schema"}`, as in the contract's task."""

    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()
    stream: bool = False
    model: str = ""
    max_tokens: int | None = None
    include_usage: bool = False


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of a tool call's argument text: the event that brought it, the call's place, its tool."""

    event: int
    call: int
    tool: str
    text: str


class Provider(Protocol):
    """What each provider module offers (modules satisfy this as they are)."""

    @property
    def api(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def overloaded_status(self) -> int: ...
    def read_request(self, body: dict[str, Any]) -> Conversation: ...
    def write_request(self, conversation: Conversation) -> dict[str, Any]: ...
    def check_request(self, body: Any) -> dict[str, Any] | None: ...
    def read_reply(self, status: int, content_type: str, body: bytes) -> Turn: ...
    def write_reply(self, turn: Turn, model: str, reply_id: str) -> dict[str, Any]: ...
    def write_stream(self, turn: Turn, model: str, reply_id: str, *, include_usage: bool = True) -> list[bytes]: ...
    def error_body(
        self, status: int, message: str, *, code: str | None = None
    ) -> tuple[dict[str, Any], dict[str, str]]: ...
    def stream_error(self, status: int, message: str) -> bytes: ...
    def is_terminal(self, event: Event) -> bool: ...
    def fragments(self, events: list[Event]) -> list[Fragment]: ...


def parse_arguments(raw: str) -> dict[str, Any] | None:
    """The object that the text of arguments is, or `None`. An empty text is an empty object: tools without arguments
    are called so on the wire."""
    if not raw.strip():
        return {}
    try:
        value = shallow(json.loads, raw)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def tool_call(call_id: str, name: str, arguments: dict[str, Any]) -> ToolCall:
    """A call with its arguments written compactly."""
    return ToolCall(call_id, name, arguments, compact(arguments))


def raw_call(call_id: str, name: str, raw: str) -> ToolCall:
    """A call from the text of its arguments, whole or not."""
    return ToolCall(call_id, name, parse_arguments(raw) or {}, raw)


def best_guess(call: ToolCall) -> dict[str, Any]:
    """The arguments that a lenient reader takes a cut text for: what providers return in plain replies."""
    return call.arguments if call.whole else partial_object(call.raw)


def truncated(turn: Turn, *, inside: str = "number", tool: str | None = None) -> Turn | None:
    """The turn as it comes out when the output limit strikes inside a number (or `"string"`) of a tool call.

    The call cut is the first that has such a place (of the tool named, if one is); it is cut in its last number, so
    that all earlier arguments look right; later calls are never said. `None` where there is no such place.
    """
    for position, call in enumerate(turn.tool_calls):
        points = cut_points(call.raw, inside) if tool in (None, call.name) else []
        if points:
            cut = raw_call(call.id, call.name, call.raw[: points[-1]])
            said = (*turn.tool_calls[:position], cut)
            return replace(turn, tool_calls=said, stop_reason="max_tokens", complete=False)
    return None


def renamed(turn: Turn, new_name: str, *, tool: str | None = None) -> Turn | None:
    """The turn with its first call (of the tool named, if one is) made to another; `None` without such a call."""
    for position, call in enumerate(turn.tool_calls):
        if tool in (None, call.name):
            calls = list(turn.tool_calls)
            calls[position] = replace(call, name=new_name)
            return replace(turn, tool_calls=tuple(calls))
    return None
