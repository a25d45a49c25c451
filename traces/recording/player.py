"""Tells a story through the recorder: each turn as the provider would send it, each call as the wire would see it.

Clock and identifiers are derived from the story, so that a story always gives the same file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from traces.digest import digest
from traces.providers import for_api, json_bytes
from traces.providers.turn import Conversation, Message, ToolResult, Turn, compact, tool_call
from traces.recorder import Chunk, Recorder, model_exchange, tool_exchange
from traces.recording.tools import declared
from traces.trace import Trace

MODELS = {"anthropic-messages": "claude-sonnet-4-5", "openai-chat": "gpt-4.1"}
SYSTEM = (
    "You work for the customer service of a shop. Use the tools; take identifiers from what they return and never "
    "invent one. Amounts are in cents. E-mails cannot be called back: send them when everything else is done."
)
CHARACTERS_PER_TOKEN = 4
CHUNK_S = 0.012
TOOL_S = 0.085
THINK_S = 0.42
_MASK_KEY = b"bundled traces hold no secrets"


@dataclass(frozen=True, slots=True)
class Act:
    """One tool call and what the tool answers."""

    tool: str
    arguments: dict[str, Any]
    result: Any
    status: int = 200


@dataclass(frozen=True, slots=True)
class Story:
    """One run: what is asked, the turns (text, acts), the closing words, and the tools on offer beyond those used."""

    name: str
    api: str
    stream: bool
    task_type: str
    request: str
    turns: tuple[tuple[str, tuple[Act, ...]], ...]
    closing: str
    about: str
    tenant: str = "default"
    offered: tuple[str, ...] = ()
    limits: dict[str, Any] = field(default_factory=dict)


def declined(kind: str, message: str) -> dict[str, Any]:
    """The error body of a tool that did nothing."""
    return {"error": {"kind": kind, "message": message, "retryable": False, "may_have_taken_effect": False}}


def play(story: Story) -> Trace:
    """The trace that the recorder makes of a story."""
    provider = for_api(story.api)
    if provider is None:
        raise ValueError(f"story {story.name}: unknown api {story.api!r}")
    model = MODELS[story.api]
    used = list(dict.fromkeys([*(act.tool for _, acts in story.turns for act in acts), *story.offered]))
    tools = declared(used)
    messages = [Message("system", SYSTEM), Message("user", story.request)]
    now = 0.0
    spent = 0
    seen = []
    for number, (text, acts) in enumerate([*story.turns, (story.closing, ())], 1):
        prefix = "toolu_01" if story.api == "anthropic-messages" else "call_"
        calls = tuple(
            tool_call(prefix + digest([story.name, number, n])[:22], act.tool, act.arguments)
            for n, act in enumerate(acts)
        )
        conversation = Conversation(tuple(messages), tools, story.stream, model, 2048, story.stream)
        request = provider.write_request(conversation)
        turn = Turn(
            text=text,
            tool_calls=calls,
            stop_reason="tool_use" if calls else "end_turn",
            input_tokens=len(compact(request)) // CHARACTERS_PER_TOKEN,
            output_tokens=max(1, (len(text) + sum(len(c.name) + len(c.raw) for c in calls)) // CHARACTERS_PER_TOKEN),
        )
        spent += turn.input_tokens + turn.output_tokens
        reply_id = ("msg_01" if story.api == "anthropic-messages" else "chatcmpl-") + digest([story.name, number])[
            :22
        ]
        if story.stream:
            parts = provider.write_stream(turn, model, reply_id)
        else:
            parts = [json_bytes(provider.write_reply(turn, model, reply_id))]
        chunks = [Chunk(round(THINK_S + n * CHUNK_S, 3), part) for n, part in enumerate(parts)]
        end = now + chunks[-1].t
        seen.append(
            model_exchange(
                provider.path,
                json_bytes(request),
                status=200,
                content_type="text/event-stream" if story.stream else "application/json",
                chunks=chunks,
                t_start=now,
                t_end=end,
            )
        )
        # Calls of one turn are made side by side; a microsecond apart keeps their order.
        for n, act in enumerate(acts):
            start = end + n * 1e-6
            seen.append(
                tool_exchange(
                    act.tool,
                    act.arguments,
                    headers={"X-Step": str(number)},
                    status=act.status,
                    body=act.result,
                    t_start=start,
                    t_end=start + TOOL_S,
                )
            )
        messages.append(Message("assistant", text, calls))
        results = [
            ToolResult(call.id, compact(act.result), act.status >= 400) for call, act in zip(calls, acts, strict=True)
        ]
        if results:
            messages.append(Message("user", tool_results=tuple(results)))
        now = end + (TOOL_S if acts else 0.0)
    recorder = Recorder(
        story.name,
        task_type=story.task_type,
        tenant=story.tenant,
        request=story.request,
        tools=tools,
        limits=_limits(story, spent) | story.limits,
        provenance={
            "made_by": "traces.recording",
            "about": story.about,
            "data": "people by faker, prices and words by hand; no model was asked",
            "clock": "simulated",
        },
        mask_key=_MASK_KEY,
    )
    for exchange in seen:
        recorder.observe(exchange)
    return recorder.finish()


def _limits(story: Story, spent: int) -> dict[str, Any]:
    """Limits that a run of this kind keeps even when faults make it repeat and undo things."""
    acts = sum(len(acts) for _, acts in story.turns)
    return {
        "steps": 2 * (acts + len(story.turns) + 1) + 10,
        "wall_clock_s": 30,
        "tokens": 1000 * (4 * spent // 1000 + 10),
        "recovery_s": 15,
    }
