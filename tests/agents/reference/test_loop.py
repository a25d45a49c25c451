"""Whole runs of the reference agent against a small world with real sockets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.reference.__main__ import run
from agents.reference.clock import SystemClock
from agents.reference.outcome import Outcome
from tests.agents.fake_model import Says
from tests.agents.fake_shop import CHARGE, EMAIL, ORDER, REGISTRY, RESERVE, SHIP
from tests.agents.fake_world import Fault, World, events, world

BOTH_APIS = [(api, stream) for api in ("anthropic-messages", "openai-chat") for stream in (False, True)]
DROP = Fault("drop")


def play(there: World, folder: Path, **task: Any) -> Outcome:
    """One run of the reference agent."""
    return run(there.environment(folder, **task), SystemClock())


def kinds(folder: Path, kind: str) -> list[dict[str, Any]]:
    """The agent's events of one type."""
    return [event for event in events(folder) if event["type"] == kind]


def acted(folder: Path, name: str) -> list[dict[str, Any]]:
    """The grounds on which a mechanism acted."""
    return [event["grounds"] for event in kinds(folder, "mechanism_acted") if event["name"] == name]


@pytest.mark.parametrize(("api", "stream"), BOTH_APIS)
def test_a_clean_run_does_each_thing_once(tmp_path: Path, api: str, stream: bool) -> None:
    """Over either API, plain or streamed: four effects, nothing repeated, succeeded, and each call written ahead."""
    with world(ORDER) as there:
        outcome = play(there, tmp_path, api=api, stream=stream)
    assert (outcome.status, outcome.completed, outcome.answer) == ("succeeded", (1, 2, 3, 4), "All done.")
    assert there.standing() == ["charge", "reserve", "ship", "email"]
    assert len(acted(tmp_path, "write_ahead")) == 4
    assert [event["outcome"] for event in kinds(tmp_path, "tool_call_finished")] == ["ok"] * 4


@pytest.mark.parametrize(
    "fault", [DROP, Fault("hang"), Fault("status_after"), Fault("garbage"), Fault("late", wait_s=0.8)]
)
def test_a_lost_result_of_a_keyed_write_is_asked_for(tmp_path: Path, fault: Fault) -> None:
    """However the reply was lost: the state is asked for by key, and nothing is sent a second time."""
    with world(ORDER) as there:
        there.faults["charge"] = [fault]
        outcome = play(there, tmp_path)
    assert outcome.status == "succeeded"
    assert (len(there.calls("charge")), len(there.questions("charge")) >= 1) == (1, True)
    assert acted(tmp_path, "outcome_query")[-1]["state"] == "applied"


@pytest.mark.parametrize("fault", [Fault("lose"), Fault("hang_before"), Fault("status"), Fault("status", 503)])
def test_a_write_that_never_happened_is_repeated_with_its_key(tmp_path: Path, fault: Fault) -> None:
    """The service knows nothing of the key: the same call goes out again, same key, new attempt id."""
    with world(ORDER) as there:
        there.faults["charge"] = [fault]
        outcome = play(there, tmp_path)
    first, second = (seen.headers for seen in there.calls("charge"))
    assert outcome.status == "succeeded"
    assert first["idempotency-key"] == second["idempotency-key"]
    assert first["x-attempt-id"] != second["x-attempt-id"]
    assert first["x-step"] == second["x-step"] == "1"
    assert int(first["x-agent-deadline-ms"]) > int(second["x-agent-deadline-ms"])
    assert len(kinds(tmp_path, "retry_scheduled")) == 1


def test_without_a_status_route_the_key_alone_prevents_a_second_effect(tmp_path: Path) -> None:
    """A service that answers no questions still collapses by key, and its word for that is passed on."""
    with world(ORDER) as there:
        there.answers_status = False
        there.faults["charge"] = [DROP]
        outcome = play(there, tmp_path)
    assert outcome.status == "succeeded"
    assert [effect.tool for effect in there.effects].count("charge") == 1
    assert kinds(tmp_path, "tool_call_finished")[1]["outcome"] == "deduplicated"


def test_the_stated_wait_is_kept(tmp_path: Path) -> None:
    """After 429 with Retry-After the next attempt comes no earlier than stated."""
    with world(ORDER) as there:
        there.faults["charge"] = [Fault("status", 429, {"Retry-After": "1"})]
        outcome = play(there, tmp_path)
    first, second = there.calls("charge")
    assert outcome.status == "succeeded"
    assert second.at - first.at >= 1.0
    assert kinds(tmp_path, "retry_scheduled")[0]["server_directed"] is True
    assert there.questions("charge") == []


def test_a_wait_past_the_deadline_is_not_begun(tmp_path: Path) -> None:
    """Retry-After beyond the run's time: no waiting, no further attempt, and nothing stands."""
    with world(ORDER) as there:
        there.faults["reserve"] = [Fault("status", 429, {"Retry-After": "90"})]
        outcome = play(there, tmp_path)
    assert len(there.calls("reserve")) == 1
    assert outcome.status == "rolled_back"
    assert there.standing() == []
    assert kinds(tmp_path, "tool_call_refused")[0]["reason"] == "budget"


def test_a_grave_step_that_fails_for_good_undoes_the_rest_in_reverse(tmp_path: Path) -> None:
    """Shipping fails for ever: reservation and charge are undone, the last first, and the run says rolled_back."""
    with world(ORDER) as there:
        there.faults["ship"] = [Fault("status")] * 9
        outcome = play(there, tmp_path)
    assert outcome.status == "rolled_back"
    assert there.undone() == ["reserve", "charge"]
    assert [event["step"] for event in kinds(tmp_path, "compensation_started")] == [2, 1]
    settled = [(event["step"], event["disposition"]) for event in kinds(tmp_path, "effect_settled")]
    assert settled == [(2, "compensated"), (1, "compensated")]
    assert {seen.headers["x-step"] for seen in there.calls("refund")} == {"1"}
    assert there.calls("refund")[0].headers["idempotency-key"].startswith("undo-")


def test_nothing_applied_is_a_plain_failure(tmp_path: Path) -> None:
    """The first write fails for good: failed, with a kind, and there is nothing to undo."""
    with world(ORDER) as there:
        there.faults["charge"] = [Fault("status", 500, error={"kind": "db_down", "may_have_taken_effect": False})] * 9
        outcome = play(there, tmp_path)
    assert (outcome.status, outcome.failure and outcome.failure.kind) == ("failed", "db_down")
    assert there.effects == []
    assert len(there.calls("charge")) <= 4


def test_a_timed_out_step_counts_as_possibly_executed(tmp_path: Path) -> None:
    """The service never answers, neither calls nor questions: a person gets the step, the rest is undone."""
    with world(ORDER) as there:
        there.answers_status = False
        there.faults["ship"] = [Fault("hang")] * 9
        outcome = play(there, tmp_path)
    assert outcome.status == "handed_off"
    assert there.undone() == ["reserve", "charge"]
    manual = [event["step"] for event in kinds(tmp_path, "effect_settled") if event["disposition"] == "manual"]
    assert manual == [3]
    assert kinds(tmp_path, "handed_off")[0]["uncertain"] == [3]


def test_a_step_found_executed_late_is_undone_with_the_others(tmp_path: Path) -> None:
    """Every attempt executes and says it failed, until the answer is asked for: the effect is known and stays one."""
    with world(ORDER) as there:
        there.faults["ship"] = [Fault("status_after")] * 9
        outcome = play(there, tmp_path)
    assert outcome.status == "succeeded"
    assert [effect.tool for effect in there.effects].count("ship") == 1


@pytest.mark.parametrize("fault", [DROP, Fault("status"), Fault("status", 503), Fault("hang")])
def test_an_irreversible_call_is_never_repeated(tmp_path: Path, fault: Fault) -> None:
    """A mail that may have gone out is not sent again: it goes to a person, and the order it was about is kept."""
    with world(ORDER) as there:
        there.faults["email"] = [fault]
        outcome = play(there, tmp_path)
    assert len(there.calls("email")) == 1
    assert (outcome.status, outcome.completed) == ("partial_success", (1, 2, 3))
    assert there.undone() == []
    first = kinds(tmp_path, "effect_settled")[0]
    assert (first["step"], first["disposition"]) == (4, "manual")
    assert kinds(tmp_path, "handed_off")[0]["uncertain"] == [4]


def test_a_minor_step_that_fails_at_the_end_leaves_a_part(tmp_path: Path) -> None:
    """Only the log entry failed: everything else is kept, and the run says partial_success with all kept steps."""
    script = [*ORDER[:3], Says(calls=[("log", {"note": "done"})]), Says("Could not log.")]
    with world(script) as there:
        there.faults["log"] = [Fault("status", 500, error={"retryable": False, "may_have_taken_effect": False})]
        outcome = play(there, tmp_path)
    assert (outcome.status, outcome.completed) == ("partial_success", (1, 2, 3))
    assert there.standing() == ["charge", "reserve", "ship"]
    assert kinds(tmp_path, "partial_success_returned")[0]["failed"][0]["step"] == 4


def test_no_write_starts_beside_one_that_failed(tmp_path: Path) -> None:
    """The reservation fails for good and the model goes on to ship: it is held back, and the charge is undone."""
    with world(ORDER) as there:
        there.faults["reserve"] = [Fault("status", 500, error={"retryable": False, "may_have_taken_effect": False})]
        outcome = play(there, tmp_path)
    assert outcome.status == "rolled_back"
    assert there.calls("ship") == []
    assert there.undone() == ["charge"]


def test_a_failed_read_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    """A read that fails for good: the model reads a structured error, and the end is marked degraded."""
    script = [Says(calls=[("quote", {"sku": "s"})]), *ORDER]
    with world(script) as there:
        there.faults["quote"] = [Fault("status", 404, error={"kind": "not_found"})]
        outcome = play(there, tmp_path)
    assert outcome.status == "succeeded"
    assert outcome.degraded == ({"what": "quote", "why": "not_found"},)
    told = there.model_calls()[1].body["messages"][2]["content"][0]
    assert told["is_error"] is True
    assert '"kind": "not_found"' in told["content"]


def test_a_rejected_write_may_be_repaired(tmp_path: Path) -> None:
    """The service refuses the amount: the model asks again with another one, and the run succeeds."""
    script = [Says(calls=[CHARGE]), Says(calls=[("charge", {"order": "o-1", "amount": 900})]), *ORDER[1:]]
    with world(script) as there:
        there.faults["charge"] = [Fault("status", 422, error={"kind": "too_much"})]
        outcome = play(there, tmp_path)
    assert outcome.status == "succeeded"
    assert [effect.arguments["amount"] for effect in there.effects if effect.tool == "charge"] == [900]


def test_two_equal_gifts_are_two_effects(tmp_path: Path) -> None:
    """The model asks for the same thing twice, in one turn or in two: two keys, two effects."""
    script = [Says(calls=[CHARGE, CHARGE]), Says(calls=[CHARGE]), Says("Three.")]
    with world(script) as there:
        outcome = play(there, tmp_path)
    assert outcome.status == "succeeded"
    assert len({effect.key for effect in there.effects}) == 3
    assert len({effect.intent for effect in there.effects}) == 3


def test_an_undoing_of_the_model_is_not_done_twice(tmp_path: Path) -> None:
    """The model refunds its own charge, and a later step fails: the charge is not refunded again."""
    script = [
        Says(calls=[CHARGE]),
        Says(calls=[RESERVE]),
        Says(calls=[("refund", {"charge_id": "charge-1"})]),
        Says(calls=[SHIP]),
    ]
    with world(script) as there:
        there.faults["ship"] = [Fault("status", 400, error={"kind": "no"})] * 9
        outcome = play(there, tmp_path, registry={**REGISTRY, "ship": {**REGISTRY["ship"], "self_repair": 0}})
    assert outcome.status == "rolled_back"
    assert there.undone() == ["charge", "reserve"]


def test_reads_of_one_turn_go_side_by_side_within_the_limit(tmp_path: Path) -> None:
    """Nine reads under a limit of three: three at once, six said to be queued, answers in the order of the calls."""
    script = [Says(calls=[("quote", {"sku": f"s{n}"}) for n in range(9)]), Says("Read.")]
    with world(script) as there:
        there.latency_s = 0.05
        outcome = play(there, tmp_path, limits={"max_concurrency": 3, "wall_clock_s": 30})
    assert outcome.status == "succeeded"
    assert there.peak == 3
    assert [event["step"] for event in kinds(tmp_path, "tool_call_queued")] == [4, 5, 6, 7, 8, 9]
    told = there.model_calls()[1].body["messages"][2]["content"]
    assert [f"s{n}" in answer["content"] for n, answer in enumerate(told)] == [True] * 9


def test_writes_of_one_turn_go_one_by_one(tmp_path: Path) -> None:
    """Writes of one turn never overlap and keep their order."""
    script = [Says(calls=[CHARGE, RESERVE, SHIP, EMAIL]), Says("Done.")]
    with world(script) as there:
        there.latency_s = 0.02
        outcome = play(there, tmp_path)
    assert (outcome.status, there.peak) == ("succeeded", 1)
    assert there.standing() == ["charge", "reserve", "ship", "email"]


def test_after_a_failed_write_the_rest_of_the_turn_is_held_back(tmp_path: Path) -> None:
    """A bad argument in the first of two writes: the second is not made silently, and both may be asked for again."""
    script = [
        Says(calls=[("charge", {"order": "o-1"}), RESERVE]),
        Says(calls=[CHARGE]),
        Says(calls=[RESERVE]),
        Says("Done."),
    ]
    with world(script) as there:
        outcome = play(there, tmp_path)
    assert outcome.status == "succeeded"
    assert there.standing() == ["charge", "reserve"]
    assert [event["step"] for event in kinds(tmp_path, "tool_call_refused")] == [1, 2]


@pytest.mark.parametrize(
    "call", [("chargee", {}), ("charge", {"order": "o-1"}), ("charge", {"order": "o-1", "amount": "12"})]
)
def test_a_bad_call_is_refused_before_the_wire(tmp_path: Path, call: tuple[str, dict[str, Any]]) -> None:
    """An unknown tool, a missing and a mistyped argument: nothing on the wire, the model told, the run goes on."""
    with world([Says(calls=[call]), *ORDER]) as there:
        outcome = play(there, tmp_path)
    assert outcome.status == "succeeded"
    assert kinds(tmp_path, "tool_call_refused")[0]["reason"] == "preflight"
    assert next(seen.what for seen in there.seen if seen.what != "model") == "POST charge"
    assert len(there.calls("charge")) == 1


@pytest.mark.parametrize("call", [("chargee", {}), ("charge", {"order": "o-1"})])
def test_a_model_that_never_learns_is_stopped(tmp_path: Path, call: tuple[str, dict[str, Any]]) -> None:
    """The same bad call for ever: bounded by the tool's self-repair limit, with an explicit end."""
    with world(lambda said, body: Says(calls=[call])) as there:
        outcome = play(there, tmp_path)
    assert outcome.status == "failed"
    assert len(there.model_calls()) <= 4
    assert there.effects == []
