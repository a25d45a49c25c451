"""The agents that can be run by name, as plain data: what each is, and what the harness must say about it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Final


@dataclass(frozen=True, slots=True)
class AgentEntry:
    """One agent. `must_draw` holds `{"invariant", "reason"}`, `{"finding"}` or `{"mechanism", "status"}` objects;
    `scenarios` the numbers in which at least one of them shows."""

    name: str
    group: str
    summary: str
    module: str
    must_draw: tuple[Mapping[str, str], ...] = ()
    scenarios: tuple[int, ...] = ()


def _breaks(invariant: str, *reasons: str) -> tuple[Mapping[str, str], ...]:
    return tuple({"invariant": invariant, "reason": reason} for reason in reasons)


AGENTS: Final[tuple[AgentEntry, ...]] = (
    AgentEntry(
        name="reference",
        group="reference",
        summary="does everything right: keys by intent, a ledger before the call, one deadline, reverse compensation",
        module="agents.reference.__main__",
    ),
    AgentEntry(
        name="key-per-attempt-header",
        group="known-bad",
        summary="sends a fresh idempotency key with every attempt",
        module="agents.known_bad.key_per_attempt_header",
        must_draw=_breaks("single-effect", "duplicate-intent"),
        scenarios=(104, 203, 204, 501),
    ),
    AgentEntry(
        name="key-per-attempt-body",
        group="known-bad",
        summary="sends a fresh request_id in the body of every attempt, and no key",
        module="agents.known_bad.key_per_attempt_body",
        must_draw=_breaks("single-effect", "duplicate-intent"),
        scenarios=(104, 203, 204, 501),
    ),
    AgentEntry(
        name="timeout-taken-for-failure",
        group="known-bad",
        summary="takes a call that timed out for one that did nothing, and neither asks nor undoes",
        module="agents.known_bad.timeout_taken_for_failure",
        must_draw=_breaks("no-dangling-effect", "unsettled"),
        scenarios=(104, 106, 203),
    ),
    AgentEntry(
        name="ledger-after-call",
        group="known-bad",
        summary="writes its ledger when the call has come back, and repeats it after a crash in between",
        module="agents.known_bad.ledger_after_call",
        must_draw=_breaks("single-effect", "duplicate-intent"),
        scenarios=(408,),
    ),
    AgentEntry(
        name="forward-order-compensation",
        group="known-bad",
        summary="undoes its effects in the order in which it made them",
        module="agents.known_bad.forward_order_compensation",
        must_draw=_breaks("reverse-compensation", "out-of-order"),
        scenarios=(207, 404, 502),
    ),
    AgentEntry(
        name="deadline-restarted",
        group="known-bad",
        summary="gives every retry the whole time of the run again",
        module="agents.known_bad.deadline_restarted",
        must_draw=_breaks("budgets", "deadline-reset"),
        scenarios=(102, 103, 205, 501),
    ),
    AgentEntry(
        name="cut-arguments-executed",
        group="known-bad",
        summary="executes its best guess of a tool call whose message was cut off",
        module="agents.known_bad.cut_arguments_executed",
        must_draw=_breaks("effect-provenance", "cut-arguments"),
        scenarios=(303, 305, 308),
    ),
)

_BY_NAME: Final = {entry.name: entry for entry in AGENTS}


def entry(name: str) -> AgentEntry:
    """The agent of this name. Raises `KeyError`, naming those there are."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise KeyError(f"no agent {name!r}; there are: {', '.join(_BY_NAME)}") from None


def run_agent(name: str) -> int:
    """Run the agent of this name on the task of the environment; its exit code, or 2 where there is no such agent."""
    try:
        module = entry(name).module
    except KeyError as fault:
        sys.stderr.write(f"{fault.args[0]}\n")
        return 2
    return int(import_module(module).main())
