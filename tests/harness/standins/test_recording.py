"""A trace as the stand-ins read it."""

from __future__ import annotations

import gc
import json
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import yaml

from harness.standins.conversation import POLICIES, next_reply
from harness.standins.recording import Answer, Recordings, recording_of
from tests.harness.standins.shop import CHARGE, EMAIL, ORDER, REGISTRY, Done, recorded
from traces.importers.tau_bench import WRITES, TauBench
from traces.providers.turn import Message, ToolResult
from traces.registry import Registry
from traces.registry_reading import registry_from
from traces.trace import Exchange, Trace, read_trace, write_trace

SHOP = registry_from(REGISTRY)
ROOT = Path(__file__).parents[3]
BUNDLED = ROOT / "traces" / "recorded"
REAL = ROOT.parent / "shared" / "real-traces" / "tau-bench" / "gpt-4o-airline.json"


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


def test_recorded_failure_that_the_model_was_told_in_other_words() -> None:
    """A refusal by the tool is a recorded failure, whatever the recorded agent made of it for the model."""
    declined = Done("charge", CHARGE.args, "the card was refused", 402)
    for told_as_error in (declined, replace(declined, status=200)):
        turns = recording_of(recorded([[told_as_error]], api="openai-chat"), SHOP).turns
        assert turns[0].failed == (told_as_error is declined,)


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


def test_empty_message_is_no_turn() -> None:
    """A recording that ends with a message that says nothing ends before it."""
    assert len(recording_of(recorded(final=""), SHOP).turns) == 3


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


@cache
def bundled_registry() -> Registry:
    """The registry of the bundled traces."""
    return registry_from(yaml.safe_load((BUNDLED / "tools.yaml").read_text()))


def heard(trace: Trace, registry: Registry, policy: str) -> list[str]:
    """The places of a recording that an agent hears which executes every call and tries refused ones again."""
    recording = recording_of(trace, registry)
    messages = [Message("user", trace.request)]
    asked: Counter[tuple[str, str]] = Counter()
    places: list[str] = []
    while len(places) <= len(recording.turns):
        reply = next_reply(recording.turns, messages, policy)
        places.append(reply.place)
        calls = tuple(replace(call, id=f"{len(places)}-{n}") for n, call in enumerate(reply.turn.tool_calls))
        messages.append(Message("assistant", reply.turn.text, calls))
        results = []
        for call in calls:
            key = (call.name, registry.tools[call.name].args_digest(call.arguments))
            asked[key] += 1
            answer = recording.calls(*key, asked[key])[-1]
            results.append(ToolResult(call.id, json.dumps(answer.body), not answer.ok))
        messages.append(Message("tool", tool_results=tuple(results)))
    return places


def whole(trace: Trace, registry: Registry) -> list[str]:
    """The places of all turns of a recording, and its end."""
    return [*(f"turn {n}" for n in range(len(recording_of(trace, registry).turns))), "end"]


@pytest.mark.parametrize("path", sorted(BUNDLED.glob("*.jsonl")), ids=lambda path: path.stem)
@pytest.mark.parametrize("policy", POLICIES)
def test_bundled_traces_are_heard_to_the_end(path: Path, policy: str) -> None:
    """Every bundled trace, also one with recorded failures, is on the recording from its first turn to its last."""
    registry = bundled_registry()
    trace = read_trace(path)
    assert heard(trace, registry, policy) == whole(trace, registry)


def test_real_runs_are_heard_to_the_end(tmp_path: Path) -> None:
    """The same for recorded runs of tau-bench, with their failed calls, equal calls and repeated call ids."""
    if not REAL.exists():
        pytest.skip(f"needs {REAL}, which is no part of this repository")
    some = tmp_path / REAL.name
    some.write_text(json.dumps(json.loads(REAL.read_text())[::8]))
    for trace in TauBench().read(some).traces:
        writes = {"idempotency": "keyed", "severity": "internal", "avoid": True}
        reads = {"idempotency": "natural"}
        names = [tool["name"] for tool in trace.tools]
        registry = registry_from({name: writes if name in WRITES else reads for name in names})
        assert heard(trace, registry, "repair") == whole(trace, registry), trace.name
