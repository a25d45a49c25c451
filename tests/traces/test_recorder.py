"""The recorder: what crosses the boundary becomes a trace."""

from __future__ import annotations

import json

import pytest

from traces.mask import find_secrets
from traces.providers import PROVIDERS, Provider, reply_bytes
from traces.providers.turn import Conversation, Message, Turn, tool_call
from traces.recorder import Chunk, Recorder, model_exchange, tool_exchange
from traces.trace import dump_trace, parse_trace

both = pytest.mark.parametrize("provider", PROVIDERS, ids=[provider.api for provider in PROVIDERS])
TOOLS = ({"name": "charge", "description": "Charges.", "input_schema": {"type": "object"}},)
TURN = Turn("Now.", (tool_call("call_1", "charge", {"amount": 1200}),), "tool_use", 5, 6)


def asked(provider: Provider, *, stream: bool = False) -> bytes:
    """The body of a request."""
    talk = Conversation((Message("user", "Charge it."),), TOOLS, stream, "a-model", 99, stream)
    return json.dumps(provider.write_request(talk)).encode()


@both
def test_stream_keeps_the_offsets_of_its_chunks(provider: Provider) -> None:
    """Each event of a stream has the offset of the chunk that completed it, however the bytes were cut."""
    body = b"".join(provider.write_stream(TURN, "a-model", "r-1"))
    half = len(body) // 2
    exchange = model_exchange(
        provider.path,
        asked(provider, stream=True),
        status=200,
        content_type="text/event-stream",
        chunks=[Chunk(0.2, body[:half]), Chunk(0.7, body[half:])],
        t_start=100.0,
        t_end=100.7,
    )
    assert {event["t"] for event in exchange.response["events"]} == {0.2, 0.7}
    assert reply_bytes(exchange.response) == (200, "text/event-stream", body)
    assert exchange.turn() == TURN


@both
def test_cut_stream_stays_cut(provider: Provider) -> None:
    """A recorded stream that broke off within an event is replayed to the byte."""
    body = b"".join(provider.write_stream(TURN, "a-model", "r-1"))[:-20]
    exchange = model_exchange(
        provider.path,
        asked(provider),
        status=200,
        content_type="text/event-stream",
        chunks=[Chunk(0.2, body)],
        t_start=0.0,
        t_end=0.7,
    )
    assert reply_bytes(exchange.response)[2] == body
    assert not exchange.turn().complete


@both
def test_run_becomes_a_trace(provider: Provider) -> None:
    """Request and tools are the first model call's; exchanges stand by start, times from zero; all is masked."""
    recorder = Recorder("order-x", task_type="order", tenant="a", limits={"steps": 4}, mask_key=b"k")
    reply = json.dumps(provider.write_reply(TURN, "a-model", "r-1")).encode()
    headers = {"Authorization": "Bearer abc123456", "Idempotency-Key": "k-1", "User-Agent": "me"}
    recorder.observe(
        tool_exchange(
            "charge", {"to": "mia@gmail.com"}, headers=headers, status=200, body={"id": 1}, t_start=101.5, t_end=102.0
        )
    )
    recorder.observe(
        model_exchange(
            provider.path,
            asked(provider),
            status=200,
            content_type="application/json",
            chunks=[Chunk(0.4, reply)],
            t_start=101.0,
            t_end=101.4,
        )
    )
    trace = recorder.finish()
    assert (trace.request, trace.tools, trace.masked) == ("Charge it.", TOOLS, True)
    assert [(e.n, e.channel, e.t_start, e.t_end) for e in trace.exchanges] == [
        (1, "model", 0.0, 0.4),
        (2, "tool", 0.5, 1.0),
    ]
    assert trace.turns == (TURN,)
    assert trace.tool_exchanges[0].request["headers"] == {"Idempotency-Key": "k-1"}
    assert trace.tool_exchanges[0].arguments["to"].endswith("@example.com")
    assert find_secrets(trace) == []
    assert parse_trace(dump_trace(trace)) == trace


def test_unknown_endpoint_and_body_are_refused() -> None:
    """What is no known model API is not recorded as something else."""
    chunks = [Chunk(0.1, b"{}")]
    with pytest.raises(ValueError, match="no known model API"):
        model_exchange(
            "/v1/embeddings", b"{}", status=200, content_type="application/json", chunks=chunks, t_start=0, t_end=1
        )
    with pytest.raises(ValueError, match="no JSON object"):
        model_exchange(
            "/v1/messages", b"hello", status=400, content_type="application/json", chunks=chunks, t_start=0, t_end=1
        )


def test_empty_run() -> None:
    """A run in which nothing crossed is a trace without exchanges."""
    trace = Recorder("nothing", request="Do nothing.").finish()
    assert (trace.request, trace.exchanges, trace.masked) == ("Do nothing.", (), True)
