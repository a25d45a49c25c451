"""The model gateway on a real socket: wire formats, strictness, and no memory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness.standins.bench import Process, standins
from tests.harness.standins.shop import CHARGE, HTTP, ORDER, Talk, recorded
from traces.providers.turn import Message, Turn, raw_call

APIS = ("anthropic-messages", "openai-chat")
FAN_OUT = [[replace(CHARGE, args={"order_id": f"o{n}", "amount": n}) for n in range(1, 9)]]


def whole_talk(talk: Talk) -> list[Turn]:
    """The talk up to its end, with results as recorded; all turns of the model."""
    turns = [talk.hear()]
    for step in ORDER:
        talk.tell(*(done.body for done in step))
        turns.append(talk.hear())
    return turns


def bare(turn: Turn) -> Any:
    """What a turn says, without ids."""
    return turn.text, [(call.name, call.arguments) for call in turn.tool_calls], turn.stop_reason


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
def test_recording_is_spoken_in_either_wire_format(process: Process, run: str, api: str, stream: bool) -> None:
    """Whatever API the agent speaks and the trace was recorded in: the recorded words and calls."""
    process.open(run, trace=recorded(api="openai-chat"))
    turns = whole_talk(Talk(process.model, run, api, stream))
    assert [bare(turn) for turn in turns] == [
        ("Step 0.", [("charge", CHARGE.args)], "tool_use"),
        ("Step 1.", [("reserve", {"sku": "s1"})], "tool_use"),
        ("Step 2.", [("email", {"to": "a@example.org"})], "tool_use"),
        ("All done.", [], "end_turn"),
    ]
    assert all(turn.complete for turn in turns)


@pytest.mark.parametrize("api", APIS)
def test_streamed_and_plain_replies_are_the_same_turn(process: Process, run: str, api: str) -> None:
    """Ids, words, arguments and usage are equal, also in a fan-out."""
    process.open(run, trace=recorded(FAN_OUT))
    plain, streamed = Talk(process.model, run, api), Talk(process.model, run, api, stream=True)
    assert plain.turn() == streamed.turn()
    assert len(plain.turn().tool_calls) == 8
    answer = streamed.ask()
    assert answer.headers["content-type"].startswith("text/event-stream")


@pytest.mark.parametrize("api", APIS)
def test_call_ids_are_fresh_and_repeatable(process: Process, run: str, api: str) -> None:
    """The same request gets the same ids; no id returns later in the talk, nor in a run of another intent."""
    process.open(run)
    process.open(f"{run}-b", intent_id="another")
    talk, other = Talk(process.model, run, api), Talk(process.model, f"{run}-b", api)
    assert talk.turn() == talk.turn()
    ids = [call.id for turn in [*whole_talk(talk), *whole_talk(other)] for call in turn.tool_calls]
    assert len(set(ids)) == len(ids) == 6
    assert all(call_id.startswith("toolu_" if api == APIS[0] else "call_") for call_id in ids)


def test_usage_is_recorded_or_estimated(process: Process, run: str) -> None:
    """On the recording its own numbers; beyond it a quarter of the characters."""
    process.open(run, trace=recorded(ORDER[:1], final=None))
    talk = Talk(process.model, run)
    first = talk.hear()
    assert (first.input_tokens, first.output_tokens) == (100, 10)
    talk.tell(CHARGE.body)
    closing = talk.ask()
    usage = closing.json()["usage"]
    assert usage["input_tokens"] == len(closing.request.content) // 4
    assert 1 <= usage["output_tokens"] <= 20


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
def test_repair_asks_again_under_new_ids(process: Process, run: str, api: str, stream: bool) -> None:
    """A failed call is asked for again with a new id, at most three times; then the run ends in honest words."""
    process.open(run, policy="repair")
    talk = Talk(process.model, run, api, stream)
    ids = []
    for _ in range(4):
        turn = talk.hear()
        assert [call.name for call in turn.tool_calls] == ["charge"]
        ids.append(turn.tool_calls[0].id)
        talk.tell('{"error": {"kind": "timeout"}}')
    assert len(set(ids)) == 4
    end = talk.hear()
    assert (end.tool_calls, end.stop_reason) == ((), "end_turn")
    assert "charge failed" in end.text


def test_policies_after_a_failure(process: Process, run: str) -> None:
    """continue goes on as recorded, give_up closes: a flagged Anthropic result is a failure."""
    for policy, calls in (("continue", ["reserve"]), ("give_up", [])):
        process.open(f"{run}-{policy}", policy=policy)
        talk = Talk(process.model, f"{run}-{policy}")
        talk.hear()
        talk.tell(RuntimeError("the service is down"))
        assert [call.name for call in talk.hear().tool_calls] == calls


@pytest.mark.parametrize("api", APIS)
def test_cut_reply_is_said_again(process: Process, run: str, api: str) -> None:
    """After a truncation the right turn comes: for the same conversation, for one with the partial message kept, with
    a note of the user, and for a cut call that was kept and answered by a failure."""
    process.open(run)
    talk = Talk(process.model, run, api)
    talk.hear()
    talk.tell(CHARGE.body)
    expected = bare(talk.turn())
    start = list(talk.messages)
    note = Message("user", "You were cut off. Please say that again.")
    for kept in ([note], [Message("assistant", "Step"), note], [Message("assistant", "Step")]):
        talk.messages = [*start, *kept]
        assert bare(talk.turn()) == expected
    talk.messages = [*start, Message("assistant", "Step", (raw_call("cut", "reserve", '{"sku":"s"}'),))]
    talk.tell("Error: the message was cut off; nothing was done")
    assert bare(talk.turn()) == expected


@pytest.mark.parametrize("api", APIS)
def test_talk_survives_a_restart_of_the_process(tmp_path: Path, api: str) -> None:
    """A talk that is carried on with a new process hears, ids and all, what one process says."""
    talk = Talk("", "r1", api)
    turns = []
    for part in (ORDER[:2], ORDER[2:]):
        with standins(tmp_path / "state") as process:
            process.open()
            talk.url = process.model
            for step in part:
                turns.append(talk.hear())
                talk.tell(*(done.body for done in step))
            whole = whole_talk(Talk(process.model, "r1", api))
    assert turns == whole[:3]


def test_two_runs_at_once_never_meet(process: Process, run: str) -> None:
    """Two talks in turns, over different traces, each hear their own recording."""
    process.open(run)
    process.open(f"{run}-b", trace=recorded(FAN_OUT, final="Eight charged."))
    one, two = Talk(process.model, run), Talk(process.model, f"{run}-b", "openai-chat", stream=True)
    assert len(one.hear().tool_calls) == 1
    assert len(two.hear().tool_calls) == 8
    one.tell(CHARGE.body)
    two.tell(*["ok"] * 8)
    assert one.hear().tool_calls[0].name == "reserve"
    assert two.hear().text == "Eight charged."


def post(process: Process, path: str, run: str, content: Any, **headers: str) -> httpx.Response:
    """A raw request to the gateway."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return HTTP.post(f"{process.model}{path}", content=body, headers={"x-stormproof-run": run} | headers)


USER = {"role": "user", "content": "hi"}
TOOL_USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "charge", "input": {}}]}
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "charge", "arguments": "{}"}}],
}


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/v1/messages", {"model": "m", "messages": [USER]}, "max_tokens: Field required"),
        ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": []}, "at least one message"),
        ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [USER, TOOL_USE, USER]}, "`tool_use` ids were"),
        ("/v1/messages", b"{broken", "valid dictionary"),
        ("/v1/messages", b"[" * 100_000, "valid dictionary"),
        ("/v1/chat/completions", {"messages": [USER]}, "must provide a model"),
        ("/v1/chat/completions", {"model": "m", "messages": [USER, CALLED]}, "did not have response messages: a"),
        ("/v1/chat/completions", {"model": "m", "messages": [{"role": "tool", "content": "x"}]}, "tool_call_id"),
        ("/v1/chat/completions", b"", "could not parse the JSON body"),
        ("/v1/chat/completions", b'{"a":' + b"[" * 900 + b"]" * 900 + b"}", "could not parse the JSON body"),
    ],
)
def test_bad_requests_get_the_providers_own_400(process: Process, run: str, path: str, body: Any, words: str) -> None:
    """Orphaned calls, bad shapes and rubbish are refused in the provider's shape and words."""
    process.open(run)
    answer = post(process, path, run, body)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert words in answer.json()["error"]["message"]
    assert "request-id" in answer.headers or "x-request-id" in answer.headers


@pytest.mark.parametrize("levels", [900, 40_000])
def test_deep_texts_inside_a_conversation_are_texts(process: Process, run: str, levels: int) -> None:
    """Arguments and results that nest without end are read like any that are no JSON; the gateway goes on."""
    process.open(run)
    talk = Talk(process.model, run, "openai-chat")
    first = talk.hear()
    cut = raw_call(first.tool_calls[0].id, "charge", '{"a":' + "[" * levels + "]" * levels + "}")
    talk.messages[-1] = Message("assistant", first.text, (cut,))
    talk.tell('{"error":' + "[" * levels + "]" * levels + "}")
    assert talk.ask().status_code == 200
    assert process.effects(run) == []


def test_too_long_a_conversation_gets_the_providers_own_400(process: Process, run: str) -> None:
    """Past the context window, by a quarter of the characters, each provider says so in its way."""
    process.open(run)
    long = [{"role": "user", "content": "x" * 900_000}]
    anthropic = post(process, "/v1/messages", run, {"model": "m", "max_tokens": 9, "messages": long})
    openai = post(process, "/v1/chat/completions", run, {"model": "m", "messages": long})
    assert anthropic.status_code == openai.status_code == 400
    assert "prompt is too long: 2250" in anthropic.json()["error"]["message"]
    assert openai.json()["error"]["code"] == "context_length_exceeded"


def test_threads_are_refused(process: Process, run: str) -> None:
    """A client that would send only its last message is told to send the conversation."""
    process.open(run)
    body = {"model": "m", "max_tokens": 9, "messages": [USER], "thread": {"previous_message_id": "msg_1"}}
    answer = post(process, "/v1/messages", run, body)
    assert answer.status_code == 400
    assert "thread_unsupported_request" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/v1/responses", "there is no POST /v1/responses here"),
        ("/v1/messages/count_tokens", "the model gateway knows POST /v1/messages and POST /v1/chat/completions"),
        ("/chat/completions", "the base URL of the client lacks /v1"),
        ("/v1/v1/messages", "there is no POST /v1/v1/messages here"),
    ],
)
def test_unknown_endpoints_are_refused_in_words(process: Process, run: str, path: str, words: str) -> None:
    """404 as JSON that says which paths there are."""
    process.open(run)
    answer = post(process, path, run, {})
    assert answer.status_code == 404
    assert words in answer.json()["error"]["message"]


def test_refusal_speaks_the_language_of_the_client(process: Process, run: str) -> None:
    """An Anthropic client is known by its version header; other methods than POST are refused too."""
    process.open(run)
    answer = post(process, "/v1/models", run, {}, **{"anthropic-version": "2023-06-01"})
    assert (answer.status_code, answer.json()["type"]) == (404, "error")
    url, headers = f"{process.model}//v1/messages", {"x-stormproof-run": run}
    assert HTTP.get(url, headers=headers).json()["error"]["message"].startswith("there is no GET /v1/messages here")
