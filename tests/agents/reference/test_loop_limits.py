"""Whole runs of the reference agent where the model or a limit lets it down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agents.fake_model import Says
from tests.agents.fake_shop import CHARGE, ORDER
from tests.agents.fake_world import Fault, Script, events, world
from tests.agents.reference.test_loop import BOTH_APIS, DROP, acted, kinds, play


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
