"""What the tool service answers where it cannot simply repeat the recording: new results, and ids that are unique."""

from __future__ import annotations

from typing import Any

from harness.standins.ledger import Call, Ledger
from harness.standins.recording import Answer
from traces.paths import MISSING, Path
from traces.registry import Tool


def synthesised(tool: Tool, args: dict[str, Any], number: int) -> Answer:
    """A result for a call that the recording does not hold: an id of its own, `ok`, and the arguments as an echo.

    `number` counts the effects of the tool. The id stands also where the tool's compensation looks for it, so that
    the agent can undo what it did.
    """
    new_id = f"{tool.name}-{number}"
    body: Any = {**args, "id": new_id, "status": "ok"}
    path = id_path(tool)
    if path is not None:
        body = with_value(body, path, new_id)
    return Answer(200, body)


def id_path(tool: Tool) -> Path | None:
    """Where the result of a tool has the id by which its compensation names the effect."""
    return tool.compensation.of_result if tool.compensation is not None else None


def business_id(tool: Tool, body: Any) -> Any:
    """The id in a result by which the tool's compensation names the effect, `None` where there is none."""
    path = id_path(tool)
    found = path.find(body) if path is not None else MISSING
    return None if found is MISSING else found


def own_id(ledger: Ledger, call: Call, base_id: Any) -> Any:
    """The id recorded if it is free in the world of the call, else the same with a number behind it (`ch_1-2`):
    a service that acts twice has two things to name."""
    if base_id is None or not ledger.is_taken(call, base_id):
        return base_id
    number = ledger.came_with(call, base_id) + 1
    while ledger.is_taken(call, _numbered(base_id, number)):
        number += 1
    return _numbered(base_id, number)


def _numbered(base_id: Any, number: int) -> Any:
    if isinstance(base_id, int) and not isinstance(base_id, bool):
        return base_id * 1000 + number  # a numeric id stays a number
    return f"{base_id}-{number}"


def with_value(value: Any, path: Path, new: Any) -> Any:
    """A copy of a JSON value with another value at a path; fields on the way are made where they are missing, and a
    path that cannot lead there (an item of a list, `[*]`) leaves the value as it is."""
    return _with(value, path.steps, new)


def _with(value: Any, steps: tuple[str | int | None, ...], new: Any) -> Any:
    if not steps:
        return new
    step, rest = steps[0], steps[1:]
    if isinstance(step, str) and isinstance(value, dict):
        return value | {step: _with(value.get(step, {}), rest, new)}
    if isinstance(step, int) and isinstance(value, list) and step < len(value):
        return [*value[:step], _with(value[step], rest, new), *value[step + 1 :]]
    return value
