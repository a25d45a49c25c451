"""Both providers: what is written is read back, and a stream can be cut where it hurts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces.strategies import json_values, searched, turns
from traces.providers import (
    PROVIDERS,
    Event,
    EventReader,
    Provider,
    cut_offset,
    events,
    for_api,
    for_path,
    refragment,
    reply_bytes,
    turn_of,
)
from traces.providers.turn import (
    NORMAL_ENDS,
    Conversation,
    Message,
    ToolResult,
    Turn,
    raw_call,
    renamed,
    tool_call,
    truncated,
)

both = pytest.mark.parametrize("provider", PROVIDERS, ids=[provider.api for provider in PROVIDERS])
CHARGE = Turn(
    text="Let me charge that.",
    tool_calls=(tool_call("call_1", "charge", {"order_id": "ord-7", "amount": 1200}),),
    stop_reason="tool_use",
    input_tokens=31,
    output_tokens=12,
)


def as_read(turn: Turn) -> Turn:
    """A turn is complete where its reason to stop is a normal one."""
    return replace(turn, complete=turn.stop_reason in NORMAL_ENDS)


def streamed(provider: Provider, turn: Turn) -> bytes:
    """The body of a streamed reply."""
    return b"".join(provider.write_stream(turn, "a-model", "reply-1"))


@both
@searched
@given(turn=turns())
def test_plain_reply_reads_back(provider: Provider, turn: Turn) -> None:
    """A turn written as a plain reply is read back as it was."""
    body = json.dumps(provider.write_reply(turn, "a-model", "reply-1")).encode()
    assert provider.read_reply(200, "application/json", body) == as_read(turn)


@both
@searched
@given(turn=turns())
def test_streamed_reply_reads_back(provider: Provider, turn: Turn) -> None:
    """A turn written as a stream is read back as it was, the text of its arguments to the letter."""
    read = provider.read_reply(200, "text/event-stream; charset=utf-8", streamed(provider, turn))
    assert read == as_read(turn)
    assert [call.raw for call in read.tool_calls] == [call.raw for call in turn.tool_calls]


@both
@searched
@given(turn=turns(), data=st.data())
def test_cut_stream_is_never_complete(provider: Provider, turn: Turn, data: st.DataObject) -> None:
    """However many whole events are missing at the end, the turn that is read does not say it is complete."""
    parts = provider.write_stream(turn, "a-model", "reply-1")
    kept = data.draw(st.integers(0, len(parts) - 1))
    assert not provider.read_reply(200, "text/event-stream", b"".join(parts[:kept])).complete


@both
@searched
@given(turn=turns(), cut=st.integers(0, 10_000))
def test_events_do_not_depend_on_chunks(provider: Provider, turn: Turn, cut: int) -> None:
    """Read in one go or in two pieces, a body has the same events, and their offsets tile it."""
    body = streamed(provider, turn)
    at = cut % (len(body) + 1)
    reader = EventReader()
    pieces = reader.feed(body[:at]) + reader.feed(body[at:], last=True)
    assert pieces == events(body)
    assert [event.start for event in pieces] == [0, *(event.end for event in pieces[:-1])]
    assert pieces[-1].end == len(body)
    assert reader.rest == 0


@both
def test_cut_inside_a_number_leaves_another_number(provider: Provider) -> None:
    """The stream cut inside `1200` has delivered whole events whose argument text ends in `12`."""
    body = streamed(provider, CHARGE)
    at = cut_offset(provider, body, "number")
    assert at is not None
    assert body[:at].endswith(b"\n\n")
    read = provider.read_reply(200, "text/event-stream", body[:at])
    assert read.tool_calls[0].raw == '{"order_id":"ord-7","amount":12'
    assert not read.complete


@both
def test_cut_inside_a_string(provider: Provider) -> None:
    """The stream cut inside a string has delivered its first half."""
    body = streamed(provider, CHARGE)
    at = cut_offset(provider, body, "string", tool="charge")
    assert at is not None
    read = provider.read_reply(200, "text/event-stream", body[:at])
    assert read.tool_calls[0].raw == '{"order_id":"or'


@both
def test_cut_after_events(provider: Provider) -> None:
    """A cut after n events stands at the end of the n-th; beyond the last there is none."""
    body = streamed(provider, CHARGE)
    ends = [event.end for event in events(body)]
    assert [cut_offset(provider, body, n) for n in range(len(ends) + 2)] == [0, *ends, None]


@both
def test_no_number_is_said_so(provider: Provider) -> None:
    """Where no argument is a number that can be cut, there is no cut and no truncated turn."""
    one_digit = tool_call("call_1", "charge", {"order_id": "ord-17", "amount": 5})
    turn = replace(CHARGE, tool_calls=(one_digit,))
    assert cut_offset(provider, streamed(provider, turn), "number") is None
    assert truncated(turn) is None
    assert cut_offset(provider, streamed(provider, replace(CHARGE, tool_calls=())), "number") is None


@both
def test_other_tool_is_not_cut(provider: Provider) -> None:
    """A cut for a named tool leaves the calls of others alone."""
    first = tool_call("call_0", "reserve", {"quantity": 250})
    turn = replace(CHARGE, tool_calls=(first, *CHARGE.tool_calls))
    body = streamed(provider, turn)
    at = cut_offset(provider, body, "number", tool="charge")
    assert at is not None
    assert [call.whole for call in provider.read_reply(200, "text/event-stream", body[:at]).tool_calls] == [
        True,
        False,
    ]
    assert cut_offset(provider, body, "number", tool="ship") is None


@both
@searched
@given(turn=turns())
def test_refragment_changes_nothing_of_what_is_said(provider: Provider, turn: Turn) -> None:
    """A stream split anew says the same, and splitting it twice gives the same bytes."""
    body = streamed(provider, turn)
    again = refragment(provider, body)
    assert provider.read_reply(200, "text/event-stream", again) == as_read(turn)
    assert refragment(provider, again) == again


@both
def test_foreign_stream_can_be_cut_once_refragmented(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that brings the arguments in one piece cannot be cut inside a number; split anew, it can."""
    whole = raw_call("call_1", "charge", '{"amount": 1200}')
    turn = replace(CHARGE, tool_calls=(whole,))
    with monkeypatch.context() as patch:
        patch.setattr(provider, "pieces", lambda raw: [raw])
        body = streamed(provider, turn)
    assert provider.read_reply(200, "text/event-stream", body).tool_calls[0].arguments == {"amount": 1200}
    assert cut_offset(provider, body, "number") is None
    again = refragment(provider, body)
    at = cut_offset(provider, again, "number")
    assert at is not None
    assert provider.read_reply(200, "text/event-stream", again[:at]).tool_calls[0].raw == '{"amount": 12'


@both
def test_truncated_turn(provider: Provider) -> None:
    """A turn truncated by the output limit keeps a cut call and says why it ended, plain and streamed."""
    cut = truncated(CHARGE)
    assert cut is not None
    plain = provider.read_reply(200, "application/json", json.dumps(provider.write_reply(cut, "m", "r")).encode())
    stream = provider.read_reply(200, "text/event-stream", streamed(provider, cut))
    for read in (plain, stream):
        assert read.stop_reason == "max_tokens"
        assert not read.complete
    assert stream.tool_calls[0].raw == '{"order_id":"ord-7","amount":12'


@both
def test_renamed_turn(provider: Provider) -> None:
    """A call made to an unknown tool keeps its id and arguments."""
    other = renamed(CHARGE, "charge_v2")
    assert other is not None
    read = provider.read_reply(200, "text/event-stream", streamed(provider, other))
    assert [(call.id, call.name) for call in read.tool_calls] == [("call_1", "charge_v2")]
    assert read.tool_calls[0].arguments == CHARGE.tool_calls[0].arguments
    assert renamed(CHARGE, "x", tool="ship") is None


@both
def test_terminal_event(provider: Provider) -> None:
    """The last event of a whole stream is its terminal one, and no earlier is."""
    told = [provider.is_terminal(event) for event in events(streamed(provider, CHARGE))]
    assert told[-1]
    assert not any(told[:-1])


@both
def test_errors_are_no_turn(provider: Provider) -> None:
    """An error status, garbage and an empty body are read as turns that nobody may act on."""
    body, _ = provider.error_body(provider.overloaded_status, "Overloaded")
    broken = streamed(provider, CHARGE)[:200] + provider.stream_error(provider.overloaded_status, "Overloaded")
    assert not provider.read_reply(provider.overloaded_status, "application/json", json.dumps(body).encode()).complete
    assert not provider.read_reply(200, "text/event-stream", broken).complete
    for garbage in (b"", b"{", b"[]", b"{}", b"\xff"):
        assert not provider.read_reply(200, "application/json", garbage).complete


@both
@searched
@given(turn=turns(), data=st.data())
def test_no_body_makes_a_reader_fail(provider: Provider, turn: Turn, data: st.DataObject) -> None:
    """Whatever a fault or a strange server puts in the place of a part of a reply, reading does not raise."""
    reply = provider.write_reply(turn, "a-model", "reply-1")
    mutilated = data.draw(_mutilated(reply))
    assert isinstance(provider.read_reply(200, "application/json", json.dumps(mutilated).encode()), Turn)
    heard = events(streamed(provider, turn))
    at = data.draw(st.integers(0, len(heard) - 1))
    other = b"data: " + json.dumps(data.draw(_mutilated(heard[at].json()))).encode() + b"\n\n"
    body = streamed(provider, turn)
    body = body[: heard[at].start] + other + body[heard[at].end :]
    assert isinstance(provider.read_reply(200, "text/event-stream", body), Turn)
    cut_offset(provider, body)
    provider.fragments(events(body))


@both
@searched
@given(turn=turns(), data=st.data())
def test_no_request_makes_a_check_fail(provider: Provider, turn: Turn, data: st.DataObject) -> None:
    """Whatever stands in the place of a part of a request, it is refused or read, without an exception."""
    results = Message("user", tool_results=tuple(ToolResult(call.id, "ok") for call in turn.tool_calls))
    said = Message("assistant", turn.text or "So.", turn.tool_calls)
    messages = (Message("user", "Do it."), said, *([results] if turn.tool_calls else []))
    tools = tuple(
        {"name": call.name, "description": "", "input_schema": {"type": "object"}} for call in turn.tool_calls
    )
    good = provider.write_request(Conversation(messages, tools, stream=True, model="m", max_tokens=9))
    body = data.draw(_mutilated(good))
    if provider.check_request(body) is None:
        provider.read_request(body)


@st.composite
def _mutilated(draw: st.DrawFn, value: Any) -> Any:
    """The value with one part of it, at any depth, replaced by something else or gone."""
    if isinstance(value, (dict, list)) and value and draw(st.integers(0, 5)):
        copy: Any = dict(value) if isinstance(value, dict) else list(value)
        key = draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
        if draw(st.integers(0, 3)):
            copy[key] = draw(_mutilated(value[key]))
        else:
            del copy[key]
        return copy
    return draw(json_values)


@both
def test_recorded_reply_is_read(provider: Provider) -> None:
    """The response of a recorded exchange, plain or as events, gives the turn and the same bytes again."""
    body = streamed(provider, CHARGE)
    listed = [{"t": 0.1, "event": event.name, "data": _data(event)} for event in events(body)]
    assert reply_bytes({"status": 200, "events": listed}) == (200, "text/event-stream", body)
    assert turn_of(provider, {"status": 200, "events": listed}) == CHARGE
    assert turn_of(provider, {"status": 200, "body": provider.write_reply(CHARGE, "m", "r")}) == CHARGE


def _data(event: Event) -> object:
    data = event.json()
    return event.data if data is None else data


@both
def test_found_by_path_and_name(provider: Provider) -> None:
    """A provider is found by its endpoint, with or without prefix, version and query, and by its name in traces."""
    for path in (provider.path, f"/proxy{provider.path}?beta=true", provider.path.removeprefix("/v1")):
        assert for_path(path) is provider
    assert for_path("/v1/embeddings") is None
    assert for_path("/v1/threads/thread_1/messages") is None
    assert for_path("/v1/messages/count_tokens") is None
    assert for_api(provider.api) is provider
    assert for_api("carrier-pigeon") is None
