"""Saying honestly that an answer is less than was asked for."""

from __future__ import annotations

from collections.abc import Iterator

from reports.mechanisms.view import Observation, View


def degraded_answer(view: View) -> Iterator[Observation]:
    """A source is gone, or less than one inference is left; it acts by `degraded` in the outcome.

    A source is a reading tool of which a logical call never got an answer. One inference costs what the
    dearest of the run cost in tokens, or as long as the slowest took.
    """
    said = bool(view.finished and view.finished[1].degraded) or bool(view.said("degraded_answer"))
    gone: set[str] = set()
    for attempts in view.by_intent.values():
        last = attempts[-1]
        if view.is_write(last) or any(a.ok for a in attempts) or last.outcome == "rejected" or last.tool in gone:
            continue
        if any(other.ok and other.line > last.line for other in view.attempts if other.tool == last.tool):
            continue
        gone.add(last.tool)
        yield view.observe("degraded_answer", said, last.end_line or last.line, tool=last.tool)
    if not gone and (line := _less_than_one_inference(view)) is not None:
        yield view.observe("degraded_answer", said, line)


def _less_than_one_inference(view: View) -> int | None:
    """Line after which the budget could not pay for one more inference although the model had not ended."""
    spent = dearest = slowest = 0.0
    attempts = [a for a in view.model_attempts if a.finish is not None]
    for at, attempt in enumerate(attempts):
        if attempt.finish is None or attempt.end_line is None:
            continue
        tokens = (attempt.finish.input_tokens or 0) + (attempt.finish.output_tokens or 0)
        spent, dearest = spent + tokens, max(dearest, tokens)
        slowest = max(slowest, attempt.finish.t - attempt.start.t)
        following = attempts[at + 1].line if at + 1 < len(attempts) else view.own[-1][0] + 1
        asked = any(attempt.line < line < following for line, _ in view.of_type("model_tool_call"))
        if not asked:
            continue
        over = view.limits.tokens is not None and dearest > 0 and spent + dearest > view.limits.tokens
        if over or 0 <= view.left_s(attempt.finish.t) < slowest:
            return attempt.end_line
    return None
