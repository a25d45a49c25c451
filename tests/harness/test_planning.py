"""Scenarios are joined with traces before anything is started; what cannot strike is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.errors import InputError
from harness.inputs import load_tools, load_traces
from harness.planning import Selection, check_sites, choose, misfits, plan_runs, unmatched
from harness.scenario import Scenario, load_scenario, load_scenarios
from harness.settings import Settings
from traces.registry import Registry

TOOLS = load_tools(Settings().tools).registry
TRACES = load_traces(Settings().traces, TOOLS)
BY_NAME = {trace.name: trace for trace in TRACES}


def scenario(faults: str, *, number: int = 150, more: str = "") -> Scenario:
    """A scenario with those faults, in flow style."""
    text = f"number: {number}\nversion: 1\ntitle: t\nsets: [mine]\nfaults: [{faults}]\n{more}"
    return load_scenario(Path(f"{number}-t.yaml"), text)


def plan(scenarios: Sequence[Scenario], **selection: object) -> list[str]:
    """The ids of the runs that are planned."""
    chosen = Selection(**selection)  # type: ignore[arg-type]
    planned = plan_runs(scenarios, TRACES, registry=TOOLS, selection=chosen)
    return [run.run_id for world in planned.worlds for run in world.runs]


def test_all_traces_that_have_the_site() -> None:
    """Without a list of traces, a scenario runs on every trace in which each of its faults can strike."""
    runs = plan([scenario("{kind: hang, at: {tool: refund}}")])
    assert "150-refund" in runs
    assert "150-order-small" in runs, "a refund can be called there: it undoes the charge"
    assert "150-question-read-only" not in runs


def test_a_call_that_never_comes() -> None:
    """A second charge exists only where two equal ones are wanted; another card for a declined one is a retry."""
    assert plan([scenario("{kind: hang, at: {tool: charge, call: 2}}")]) == ["150-order-gift-twins"]


def test_a_cut_needs_a_place() -> None:
    """A fault of the model's words fits only where the recorded words give it a hold."""
    cut = scenario("{kind: cut-stream, at: {model: 1}, with: {inside: number}}")
    assert misfits(cut, BY_NAME["order-small"]), "its first call takes no number"
    assert not misfits(scenario("{kind: cut-stream, at: {model: 1}, with: {inside: string}}"), BY_NAME["order-small"])


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ("{kind: hang, at: {tool: chrage}}", "did you mean `charge`?"),
        ("{kind: hang, at: {group: paymnets}}", "did you mean `payments`?"),
    ],
)
def test_misspelt_sites(faults: str, words: str) -> None:
    """A misspelt tool or group is refused with file, line and a suggestion."""
    (complaint,) = check_sites(scenario(faults), TRACES, TOOLS)
    assert complaint.startswith("150-t.yaml:5: ")
    assert complaint.endswith(words)


def test_a_named_trace_without_the_site() -> None:
    """A trace that is named outright and cannot be struck is a mistake, not a shorter list."""
    wrong = scenario("{kind: hang, at: {tool: charge}}", more="traces: [question-read-only, order-small]\n")
    assert "can strike nothing there" in check_sites(wrong, TRACES, TOOLS)[0]


def test_nothing_to_strike_at_all() -> None:
    """A scenario that fits no trace is named with the reason."""
    complaint = unmatched(scenario("{kind: hang, at: {tool: charge, call: 9}}"), TRACES)
    assert complaint is not None
    assert "150 can strike in no trace" in complaint


def test_unknown_names_on_the_command_line() -> None:
    """Numbers, sets and traces that do not exist are refused."""
    known = [scenario("{kind: hang, at: {tool: charge}}")]
    for selection, words in (
        ({"numbers": ("151",)}, "there is no scenario 151"),
        ({"sets": ("mien",)}, "did you mean `mine`?"),
        ({"traces": ("order-smal",)}, "did you mean `order-small`?"),
    ):
        with pytest.raises(InputError) as refused:
            plan(known, **selection)
        assert any(words in text for text in refused.value.faults)


def test_shards_are_a_partition() -> None:
    """The shards together are the whole, and no run is in two of them."""
    all_scenarios = load_scenarios(list(Settings().scenarios))
    whole = plan(all_scenarios, sets=("ci",))
    parts = [plan(all_scenarios, sets=("ci",), shard=(part, 3)) for part in (1, 2, 3)]
    assert sorted(run for part in parts for run in part) == sorted(whole)


def test_combinations_are_named_and_repeatable() -> None:
    """`--combine` gives runs named by their numbers, the same for the same seed."""
    all_scenarios = load_scenarios(list(Settings().scenarios))
    first, _ = choose(all_scenarios, Selection(sets=("ci",), combine=2, sample=10, seed=3))
    again, _ = choose(all_scenarios, Selection(sets=("ci",), combine=2, sample=10, seed=3))
    other, _ = choose(all_scenarios, Selection(sets=("ci",), combine=2, sample=10, seed=4))
    assert [s.number for s in first] == [s.number for s in again] != [s.number for s in other]
    assert len(first) == 10
    (named,), _ = choose(all_scenarios, Selection(numbers=("101+204+401",)))
    assert named.number == "101+204+401"
    assert named.kinds == ("latency", "executed-but-failed", "kill")


def test_shadowing_combinations_are_refused() -> None:
    """Scenarios of which one hides the other cannot be joined by hand."""
    all_scenarios = load_scenarios(list(Settings().scenarios))
    with pytest.raises(InputError, match="shadow"):
        choose(all_scenarios, Selection(numbers=("204+407",)))


def test_shadowing_combinations_are_counted() -> None:
    """Of three pairs, two of which hide nothing, one is skipped and counted, whatever the seed."""
    pool = [
        scenario("{kind: hang, at: {tool: charge}}", number=151),
        scenario("{kind: reset, at: {tool: charge}, with: {when: before}}", number=152),
        scenario("{kind: hang, at: {tool: refund}}", number=153),
    ]
    for seed in range(5):
        chosen, skipped = choose(pool, Selection(combine=2, sample=3, seed=seed))
        assert sorted(one.number for one in chosen) == ["151+153", "152+153"]
        assert skipped == 1


def test_a_group_that_hides_its_tools() -> None:
    """A fault on all calls of a group hides one on a call of its tool: refused with the later one's line."""
    both = scenario(
        "\n  {kind: hang, at: {tool: charge, call: 1}},\n  {kind: reset, at: {group: payments, call: all}}"
    )
    (complaint,) = check_sites(both, TRACES, TOOLS)
    assert complaint.startswith("150-t.yaml:7: ")
    assert "group" in complaint or "payments" in complaint
    with pytest.raises(InputError, match=r"150-t\.yaml:7: "):
        plan([both])


def test_combinations_know_the_groups() -> None:
    """A group and its tool are skipped as a drawn pair and refused as a named one, as the registry says."""
    pool = [
        scenario("{kind: hang, at: {tool: charge, call: 1}}", number=151),
        scenario("{kind: reset, at: {group: payments, call: all}}", number=152),
    ]
    drawn = plan_runs(pool, TRACES, registry=TOOLS, selection=Selection(combine=2, sample=1))
    assert (drawn.scenarios, drawn.skipped_combinations) == ([], 1)
    with pytest.raises(InputError, match="151\\+152"):
        plan(pool, numbers=("151+152",))


def test_numbers_of_a_group_and_its_tool_that_meet_in_a_trace() -> None:
    """Where a group's n-th call is the very call that another fault strikes, that trace is left out."""
    both = scenario("{kind: hang, at: {tool: charge, call: 1}}, {kind: reset, at: {group: payments, call: 1}}")
    assert any("same attempt" in reason or "shadow" in reason for reason in misfits(both, BY_NAME["order-small"]))
    apart = scenario("{kind: hang, at: {tool: charge, call: 1}}, {kind: reset, at: {group: shipping, call: 1}}")
    assert not misfits(apart, BY_NAME["order-small"])


def test_a_combination_runs_where_all_its_scenarios_would() -> None:
    """Only traces that every scenario of a combination names are replayed."""
    pool = [
        scenario("{kind: latency, at: {tool: charge}}", number=151, more="traces: ['order-*']\n"),
        scenario("{kind: hang, at: {tool: charge}}", number=152, more="traces: ['*-small', fan-out]\n"),
    ]
    assert plan(pool, numbers=("151+152",)) == ["151+152-order-small"]


def test_repeats_have_the_same_ids() -> None:
    """Run and intent ids are the same in every repeat, and differ between runs."""
    hang = [scenario("{kind: hang, at: {tool: charge}}")]
    planned = plan_runs(hang, TRACES, registry=TOOLS, selection=Selection())
    again = plan_runs(hang, TRACES, registry=TOOLS, selection=Selection())
    ids = [(run.run_id, run.intent_id) for world in planned.worlds for run in world.runs]
    assert ids == [(run.run_id, run.intent_id) for world in again.worlds for run in world.runs]
    assert len(set(ids)) == len(ids)


def test_registry_type() -> None:
    """The bundled registry knows every tool that the bundled traces call."""
    assert isinstance(TOOLS, Registry)
    assert {tool for trace in TRACES for tool in trace.tool_calls} <= set(TOOLS.tools)


def test_a_world_of_traces_that_are_not_there() -> None:
    """A shared world needs each of its traces; the complaint names those that are missing."""
    world = "world: {runs: [{trace: order-small, tenant: a}, {trace: nowhere, tenant: b}]}\n"
    complaint = unmatched(scenario("{kind: hang, at: {tool: charge}}", more=world), TRACES)
    assert complaint == "150-t.yaml:1: `world` names traces that are not there: nowhere"
