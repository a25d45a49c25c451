"""Whole runs of the reference agent against a small world with real sockets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.reference.__main__ import run
from agents.reference.clock import SystemClock
from agents.reference.outcome import Outcome
from tests.agents.fake_world import (
    CHARGE,
    EMAIL,
    ORDER,
    REGISTRY,
    RESERVE,
    SHIP,
    Fault,
    Says,
    Script,
    World,
    events,
    world,
)

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


@pytest.mark.parametrize(("api", "stream"), BOTH_APIS)
def test_nothing_is_executed_from_a_message_cut_by_length(tmp_path: Path, api: str, stream: bool) -> None:
    """Arguments cut inside a number by max_tokens: asked again with more room, and the right amount is charged."""

    def script(said: int, body: dict[str, Any]) -> Says:
        room = int(body.get("max_tokens") or body["max_completion_tokens"])
        if said == 0 and room <= 4096:
            return Says(calls=[CHARGE], cut=27, stop="max_tokens")
        return ORDER[said]

    with world(script) as there:
        outcome = play(there, tmp_path, api=api, stream=stream)
    assert outcome.status == "succeeded"
    assert [effect.arguments for effect in there.effects if effect.tool == "charge"] == [CHARGE[1]]
    assert acted(tmp_path, "truncation_rescue")[0]["fault"] == "max_tokens"


@pytest.mark.parametrize("api", ["anthropic-messages", "openai-chat"])
def test_nothing_is_executed_from_a_stream_that_ends_early(tmp_path: Path, api: str) -> None:
    """A stream that closes properly inside a number, without its terminal event: asked again, nothing executed."""
    asked: list[int] = []

    def script(said: int, body: dict[str, Any]) -> Says:
        asked.append(said)
        if len(asked) == 1:
            return Says(calls=[CHARGE], cut=27)
        return ORDER[said]

    with world(script) as there:
        outcome = play(there, tmp_path, api=api, stream=True)
    assert outcome.status == "succeeded"
    assert [effect.arguments for effect in there.effects if effect.tool == "charge"] == [CHARGE[1]]
    assert acted(tmp_path, "truncation_rescue")[0]["fault"] == "cut"


def test_a_model_that_is_always_cut_ends_the_run(tmp_path: Path) -> None:
    """Truncation for ever after a charge: bounded, and the charge is undone."""

    def script(said: int, body: dict[str, Any]) -> Says:
        return Says(calls=[CHARGE]) if said == 0 else Says("Almost", stop="max_tokens")

    with world(script) as there:
        outcome = play(there, tmp_path)
    assert (outcome.status, outcome.failure and outcome.failure.kind) == ("rolled_back", "model_truncated")
    assert len(there.model_calls()) == 4
    assert there.standing() == []


@pytest.mark.parametrize("status", [429, 503, 529])
def test_an_overloaded_model_is_waited_for_as_it_says(tmp_path: Path, status: int) -> None:
    """Retry-After of the model is kept, once; the same bytes are sent again."""
    with world(ORDER) as there:
        there.model_faults = [None, Fault("status", status, {"Retry-After": "1"})]
        outcome = play(there, tmp_path)
    second, third = there.model_calls()[1:3]
    assert outcome.status == "succeeded"
    assert third.at - second.at >= 1.0
    assert second.body == third.body
    assert third.headers["x-stainless-retry-count"] == "1"


def test_a_model_overloaded_for_ever_ends_the_run_in_words(tmp_path: Path) -> None:
    """529 without end after one charge: explicit, and the charge is undone without the model."""
    with world(ORDER) as there:
        there.model_faults = [None, *[Fault("status", 529)] * 20]
        outcome = play(there, tmp_path)
    assert (outcome.status, outcome.failure and outcome.failure.kind) == ("rolled_back", "model_overloaded")
    assert there.standing() == []


def test_past_an_effect_that_cannot_be_undone_a_lost_model_leaves_a_part(tmp_path: Path) -> None:
    """The mail is out when the model falls silent: what is done is kept and said to be a part."""
    with world(ORDER) as there:
        there.model_faults = [None, None, None, None, *[Fault("status", 400)] * 9]
        outcome = play(there, tmp_path)
    assert (outcome.status, outcome.completed) == ("partial_success", (1, 2, 3, 4))
    assert there.undone() == []


def test_the_step_limit_is_hard(tmp_path: Path) -> None:
    """A model that reads for ever: exactly the steps allowed, `budget_exhausted`, never succeeded."""
    with world(lambda said, body: Says(calls=[("quote", {"sku": f"s{said}"})])) as there:
        outcome = play(there, tmp_path, limits={"steps": 5, "wall_clock_s": 30})
    assert outcome.status == "failed"
    assert len(there.calls("quote")) == 5
    assert [event["budget"] for event in kinds(tmp_path, "budget_exhausted")] == ["steps"]
    assert {event["step"] for event in events(tmp_path) if "step" in event} == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("limit", [{"tokens": 2500}, {"cost_usd": 0.008}])
def test_tokens_and_cost_are_hard(tmp_path: Path, limit: dict[str, Any]) -> None:
    """The next model call might pass the limit: it is not made, and the sum stays under."""
    with world(lambda said, body: Says(calls=[("quote", {"sku": f"s{said}"})])) as there:
        outcome = play(there, tmp_path, limits={"wall_clock_s": 30, **limit})
    calls = kinds(tmp_path, "model_call_finished")
    assert outcome.status == "failed"
    assert kinds(tmp_path, "budget_exhausted")[0]["budget"] in ("tokens", "cost")
    assert sum(call["input_tokens"] + call["output_tokens"] for call in calls) <= limit.get("tokens", 10**9)
    assert sum(call["cost_usd"] for call in calls) <= limit.get("cost_usd", 1.0)
    assert len(calls) >= 2


def test_the_wall_clock_is_hard_and_leaves_time_to_undo(tmp_path: Path) -> None:
    """A slow model eats the time: forward work stops with the share kept back unspent, and the charge is undone."""
    with world(ORDER) as there:
        there.faults["reserve"] = [Fault("hang_before")] * 9
        outcome = play(there, tmp_path, limits={"wall_clock_s": 3})
    finished = kinds(tmp_path, "run_finished")[0]
    started = kinds(tmp_path, "budget_allocated")[0]
    assert outcome.status == "rolled_back"
    assert there.standing() == []
    assert finished["t"] - started["t"] <= 3.5


def test_the_deadline_only_falls(tmp_path: Path) -> None:
    """Over retries, status questions and undoing, the instant that calls carry never moves back within its scope."""
    with world(ORDER) as there:
        there.faults["reserve"] = [Fault("hang_before"), DROP]
        there.faults["ship"] = [Fault("status")] * 9
        play(there, tmp_path)
    for scope in ("root", "compensation"):
        starts = [event for event in kinds(tmp_path, "tool_call_started") if event["scope"] == scope]
        instants = [event["t"] + event["deadline_remaining_s"] for event in starts]
        assert len(instants) >= 2
        assert max(instants) - min(instants) < 0.25


def test_an_error_of_the_agent_itself_is_a_structured_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug after a charge: told as a handled exception, the charge undone, an outcome with a kind."""
    from agents.reference import steps

    with world(ORDER) as there:
        plan = steps.Steps.plan

        def broken(self: Any, said: Any, account: Any) -> None:
            if len(self.ledger.turns()) == 1:
                raise KeyError("bug")
            plan(self, said, account)

        monkeypatch.setattr(steps.Steps, "plan", broken)
        outcome = play(there, tmp_path)
    assert (outcome.status, outcome.failure and outcome.failure.kind) == ("rolled_back", "internal_error")
    assert kinds(tmp_path, "exception")[0]["handled"] is True
    assert there.standing() == []


def test_a_breaker_stops_a_fan_out_into_a_broken_service(tmp_path: Path) -> None:
    """Thirty reads of a dead service: the breaker opens, the rest is refused, and none starts after it opened."""
    script: Script = [Says(calls=[("quote", {"sku": f"s{n}"}) for n in range(30)]), Says("Nothing to read.")]
    with world(script) as there:
        there.faults["quote"] = [Fault("status")] * 200
        outcome = play(there, tmp_path, limits={"max_concurrency": 4, "steps": 40, "wall_clock_s": 30})
    told = events(tmp_path)
    opened = next(n for n, event in enumerate(told) if event["type"] == "breaker_state_changed")
    assert outcome.status == "succeeded"
    assert outcome.degraded[0]["what"] == "quote"
    assert len(there.calls("quote")) < 20
    assert not any(event["type"] == "tool_call_started" for event in told[opened:])
