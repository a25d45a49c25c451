"""One run's history, arranged for questions about mechanisms: attempts, logical calls, effects, the end.

Everything here is read from records alone. A *logical call* is what the agent meant: the declared intent
(tool, intent digest, else argument digest), never a key or a request id, which are claims under test.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from reports.mechanisms.attempts import MODEL, Attempt, Line, paired, source_of, with_digests
from traces.history import Limits, Record

if TYPE_CHECKING:
    from traces.registry import Registry, Tool


@dataclass(frozen=True, slots=True)
class Observation:
    """One opportunity of a mechanism, whether it acted, and where: the line of the opportunity."""

    mechanism: str
    acted: bool
    line: int
    tool: str | None
    tenant: str
    task_type: str


def _step_of(record: Record) -> tuple[str, int]:
    return record.run_id, -1 if record.step is None else record.step


@dataclass(frozen=True)
class World:
    """All records of one world in file order, and what is asked of it once for all its runs."""

    records: Sequence[Line]

    @cached_property
    def by_run(self) -> dict[str, list[Line]]:
        """The records of each run, in file order."""
        runs: dict[str, list[Line]] = defaultdict(list)
        for line, record in self.records:
            if record.type != "world_finished":
                runs[record.run_id].append((line, record))
        return dict(runs)

    @cached_property
    def tenants(self) -> dict[str, str]:
        """The tenant of each run that says so."""
        found: dict[str, str] = {}
        for _, record in self.records:
            if record.type == "run_started" and record.tenant:
                found.setdefault(record.run_id, record.tenant)
        return found

    @cached_property
    def observed_tools(self) -> frozenset[str | None]:
        """Tools of which the service told anything: for those its word is the truth."""
        return frozenset(record.tool for _, record in self.records if record.type == "effect")

    @cached_property
    def undone(self) -> frozenset[str]:
        """Ids of effects that a compensating effect names."""
        return frozenset(
            record.compensates
            for _, record in self.records
            if record.type == "effect" and record.outcome == "applied" and record.compensates
        )

    @cached_property
    def undoable_tools(self) -> frozenset[str | None]:
        """Tools of which some effect of this world was undone, or was to be: what tells it where no registry does."""
        begun: dict[tuple[str, int], int] = {}
        for line, record in self.records:
            if record.type == "compensation_started" and record.step is not None:
                begun.setdefault((record.run_id, record.step), line)
        return frozenset(
            record.tool
            for line, record in self.records
            if (record.type == "effect" and record.effect_id in self.undone)
            or (record.type == "tool_call_started" and record.effectful and line < begun.get(_step_of(record), 0))
        )

    @cached_property
    def applied_keys(self) -> dict[tuple[str, str | None, str], int]:
        """Line at which the service first applied each (tenant, tool, key)."""
        first: dict[tuple[str, str | None, str], int] = {}
        for line, record in self.records:
            if record.type == "effect" and record.outcome == "applied" and record.idempotency_key:
                first.setdefault((self.tenant_of(record), record.tool, record.idempotency_key), line)
        return first

    def tenant_of(self, record: Record) -> str:
        """A record's tenant, by default that of its run."""
        return record.tenant or self.tenants.get(record.run_id, "default")


@dataclass(frozen=True)
class View:
    """The records of one run (and of its world) as mechanisms look at them."""

    run_id: str
    world: World
    registry: Registry | None = None
    stated_limits: Limits | None = None

    @cached_property
    def own(self) -> Sequence[Line]:
        """The records of the run alone, in file order."""
        return self.world.by_run.get(self.run_id, [])

    def of_type(self, *types: str) -> Iterator[Line]:
        """The run's records of these types, in file order."""
        return ((line, record) for line, record in self.own if record.type in types)

    @cached_property
    def started(self) -> Record | None:
        """The run's first `run_started`."""
        return next((record for _, record in self.of_type("run_started")), None)

    @cached_property
    def finished(self) -> Line | None:
        """The run's last `run_finished`, which gives its status."""
        return max(self.of_type("run_finished"), key=lambda item: item[0], default=None)

    @property
    def status(self) -> str | None:
        """The status of the last `run_finished`."""
        return self.finished[1].status if self.finished else None

    @cached_property
    def end_line(self) -> int:
        """Line of the run's end: its last `run_finished`, else its last record."""
        if self.finished:
            return self.finished[0]
        return self.own[-1][0] if self.own else 0

    @property
    def after_all(self) -> int:
        """A line after all that the world's history holds."""
        return self.world.records[-1][0] + 1 if self.world.records else 1

    @cached_property
    def limits(self) -> Limits:
        """The limits of the run, else those that the scenario states."""
        if self.started is not None and self.started.limits is not None:
            return self.started.limits
        return self.stated_limits or Limits()

    @cached_property
    def tenant(self) -> str:
        """The run's tenant."""
        return (self.started.tenant if self.started else None) or "default"

    @cached_property
    def task_type(self) -> str:
        """The run's task type, empty where nobody says."""
        return (self.started.task_type if self.started else None) or ""

    def observe(self, mechanism: str, acted: bool, line: int, *, tool: str | None = None) -> Observation:
        """An observation of this run."""
        return Observation(mechanism, acted, line, tool, self.tenant, self.task_type)

    # calls

    @cached_property
    def attempts(self) -> list[Attempt]:
        """All attempts of tool calls, in the order of their starts."""
        return with_digests(paired(self.own, "tool_call_started", "tool_call_finished"))

    @cached_property
    def model_attempts(self) -> list[Attempt]:
        """All attempts of model calls, in the order of their starts."""
        return paired(self.own, "model_call_started", "model_call_finished")

    @cached_property
    def by_intent(self) -> dict[tuple[str, str | int | None], list[Attempt]]:
        """Attempts by logical call."""
        calls: dict[tuple[str, str | int | None], list[Attempt]] = defaultdict(list)
        for attempt in self.attempts:
            calls[attempt.intent].append(attempt)
        return dict(calls)

    def later(self, attempt: Attempt) -> list[Attempt]:
        """The attempts of the same logical call that began after this one had ended."""
        ended = attempt.end_line or attempt.line
        if attempt.tool == MODEL:
            return [other for other in self.model_attempts if other.line > ended]
        same = self.by_intent[attempt.intent]
        after = [other for other in same if other is not attempt and other.line > ended]
        # Two equal actions that the model asked for are two intents: where both carry keys, the key tells.
        mine = attempt.start.idempotency_key
        keyed = [other for other in after if mine is not None and other.start.idempotency_key == mine]
        if keyed or self.asked_for(attempt.tool, attempt.digest) <= 1:
            return keyed or after
        return after if mine is None else []

    def asked_for(self, tool: str, digest: str | None) -> int:
        """How often the model asked for this action in whole messages; 0 where the wire did not show it."""
        return sum(
            1
            for _, call in self.of_type("model_tool_call")
            if call.tool == tool
            and call.complete is not False
            and digest in {call.intent_digest or call.args_digest, call.args_digest, None}
        )

    @cached_property
    def compensating_tools(self) -> set[str]:
        """Tools that the registry or the history knows to undo something."""
        tools = {record.tool for _, record in self.of_type("compensation_started") if record.tool}
        tools |= {record.tool for _, record in self.effects if record.compensates and record.tool}
        if self.registry is not None:
            tools |= {
                tool.compensation.tool
                for tool in self.registry.tools.values()
                if tool.compensation and tool.compensation.tool
            }
        return tools

    def is_undo(self, attempt: Attempt) -> bool:
        """Whether an attempt undoes something: a compensation's tool that the model did not ask for."""
        if attempt.tool not in self.compensating_tools:
            return False
        return self.asked_for(attempt.tool, attempt.digest) == 0

    # tools

    def tool(self, name: str | None) -> Tool | None:
        """What the registry declares for a tool."""
        return self.registry.tools.get(name) if self.registry is not None and name else None

    def is_write(self, attempt: Attempt) -> bool:
        """Whether a call changes the world, by the record, else by the registry."""
        if attempt.start.effectful is not None:
            return attempt.start.effectful
        declared = self.tool(attempt.tool)
        return declared.effectful if declared else False

    def idempotency(self, attempt: Attempt) -> str:
        """`natural`, `keyed` or `irreversible`; without a registry a write is keyed where it carries a key."""
        if attempt.tool == MODEL:
            return "natural"
        declared = self.tool(attempt.tool)
        if declared is not None:
            return declared.idempotency
        if not self.is_write(attempt):
            return "natural"
        return "keyed" if attempt.start.idempotency_key else "irreversible"

    def need_s(self, name: str | None) -> float | None:
        """What a call of this tool needs: its declared p99, in seconds."""
        declared = self.tool(name)
        return declared.latency.p99_s if declared and declared.latency else None

    # time

    def left_s(self, at: float) -> float:
        """What is left of the run's wall clock at this instant; infinite where there is no limit."""
        if self.limits.wall_clock_s is None or self.started is None:
            return float("inf")
        return self.started.t + self.limits.wall_clock_s - at

    def left_after(self, attempt: Attempt) -> float:
        """What is left when an attempt ends, by the run's limit and by the deadline that it carried."""
        end = attempt.finish.t if attempt.finish else attempt.start.t
        left = self.left_s(end)
        carried = attempt.start.deadline_remaining_s
        return left if carried is None else min(left, attempt.start.t + carried - end)

    # effects

    @cached_property
    def effects(self) -> list[Line]:
        """What the service says of this run, without what the fault itself made it do."""
        return [(n, record) for n, record in self.of_type("effect") if not record.caused_by]

    @cached_property
    def forward_effects(self) -> list[Line]:
        """The run's forward effects: ground truth, and claims where the service told nothing of the tool."""
        found = [(n, e) for n, e in self.effects if e.outcome == "applied" and not e.compensates]
        for attempt in self.attempts:
            claimed = (
                attempt.tool not in self.world.observed_tools and self.is_write(attempt) and attempt.outcome == "ok"
            )
            if claimed and not self.is_undo(attempt) and attempt.finish and attempt.end_line:
                found.append((attempt.end_line, attempt.start))
        return sorted(found, key=lambda item: item[0])

    def is_undone(self, effect: Record) -> bool:
        """Whether a forward effect was undone, by the service's word, else by the agent's."""
        if effect.type == "effect":
            return effect.effect_id in self.world.undone
        return any(
            record.step == effect.step and record.outcome == "ok"
            for _, record in self.of_type("compensation_finished")
        )

    def settled(self, step: int | None, disposition: str) -> bool:
        """Whether the agent settled a step's effect this way."""
        return any(
            record.step == step and record.disposition == disposition for _, record in self.of_type("effect_settled")
        )

    @cached_property
    def completed(self) -> set[int]:
        """Steps that the run says it completed."""
        steps: set[int] = set(self.finished[1].completed or ()) if self.finished else set()
        for _, record in self.of_type("partial_success_returned"):
            steps |= set(record.completed or ())
        return steps

    # what the agent says of itself

    def said(self, mechanism: str) -> list[Line]:
        """`mechanism_acted` records of this name."""
        return [(n, record) for n, record in self.of_type("mechanism_acted") if record.name == mechanism]

    def asked(self, attempt: Attempt) -> Iterator[int]:
        """Lines at which the state of an attempt's key was asked for after its end."""
        key, ended = attempt.start.idempotency_key, attempt.end_line or attempt.line
        for line, record in self.said("outcome_query"):
            named = record.idempotency_key == key if record.idempotency_key else record.tool == attempt.tool
            if line > ended and named:
                yield line

    def known_done(self, attempt: Attempt) -> bool:
        """Whether asking had told, before anything was tried again, that an attempt had taken effect.

        The answer is what the service had done by then, silence included. Where neither wire nor service was
        watched, nothing says what the answer was, and asking alone has to do.
        """
        key, again = attempt.start.idempotency_key, self.later(attempt)
        if key is None:
            return False
        until = again[0].line if again else self.after_all
        asked = [line for line in self.asked(attempt) if line < until]
        watched = source_of(attempt.start) == "wire" or attempt.start.wire is not None
        if not watched and attempt.tool not in self.world.observed_tools:
            return bool(asked)
        where = (self.world.tenant_of(attempt.start), attempt.tool, key)
        applied = self.world.applied_keys.get(where, self.after_all)
        return any(applied < line for line in asked)

    def breaker_is_open(self, tool: str, line: int) -> bool:
        """Whether the tool's breaker stands open just before this line."""
        before = [r.to for at, r in self.of_type("breaker_state_changed") if r.tool == tool and at < line]
        return bool(before) and before[-1] == "open"

    def undoing_at(self, line: int) -> bool:
        """Whether a compensation was under way at this line, by the agent's own word."""
        open_steps: set[int | None] = set()
        for at, record in self.of_type("compensation_started", "compensation_finished"):
            if at < line:
                (open_steps.add if record.type == "compensation_started" else open_steps.discard)(record.step)
        return bool(open_steps)

    def exhausted(self, budget: str) -> Line | None:
        """The first `budget_exhausted` of this budget."""
        return next((item for item in self.of_type("budget_exhausted") if item[1].budget == budget), None)

    @cached_property
    def ends_explicitly(self) -> bool:
        """Whether the run ended with a status that does not claim success."""
        return self.status is not None and self.status != "succeeded"
