"""The logical calls of a recorded task: what it wanted done, however often each was tried."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from traces.digest import args_digest
from traces.registry import Registry
from traces.trace import Exchange, Trace


@dataclass(frozen=True, slots=True)
class LogicalCall:
    """One action of a recorded task: tool, resource group, digest of what is meant, and every try of it."""

    tool: str
    group: str
    meaning: str
    tries: list[Exchange] = field(default_factory=list)


def logical_calls(trace: Trace, registry: Registry) -> list[LogicalCall]:
    """The actions of the recorded task, in the order in which they were first tried.

    A call after a failed one of the same meaning is another try of it, and so is one with other arguments (the same
    trip, paid by another card). The very same call after it has succeeded is an action of its own: two equal gifts.
    """
    calls: list[LogicalCall] = []
    by_meaning: dict[tuple[str, str], list[LogicalCall]] = defaultdict(list)
    done: Counter[tuple[str, str]] = Counter()
    for exchange in trace.tool_exchanges:
        tool = registry.tools.get(exchange.tool)
        exact = tool.args_digest(exchange.arguments) if tool else args_digest(exchange.arguments)
        meaning = (tool.intent_digest(exchange.arguments) if tool else None) or exact
        equal = by_meaning[exchange.tool, meaning]
        repeated = equal and done[exchange.tool, exact] >= len(equal) and equal[-1].tries[-1].ok
        if not equal or repeated:
            equal.append(LogicalCall(exchange.tool, (tool and tool.resource_group) or "", meaning))
            calls.append(equal[-1])
        equal[-1].tries.append(exchange)
        done[exchange.tool, exact] += exchange.ok
    return calls
