"""All mechanisms that can be detected, in the contract's order, and how a history is asked about them.

Adding one: write its function in the file of its theme, add one row here, one test. Mechanisms of contract
section 9 without a row are not detected yet, and no report says anything of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from reports.mechanisms.answers import degraded_answer
from reports.mechanisms.attempts import Line
from reports.mechanisms.breakers import breaker_open, breaker_probe
from reports.mechanisms.budgets import (
    budget_stop_cost,
    budget_stop_steps,
    budget_stop_tokens,
    budget_stop_wall_clock,
)
from reports.mechanisms.deadlines import deadline_propagation, deadline_stop
from reports.mechanisms.model_words import preflight_validation, self_repair_limit, truncation_rescue
from reports.mechanisms.recovery import resume, write_ahead
from reports.mechanisms.retries import dedup, outcome_query, retry, retry_budget_stop, server_directed_wait
from reports.mechanisms.sharing import concurrency_limit, tenant_fairness
from reports.mechanisms.undoing import compensation, compensation_retry, manual_handoff, partial_success
from reports.mechanisms.view import Observation, View, World
from reports.results import Activation
from traces.history import Limits

if TYPE_CHECKING:
    from traces.registry import Registry

DETECTORS: tuple[Callable[[View], Iterator[Observation]], ...] = (
    retry,
    retry_budget_stop,
    server_directed_wait,
    outcome_query,
    dedup,
    deadline_propagation,
    deadline_stop,
    budget_stop_steps,
    budget_stop_wall_clock,
    budget_stop_tokens,
    budget_stop_cost,
    breaker_open,
    breaker_probe,
    compensation,
    compensation_retry,
    manual_handoff,
    write_ahead,
    resume,
    partial_success,
    preflight_validation,
    truncation_rescue,
    self_repair_limit,
    concurrency_limit,
    tenant_fairness,
    degraded_answer,
)

MECHANISMS: tuple[str, ...] = tuple(detector.__name__ for detector in DETECTORS)

STOPS: frozenset[str] = frozenset(name for name in MECHANISMS if "_stop" in name) | {
    "loop_guard_repeat",
    "loop_guard_no_progress",
}
"""Mechanisms that end something: acting at almost every opportunity is suspicious (contract section 9)."""


def detect(
    records: Sequence[Line],
    *,
    run_id: str | None = None,
    registry: Registry | None = None,
    limits: Limits | None = None,
) -> list[Observation]:
    """What one run shows of every mechanism.

    `records` are (line, record) of the run, or of its whole world where runs share one; `run_id` says which run
    is meant, by default that of the first record. `limits` count where the run states none itself.
    """
    world = World(records)
    chosen = run_id if run_id is not None else next(iter(world.by_run), "")
    return observe(View(chosen, world, registry, limits))


def observe(view: View) -> list[Observation]:
    """What a run shows of every mechanism, in the catalogue's order."""
    if not view.own:
        return []
    return [observation for detector in DETECTORS for observation in detector(view)]


def tally(observations: Iterable[Observation]) -> dict[str, Activation]:
    """Counts per mechanism, in total and by tool, as a `RunResult` holds them; `""` where no tool is meant."""
    tools: dict[str, dict[str, tuple[int, int]]] = {}
    for seen in observations:
        counts = tools.setdefault(seen.mechanism, {})
        opportunities, activations = counts.get(seen.tool or "", (0, 0))
        counts[seen.tool or ""] = (opportunities + 1, activations + seen.acted)
    return {
        mechanism: Activation(
            opportunities=sum(opportunities for opportunities, _ in counts.values()),
            activations=sum(activations for _, activations in counts.values()),
            by_tool=dict(sorted(counts.items())),
        )
        for mechanism, counts in tools.items()
    }
