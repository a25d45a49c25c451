"""Stopping before a budget of the run is passed: steps, wall clock, tokens, cost.

Each is one question per run: did the next step threaten to pass the limit, and did the agent say so and end?
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from reports.mechanisms.attempts import source_of
from reports.mechanisms.view import Observation, View
from traces.history import Record


def budget_stop_steps(view: View) -> Iterator[Observation]:
    """The steps are used up and more was wanted."""
    limit = view.limits.steps
    if limit is None:
        return
    steps: set[int] = set()
    last = 0
    for line, record in view.own:
        if record.step is not None and source_of(record) in {"agent", "wire"}:
            if record.step not in steps:
                last = line
            steps.add(record.step)
    wanted = len(steps) > limit or (len(steps) == limit and _left_undone(view))
    yield from _stop(view, "steps", last if wanted else None)


def budget_stop_wall_clock(view: View) -> Iterator[Observation]:
    """The time is used up, or less is left than the next planned call needs."""
    if view.limits.wall_clock_s is None or view.started is None:
        return
    short: int | None = None
    for line, record in view.own:
        if source_of(record) not in {"agent", "wire"}:
            continue
        planned = record.type in {"model_tool_call", "tool_call_started", "tool_call_refused"}
        need = (view.need_s(record.tool) or 0.0) if planned else 0.0
        if short is None and view.left_s(record.t) < need:
            short = line
    yield from _stop(view, "wall_clock", short)


def budget_stop_tokens(view: View) -> Iterator[Observation]:
    """The next inference would pass the tokens: a conversation only grows, so it costs at least the last one."""
    yield from _spending(
        view, "tokens", view.limits.tokens, lambda record: (record.input_tokens or 0) + (record.output_tokens or 0)
    )


def budget_stop_cost(view: View) -> Iterator[Observation]:
    """The next inference would pass the cost in US dollars."""
    yield from _spending(view, "cost", view.limits.cost_usd, lambda record: record.cost_usd or 0)


def _spending(
    view: View, budget: str, limit: float | None, price: Callable[[Record], float]
) -> Iterator[Observation]:
    if limit is None:
        return
    spent, short = 0.0, None
    finished = list(view.of_type("model_call_finished"))
    # What the calls of the last message bring has to be told to the model: one more inference.
    follows = bool(finished) and _asked_since(view, view.model_attempts[-1].line if view.model_attempts else 0)
    for line, record in finished:
        last = price(record)
        spent += last
        more = line != finished[-1][0] or follows
        if short is None and last and spent + last > limit and more:
            short = line
    yield from _stop(view, budget, short)


def _stop(view: View, budget: str, line: int | None) -> Iterator[Observation]:
    """The one observation of a budget: at the line that made it an opportunity, else at the agent's own word."""
    said = view.exhausted(budget)
    if line is None and said is None:
        return
    acted = said is not None and view.ends_explicitly
    yield view.observe(f"budget_stop_{budget}", acted, line or (said[0] if said else 0))


def _asked_since(view: View, line: int) -> bool:
    """Whether the model has asked for calls after this line."""
    return any(at > line and call.complete is not False for at, call in view.of_type("model_tool_call"))


def _left_undone(view: View) -> bool:
    """Whether the model's last words asked for calls that were never started: more was wanted."""
    asked = [(line, record) for line, record in view.of_type("model_tool_call") if record.complete is not False]
    if not asked:
        return False
    line, last = asked[-1]
    return not any(
        attempt.line > line and attempt.tool == last.tool and attempt.start.args_digest == last.args_digest
        for attempt in view.attempts
    )
