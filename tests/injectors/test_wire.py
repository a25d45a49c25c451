"""The wire's view of a run, without a wire: crossings in, records out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from injectors.core import Reply, Request
from injectors.wire import Exchange, Wire, retry_after
from traces.digest import args_digest
from traces.json_bodies import DEEPEST
from traces.providers import for_api
from traces.providers.sse import json_bytes
from traces.providers.turn import Turn, tool_call
from traces.registry_reading import registry_from

REGISTRY = registry_from(
    {
        "charge": {
            "version": 3,
            "match": {"method": "POST", "path": "/tools/charge"},
            "idempotency": "keyed",
            "key": {"json": "$.request_id"},
            "intent": {"json": ["$.order", "$.cents"]},
            "severity": "money",
            "resource_group": "payments",
            "avoid": True,
        },
        "look_up": {"match": {"method": "GET", "path": "/tools/look_up"}, "idempotency": "natural"},
    }
)
ARGS = {"order": "o-1", "cents": 1200}


def wire() -> Wire:
    """A run without anything in it."""
    return Wire(run_id="r", registry=REGISTRY, intent_id="intent")


def charge(**headers: str) -> Request:
    """A request to charge, with a key in its body."""
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Request("POST", "/tools/charge", json_bytes(ARGS | {"request_id": "k-1"}), named, tool="charge")


def reply(status: int, body: Any = None, **headers: str) -> Reply:
    """An answer in JSON."""
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Reply(status, (("content-type", "application/json"), *named), json_bytes(body))


def finished(answer: Reply, *, broken: bool = False) -> dict[str, Any]:
    """The finish that a charge with this answer gets."""
    run = wire()
    exchange = run.meet(charge(), wire="w1", t=1.0)
    run.started(exchange)
    run.answered(exchange, answer, 2.0, broken=broken)
    assert [record["type"] for record in run.records] == ["tool_call_started", "tool_call_finished"]
    return run.records[1]


def test_a_tool_call_has_everything_that_can_be_known() -> None:
    """Tool, version, digests, key, group, intent, step, deadline, arguments."""
    run = wire()
    exchange = run.meet(charge(x_step="4", x_attempt_id="a-1", x_agent_deadline_ms="2500"), wire="w1", t=10.0)
    run.started(exchange)
    assert run.records == [
        {
            "type": "tool_call_started",
            "t": 10.0,
            "run_id": "r",
            "source": "wire",
            "tool": "charge",
            "tool_version": "3",
            "attempt_id": "a-1",
            "wire": "w1",
            "step": 4,
            "attempt": 1,
            "idempotency_key": "k-1",
            "intent_id": "intent",
            "args_digest": args_digest(ARGS),
            "intent_digest": args_digest(ARGS),
            "resource_group": "payments",
            "effectful": True,
            "deadline_remaining_s": 2.5,
            "args": ARGS | {"request_id": "k-1"},
        }
    ]


def test_attempt_ids_are_unique() -> None:
    """An id the agent uses twice is replaced by the wire's own the second time."""
    run = wire()
    ids = [run.meet(charge(x_attempt_id="a"), wire=f"w{n}", t=1.0).common["attempt_id"] for n in (1, 2)]
    assert ids == ["a", "w2"]


def test_a_second_equal_call_has_an_intent_of_its_own() -> None:
    """Of two equal gifts the second gets its ordinal in the intent, the third attempt shares that."""
    run = wire()
    hear(run, Turn(tool_calls=(tool_call("1", "gift", {"to": "a"}), tool_call("2", "gift", {"to": "a"}))))
    intents = []
    for key in ("k1", "k2", "k3"):
        request = Request("POST", "/tools/gift", b'{"to":"a"}', (("idempotency-key", key),), tool="gift")
        intents.append(run.meet(request, wire=key, t=5.0).common["intent_id"])
    assert intents == ["intent", "intent#2", "intent#2"]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (reply(200, {}), "ok"),
        (reply(202, {}), "ok"),
        (reply(200, {}, idempotent_replayed="true"), "deduplicated"),
        (reply(400, {}), "rejected"),
        (reply(422, {"error": {"kind": "key_reused", "retryable": False}}), "rejected"),
        (reply(409, {"error": {"kind": "in_flight", "retryable": True}}), "error"),
        (reply(429, {}), "error"),
        (reply(500, {}), "error"),
        (Reply(502, (("content-type", "text/html"),), b"<html>"), "error"),
    ],
)
def test_outcomes_are_what_the_agent_can_see(answer: Reply, outcome: str) -> None:
    """Status, replay header and the body's own word on a retry decide."""
    assert finished(answer)["outcome"] == outcome


def test_error_fields_come_from_the_body() -> None:
    """What the body says stands in the record; fields of a wrong type are left out; a page is named by its status."""
    said = {"kind": "busy", "message": "m", "retryable": True, "retry_after_s": 2, "may_have_taken_effect": "no"}
    record = finished(reply(503, {"error": said}, retry_after="3"))
    assert record["error"] == {"kind": "busy", "message": "m", "retryable": True, "retry_after_s": 2}
    assert record["retry_after_s"] == 3
    assert finished(Reply(502, (), b"<html>"))["error"] == {"kind": "http_502"}
    assert finished(Reply(502, (), b"\xff\xfe"))["error"] == {"kind": "http_502"}


def test_a_broken_answer_is_unknown() -> None:
    """The head was there, the rest is not: nobody knows."""
    record = finished(reply(200, {}), broken=True)
    assert (record["outcome"], record["http_status"]) == ("unknown", 200)


def test_an_end_is_told_once() -> None:
    """The first end counts; a call that never started gets its start told with its end."""
    run = wire()
    exchange = run.meet(charge(), wire="w1", t=1.0)
    run.lost(exchange, "timeout", 3.0)
    run.lost(exchange, "unknown", 4.0)
    run.answered(exchange, reply(200, {}), 5.0)
    assert [(record["type"], record["t"]) for record in run.records] == [
        ("tool_call_started", 1.0),
        ("tool_call_finished", 3.0),
    ]


def test_a_tool_that_nobody_declared_is_on_record_too() -> None:
    """Without a registry entry: no effect is claimed, the key is read from the usual header."""
    run = wire()
    request = Request("POST", "/tools/x", b"not json", (("idempotency-key", "k"),), tool="x")
    fields = run.meet(request, wire="w1", t=1.0)
    assert (fields.start["effectful"], fields.start["args"]) == (False, "not json")
    assert fields.common["idempotency_key"] == "k"


def test_a_query_is_arguments_too() -> None:
    """A read without a body is told by its query."""
    request = Request("GET", "/tools/look_up?id=7", tool="look_up")
    assert wire().meet(request, wire="w1", t=1.0).start["args"] == {"id": "7"}


def hear(run: Wire, turn: Turn, *, broken: bool = False, body: bytes = b"{}") -> Exchange:
    """One model call that is answered with this turn."""
    provider = for_api("anthropic-messages")
    assert provider is not None
    request = Request("POST", "/v1/messages", body, api="anthropic-messages")
    exchange = run.meet(request, wire="m", t=1.0)
    run.started(exchange)
    run.answered(exchange, reply(200, provider.write_reply(turn, "m", "id")), 2.0, broken=broken)
    return exchange


ORDER = Turn(tool_calls=(tool_call("1", "charge", ARGS),), stop_reason="tool_use", input_tokens=9, output_tokens=4)


def test_the_model_is_heard() -> None:
    """Tokens, outcome and each tool call, at the same instant."""
    run = wire()
    hear(run, ORDER)
    assert [record["type"] for record in run.records] == [
        "model_call_started",
        "model_call_finished",
        "model_tool_call",
    ]
    ended, said = run.records[1:]
    assert (ended["outcome"], ended["input_tokens"], ended["output_tokens"], ended["step"]) == ("ok", 9, 4, 1)
    assert (said["tool"], said["complete"], said["args"], said["step"]) == ("charge", True, ARGS, 1)
    assert said["intent_digest"] == args_digest(ARGS)


def test_a_repeated_answer_asks_for_nothing_new() -> None:
    """The same request answered twice, as after a restart, has asked for one charge."""
    run = wire()
    for _ in range(2):
        hear(run, ORDER)
    places = [run.meet(charge(), wire=f"w{n}", t=3.0).place for n in (1, 2)]
    assert [(place.call, place.attempt) for place in places] == [(1, 1), (1, 2)]


def test_an_incomplete_message_asks_for_nothing() -> None:
    """What a cut message asks for is on record as incomplete; executing it is a call that nobody planned."""
    run = wire()
    cut = Turn(tool_calls=ORDER.tool_calls, stop_reason="max_tokens", complete=False)
    hear(run, cut)
    assert [record["complete"] for record in run.records if record["type"] == "model_tool_call"] == [False]
    assert run.records[1]["outcome"] == "truncated"
    exchange = run.meet(charge(), wire="w1", t=3.0)
    assert exchange.attempt is not None
    assert exchange.attempt.call.turn is None


def test_a_tool_call_has_the_step_of_the_turn_that_asked_for_it() -> None:
    """Without a word of the agent's own, the number of the model call is the step."""
    run = wire()
    hear(run, ORDER)
    hear(run, Turn(text="done"), body=b"{ }")
    assert run.meet(charge(), wire="w1", t=3.0).common["step"] == 1


def test_asking_for_an_outcome_is_a_mechanism() -> None:
    """A status query is on record under its name, with tool and key."""
    run = wire()
    run.asked_for_outcome("charge", "k", 1.0)
    run.asked_for_outcome("charge", "", 2.0)
    assert [record.get("idempotency_key") for record in run.records] == ["k", None]
    assert {record["name"] for record in run.records} == {"outcome_query"}


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("3", 3.0),
        ("0", 0.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0),
        ("Thu, 01 Jan 1970 00:00:01 GMT", 0.0),
        ("soon", None),
        ("-1", None),
        ("", None),
    ],
)
def test_retry_after_is_seconds_a_date_or_nothing(said: str, seconds: float | None) -> None:
    """Both forms of RFC 9110 are read; garbage is none."""
    assert retry_after(Reply(429, (("retry-after", said),)), 10.0) == seconds


# ------------------------------------------------------------------------------------------- whatever agents send

HOSTILE = {
    "far too deep": b"[" * 100_000,
    "too deep for digests": b'{"order":' + b"[" * 900 + b"]" * 900 + b"}",
    "lone surrogate": b'{"order":"\\ud800"}',
    "no UTF-8": b"\xff\xfe",
    "no number": b'{"cents":1e999}',
    "endless number": b"9" * 5000,
    "empty": b"",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_body_breaks_the_wire(body: bytes) -> None:
    """What cannot be decoded is a text, as an argument and in an error; both calls are on record as ever."""
    run = wire()
    exchange = run.meet(Request("POST", "/tools/charge", body, (), tool="charge"), wire="w1", t=1.0)
    run.started(exchange)
    run.answered(exchange, Reply(500, (), body), 2.0)
    assert [record["type"] for record in run.records] == ["tool_call_started", "tool_call_finished"]
    assert run.records[0]["args"] == (body.decode("utf-8", "replace") if body else {})
    assert run.records[1]["error"] == {"kind": "http_500"}
    msgspec.json.encode(run.records)


def test_arguments_nested_as_deep_as_is_read_are_arguments() -> None:
    """The limit is where it is said to be."""
    body = b"[" * DEEPEST + b"]" * DEEPEST
    run = wire()
    run.started(run.meet(Request("POST", "/tools/charge", body, (), tool="charge"), wire="w1", t=1.0))
    assert run.records[0]["args"] == msgspec.json.decode(body)


NAMES = st.sampled_from(
    ["x-step", "x-attempt-id", "x-agent-deadline-ms", "x-intent-id", "idempotency-key", "retry-after", "content-type"]
)
TEXTS = st.one_of(
    st.text(st.characters(max_codepoint=255), max_size=8),
    st.sampled_from(
        ["9" * 5000, "nan", "-inf", "1e999", "\xb2", "Thu, 01 Jan 0001 00:00:00 -2359", "application/json"]
    ),
)
JSONS = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["order", "cents", "request_id"]), inner)
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(
    body=st.binary(max_size=8) | JSONS.map(msgspec.json.encode),
    headers=st.lists(st.tuples(NAMES, TEXTS), max_size=4),
    status=st.integers(200, 599),
    tool=st.sampled_from(["charge", "look_up", "nobody"]),
)
def test_no_call_breaks_the_wire(body: bytes, headers: list[tuple[str, str]], status: int, tool: str) -> None:
    """Any body and any headers, as a call and as an answer, come on record as lines of JSON."""
    run = wire()
    exchange = run.meet(Request("POST", f"/tools/{tool}?a=b", body, tuple(headers), tool=tool), wire="w1", t=1.0)
    run.started(exchange)
    run.answered(exchange, Reply(status, tuple(headers), body), 2.0)
    assert len(msgspec.json.decode(msgspec.json.encode(run.records))) == 2
