"""A trace as the stand-ins read it."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

import pytest

from harness.standins.recording import Answer, Recordings, recording_of
from tests.harness.standins.shop import CHARGE, EMAIL, ORDER, REGISTRY, Done, recorded
from traces.registry import registry_from
from traces.trace import Exchange, Trace, write_trace

SHOP = registry_from(REGISTRY)


def charges(trace: Trace, **args: object) -> tuple[tuple[int, ...], ...]:
    """The recorded answers to the usual charge: statuses, attempt by attempt, call by call."""
    recording = recording_of(trace, SHOP)
    digest = SHOP.tools["charge"].args_digest(CHARGE.args | args)
    return tuple(tuple(a.status for a in call) for call in recording.answers.get(("charge", digest), ()))


@pytest.mark.parametrize("api", ["anthropic-messages", "openai-chat"])
def test_turns_are_read_from_either_provider(api: str) -> None:
    """The turns are the model's words in order, and say of each call that nothing failed."""
    turns = recording_of(recorded(api=api), SHOP).turns
    assert [[call.name for call in turn.turn.tool_calls] for turn in turns] == [
        ["charge"],
        ["reserve"],
        ["email"],
        [],
    ]
    assert [turn.failed for turn in turns] == [(False,), (False,), (False,), ()]


@pytest.mark.parametrize("api", ["anthropic-messages", "openai-chat"])
def test_recorded_failure_is_known_from_what_the_model_was_told(api: str) -> None:
    """A flagged result, or one that says error in words, is a recorded failure of that call and of no other."""
    declined = Done("charge", CHARGE.args, {"error": {"kind": "declined"}}, 402)
    turns = recording_of(recorded([[EMAIL, declined]], api=api), SHOP).turns
    assert turns[0].failed == (False, True)


def test_failure_of_the_last_turn_is_known_from_the_tool() -> None:
    """Where the model never heard the result, the tool's own answer says whether it failed."""
    trace = recorded([[Done("charge", CHARGE.args, {"error": "x"}, 500)]], final=None)
    assert recording_of(trace, SHOP).turns[0].failed == (True,)


def test_equal_calls_have_answers_of_their_own() -> None:
    """Two equal calls of the model get the two recorded answers in order; a third gets the last."""
    second = replace(CHARGE, body={"charge_id": "ch_2"})
    recording = recording_of(recorded([[CHARGE], [second]]), SHOP)
    digest = SHOP.tools["charge"].args_digest(CHARGE.args)
    found = [recording.answer("charge", digest, call=n) for n in (1, 2, 3)]
    assert [answer.body["charge_id"] for answer in found if answer] == ["ch_1", "ch_2", "ch_2"]
    assert recording.answer("charge", "unheard of") is None


def test_noise_in_the_arguments_does_not_hide_the_recording() -> None:
    """Dropped fields, blanks and a key in the body are no part of a call's meaning."""
    recording = recording_of(recorded(), SHOP)
    charge, reserve = SHOP.tools["charge"], SHOP.tools["reserve"]
    noisy = charge.args_digest({"order_id": " o1 ", "amount": 1200.0, "trace_id": "z"})
    assert recording.answer("charge", noisy) is not None
    assert recording.answer("reserve", reserve.args_digest({"sku": "s1", "request_id": "r-77"})) is not None


def test_retries_of_the_recorded_agent_are_attempts_of_one_call() -> None:
    """More requests than the model asked for: those after a retryable answer are attempts of the call before."""
    trace = recorded()
    n = next(i for i, e in enumerate(trace.exchanges) if e.channel == "tool")
    busy = replace(trace.exchanges[n], response={"status": 503, "body": {"error": {"kind": "busy"}}})
    retried = replace(trace, exchanges=(*trace.exchanges[:n], busy, *trace.exchanges[n:]))
    assert charges(retried) == ((503, 200),)
    asked_twice = recorded([[Done("charge", CHARGE.args, {}, 503)], [CHARGE]])
    assert charges(asked_twice) == ((503,), (200,))


def test_repeated_model_request_is_one_turn() -> None:
    """A conversation that was sent again (refused, cut, or simply retried) counts once, with its last whole reply."""
    trace = recorded()
    first = trace.exchanges[0]
    refused = replace(first, response={"status": 529, "body": {"type": "error"}})
    cut = replace(first, response={"status": 200, "events": [{"t": 0.0, "event": "ping", "data": {"type": "ping"}}]})
    more: tuple[Exchange, ...] = (refused, cut, first, *trace.exchanges)
    assert len(recording_of(replace(trace, exchanges=more), SHOP).turns) == 4


def test_tool_that_the_registry_lacks_has_no_answers() -> None:
    """What cannot be called is not kept."""
    recording = recording_of(recorded([[Done("mystery", {}, {})]]), SHOP)
    assert recording.answers == {}
    assert Answer(404, None).ok is False


def test_one_file_is_read_once_and_let_go(tmp_path: Path) -> None:
    """Runs of one trace share it; a changed file or registry is read anew; what no run holds is gone."""
    path = tmp_path / "order.jsonl"
    write_trace(recorded(), path)
    held = Recordings()
    first = held.get(str(path), REGISTRY)
    assert held.get(str(path), REGISTRY) is first
    assert held.get(str(path), {"email": REGISTRY["email"]}) is not first
    write_trace(recorded(ORDER[:1]), path)
    assert len(held.get(str(path), REGISTRY).turns) == 2
    del first
    gc.collect()
    assert len(held) == 0
