"""What is looked at before a call of the model is let near the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.reference.errors import Failure
from agents.reference.schema import complaints
from agents.reference.tools import Tool


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call is not made: `reason` in the words of contract section 3."""

    reason: str
    failure: Failure


def examine(
    tool: Tool, arguments: Mapping[str, Any], *, failed_before: int, offered: Sequence[str]
) -> Refusal | None:
    """Pure: may this call be made? `failed_before` counts the tool's failures since its last success."""
    if failed_before > tool.self_repair:
        message = f"{tool.name} failed {failed_before} times, and may be asked for again {tool.self_repair} times"
        return Refusal("limit", Failure("self_repair_exhausted", message))
    if tool.name not in offered:
        message = f"there is no tool {tool.name!r}; there are: {', '.join(offered) or 'none'}"
        return Refusal("preflight", Failure("unknown_tool", message, rejected=True))
    found = complaints(arguments, tool.schema or {})
    if found:
        return Refusal("preflight", Failure("invalid_arguments", "; ".join(found)[:500], rejected=True))
    if tool.confirm:
        message = f"{tool.name} waits for a person's word; it is proposed, not done"
        return Refusal("confirmation", Failure("confirmation_needed", message))
    return None
