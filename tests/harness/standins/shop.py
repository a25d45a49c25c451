"""A small shop for the tests of the stand-ins: its tools, recordings of it, and an agent's side of a talk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from traces.providers import Provider, Turn, for_api
from traces.providers.turn import Conversation, Message, ToolResult, tool_call
from traces.trace import Exchange, Trace

HTTP = httpx.Client()
"""One client for all tests: making one costs more than a request."""

REGISTRY: dict[str, Any] = {
    "charge": {
        "idempotency": "keyed",
        "args": {
            "type": "object",
            "required": ["order_id", "amount"],
            "properties": {"order_id": {"type": "string"}, "amount": {"type": "integer", "minimum": 1}},
        },
        "normalise": {"drop": ["trace_id"], "trim": True},
        "compensation": {
            "tool": "refund",
            "of": {"arg": "$.charge_id", "result": "$.charge_id"},
            "strength": "strong",
        },
        "severity": "money",
    },
    "refund": {"idempotency": "keyed", "severity": "money", "compensation": {"tool": None, "strength": "none"}},
    "reserve": {
        "idempotency": "keyed",
        "key": {"json": "$.request_id"},
        "compensation": {"tool": "release", "of": {"arg": "$.hold", "result": "$.hold.id"}, "until_s": 0.0},
        "severity": "internal",
    },
    "release": {"idempotency": "natural", "severity": "internal"},
    "set_address": {"idempotency": "natural", "severity": "internal", "avoid": True},
    "email": {"idempotency": "irreversible", "avoid": True, "severity": "visible"},
    "stock": {"idempotency": "natural", "args": {"type": "object", "required": ["sku"]}},
}
"""Keyed in header and body, natural, irreversible, and one tool that only reads."""


@dataclass(frozen=True)
class Done:
    """One recorded tool call: what was asked and what was answered."""

    tool: str
    args: dict[str, Any]
    body: Any
    status: int = 200

    @property
    def result(self) -> ToolResult:
        """The result as the recorded agent told the model; its id is set later."""
        text = self.body if isinstance(self.body, str) else json.dumps(self.body)
        return ToolResult("", text, self.status >= 400)


CHARGE = Done("charge", {"order_id": "o1", "amount": 1200}, {"charge_id": "ch_1", "amount": 1200})
RESERVE = Done("reserve", {"sku": "s1"}, {"hold": {"id": "h1"}})
EMAIL = Done("email", {"to": "a@example.org"}, {"sent": True})
ORDER: tuple[tuple[Done, ...], ...] = ((CHARGE,), (RESERVE,), (EMAIL,))


def provider_of(api: str) -> Provider:
    """The wire knowledge of an API by its name in traces."""
    provider = for_api(api)
    assert provider is not None
    return provider


def recorded(
    steps: Sequence[Sequence[Done]] = ORDER, *, api: str = "anthropic-messages", final: str | None = "All done."
) -> Trace:
    """The trace of a run whose model asked for these calls, turn by turn, and closed with a text."""
    provider = provider_of(api)
    tools = tuple({"name": name, "description": name, "input_schema": {"type": "object"}} for name in REGISTRY)
    messages = [Message("user", "Please order s1.")]
    exchanges: list[Exchange] = []

    def add(channel: str, request: dict[str, Any], response: dict[str, Any], named: str | None = None) -> None:
        n = len(exchanges) + 1
        exchanges.append(
            Exchange(
                channel=channel,
                n=n,
                t_start=float(n),
                t_end=n + 0.5,
                request=request,
                response=response,
                api=named,
            )
        )

    def say(turn: Turn) -> None:
        request = provider.write_request(Conversation(tuple(messages), tools, model="m-1", max_tokens=1024))
        add("model", request, {"status": 200, "body": provider.write_reply(turn, "m-1", "r")}, api)
        messages.append(Message("assistant", turn.text, turn.tool_calls))

    for n, step in enumerate(steps):
        calls = tuple(tool_call(f"id_{n}_{k}", done.tool, done.args) for k, done in enumerate(step))
        say(Turn(f"Step {n}.", calls, "tool_use", input_tokens=100 + n, output_tokens=10 + n))
        for done in step:
            request = {"tool": done.tool, "arguments": done.args, "headers": {}}
            add("tool", request, {"status": done.status, "body": done.body})
        results = tuple(
            ToolResult(call.id, done.result.content, done.result.is_error)
            for call, done in zip(calls, step, strict=True)
        )
        messages.append(Message("tool", tool_results=results))
    if final is not None:
        say(Turn(final, input_tokens=200, output_tokens=5))
    return Trace(name="order", request="Please order s1.", exchanges=tuple(exchanges), tools=tools, masked=True)


@dataclass
class Talk:
    """An agent's side of a conversation with the gateway: it keeps the messages and sends all of them each time."""

    url: str
    run_id: str
    api: str = "anthropic-messages"
    stream: bool = False
    messages: list[Message] = field(default_factory=lambda: [Message("user", "Please order s1.")])

    def ask(self) -> httpx.Response:
        """Send the conversation as it stands."""
        tools = tuple({"name": name, "description": "", "input_schema": {"type": "object"}} for name in REGISTRY)
        conversation = Conversation(tuple(self.messages), tools, self.stream, "m-1", 1024, include_usage=self.stream)
        provider = provider_of(self.api)
        headers = {"x-stormproof-run": self.run_id} if self.run_id else {}
        return HTTP.post(self.url + provider.path, json=provider.write_request(conversation), headers=headers)

    def turn(self) -> Turn:
        """Send the conversation and read the reply, without taking it into the conversation."""
        answer = self.ask()
        assert answer.status_code == 200, answer.text
        return provider_of(self.api).read_reply(200, answer.headers["content-type"], answer.content)

    def hear(self) -> Turn:
        """Send the conversation and take the reply into it."""
        turn = self.turn()
        self.messages.append(Message("assistant", turn.text, turn.tool_calls))
        return turn

    def tell(self, *bodies: Any) -> None:
        """Report the results of the last turn's calls, in their order; an exception is a failure."""
        calls = self.messages[-1].tool_calls
        results = tuple(
            ToolResult(call.id, str(body), True)
            if isinstance(body, Exception)
            else ToolResult(call.id, body if isinstance(body, str) else json.dumps(body))
            for call, body in zip(calls, bodies, strict=True)
        )
        self.messages.append(Message("tool", tool_results=results))
