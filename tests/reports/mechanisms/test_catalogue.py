"""What every mechanism has to hold to, run over the whole catalogue."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from reports.mechanisms.catalogue import DETECTORS, MECHANISMS, STOPS, detect, tally
from reports.mechanisms.view import View, World
from reports.results import Activation
from tests.reports.builders import Story, registry
from traces.history import Record

CONTRACT = """
retry retry_budget_stop server_directed_wait outcome_query dedup deadline_propagation deadline_stop budget_stop_steps
budget_stop_wall_clock budget_stop_tokens budget_stop_cost breaker_open breaker_probe health_memory compensation
compensation_retry manual_handoff write_ahead resume reconciliation partial_success loop_guard_repeat
loop_guard_no_progress preflight_validation truncation_rescue self_repair_limit confirmation_gate concurrency_limit
adaptive_shrink tenant_fairness lease_reclaim scope_narrowing degraded_answer result_folding
"""


def eventful() -> Story:
    """A run in which nearly everything happens."""
    failed: dict[str, Any] = {"http_status": 500, "error": {"kind": "downstream", "retryable": True}}
    story = Story(steps=3, wall_clock_s=5, tokens=300, cost_usd=1, max_concurrency=1, half_open_probes=1)
    story.model("error", http_status=529, retry_after_s=0.3).model().asks("charge", step=1).asks(
        "lookup", "l", step=1
    )
    story.asks("teleport", complete=False).call("lookup", "timeout", digest="l", deadline_remaining_s=4)
    story.call("charge", "timeout", key="k", effect="e1").call("charge", key="k", effect="=e1")
    story.add("process_exited", source="harness", injected=True).add("process_started", source="harness")
    story.breaker("closed", "open", threshold=2).breaker("open", "half_open").add("budget_exhausted", budget="tokens")
    story.add("tool_call_refused", tool="mail", reason="budget").add("tool_call_queued", attempt_id="q")
    story.add("compensation_started", step=1, tool="refund", strength="weak")
    story.call("refund", "error", digest="r", finish=failed)
    story.add("compensation_finished", step=1, tool="refund", strength="weak", outcome="error")
    story.add("effect_settled", step=1, disposition="manual").add("handed_off").model(tokens=250)
    return story.done("handed_off", degraded=[{"what": "stock"}])


def test_names_are_those_of_the_contract_in_its_order() -> None:
    """No mechanism of our own invention, and the order in which people know them."""
    places = [CONTRACT.split().index(name) for name in MECHANISMS]
    assert places == sorted(places)
    assert len(set(MECHANISMS)) == len(DETECTORS)
    assert set(CONTRACT.split()) >= STOPS


def test_every_opportunity_points_at_a_record_of_the_run() -> None:
    """Evidence exists: the line of each observation is one of the run's, and it names its tenant and task."""
    lines = eventful().lines(first=100)
    numbers = {line for line, _ in lines}
    seen = detect(lines, registry=registry())
    assert len({observation.mechanism for observation in seen}) >= 12
    for observation in seen:
        assert observation.line in numbers
        assert (observation.tenant, observation.task_type) == ("a", "order")


def test_detection_is_pure() -> None:
    """The same records give the same observations, and stay what they were."""
    lines = eventful().lines()
    before = msgspec.json.encode([record for _, record in lines])
    assert detect(lines, registry=registry()) == detect(lines, registry=registry())
    assert msgspec.json.encode([record for _, record in lines]) == before


@pytest.mark.parametrize("with_registry", [True, False])
def test_cut_off_and_shuffled_histories_are_read_too(with_registry: bool) -> None:
    """A prefix of any length, a missing record anywhere, an order that makes no sense: never an exception."""
    lines = eventful().lines()
    tools = registry() if with_registry else None
    for end in range(len(lines) + 1):
        detect(lines[:end], registry=tools)
        detect(lines[:end] + lines[end + 1 :], registry=tools)
    chance = random.Random(7)
    for _ in range(50):
        records = [record for _, record in lines]
        chance.shuffle(records)
        detect(list(enumerate(records, start=1)), registry=tools)


def test_bare_records_are_read_too() -> None:
    """Imported histories carry little: every record without its optional fields."""
    bare = [(n, Record(type=r.type, t=r.t, run_id=r.run_id)) for n, r in eventful().lines()]
    assert isinstance(detect(bare), list)


def test_runs_of_one_world_are_told_apart() -> None:
    """Each run's opportunities are its own, and a world is looked at once."""
    first, second = Story("r1").call("lookup", "timeout").call("lookup").done(), Story("r2").call("lookup").done()
    lines = list(enumerate([*first.records, *second.records], start=1))
    assert [o.mechanism for o in detect(lines, run_id="r1")] == [
        "retry",
        "deadline_propagation",
        "deadline_propagation",
    ]
    assert [o.mechanism for o in detect(lines, run_id="r2")] == ["deadline_propagation"]
    assert detect(lines) == detect(lines, run_id="r1")
    assert detect([]) == []
    assert detect(lines, run_id="unknown") == []


def test_a_key_applied_by_another_run_of_the_world_is_met_again() -> None:
    """Two workers of one intent: the second one's call is collapsed, which is dedup."""
    first = Story("r1").call("charge", key="k", effect="e1")
    second = Story("r2").call("charge", key="k", effect="=e1").done()
    lines = list(enumerate([*first.records, *second.records], start=1))
    assert [o.acted for o in detect(lines, run_id="r2") if o.mechanism == "dedup"] == [True]


def test_tally_counts_in_total_and_by_tool() -> None:
    """Totals are the sums of the tools; what concerns no tool stands under the empty name."""
    story = Story(tokens=150).model(tokens=100).call("lookup", "timeout").call("lookup").model(tokens=100).done()
    counts = tally(detect(story.lines()))
    assert counts["retry"] == Activation(opportunities=1, activations=1, by_tool={"lookup": (1, 1)})
    assert counts["budget_stop_tokens"] == Activation(opportunities=1, activations=0, by_tool={"": (1, 0)})


def test_limits_of_the_scenario_count_where_the_run_states_none() -> None:
    """A run without limits of its own is held to those it was given."""
    story = Story().model(tokens=100).model(tokens=100).done()
    bare = [(n, msgspec.structs.replace(r, limits=None)) for n, r in story.lines()]
    limits = msgspec.convert({"tokens": 150}, type(View("r1", World([])).limits))
    assert "budget_stop_tokens" in tally(detect(bare, limits=limits))
    assert "budget_stop_tokens" not in tally(detect(bare))
