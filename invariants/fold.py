"""The fold: one pass over a history that keeps what the invariants need (contract sections 3 and 4).

It decides which records count, derives calls, forward effects and open compensations, and tells the invariants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from invariants.claims import finish_claim, resolve_claims
from invariants.facts import LAG_S, NO_LIMITS, TOLERANCE, Call, Forward, Run, World
from invariants.invariant import Hook, Invariant
from traces.history import CoreRecord, Limits

_SLACK_S = 0.05 + TOLERANCE
"""How far `t` may fall back within a run."""

_NOT_OF_AGENT = frozenset({"effect", "fault_injected", "harness_lag", "process_started", "process_exited"})
"""Types whose default source is neither the agent nor the wire."""

_READ_FIRST = frozenset({"run_started", "world_finished"})
"""Types that need a look before anything else: they may be of no run, or count as something else."""

Step = Callable[[Run, int, CoreRecord], bool]
"""Folds one record in and says whether it counts, that is whether the invariants are told of it."""

_Entry = tuple[bool | None, Step | None, tuple[Hook, ...]]
"""Of a record type: whether it is of the agent or the wire by default (None: to be read first), what folds it in,
and the hooks that are told."""

_UNKNOWN_TYPE: _Entry = (True, None, ())


class Fold:
    """Folds records in file order.

    `faults`: (line, what is wrong and what would be right) for records that stand where they must not.
    `on_hook_error` is told of an invariant whose hook raised; the fold goes on without it.
    """

    def __init__(
        self,
        invariants: Iterable[Invariant],
        *,
        default_limits: Limits | None = None,
        on_hook_error: Callable[[Invariant, int, Exception], None],
    ) -> None:
        self.faults: list[tuple[int, str]] = []
        self.order: dict[str, int] = {}
        """Every run met so far, also of finished worlds, with its place by first appearance."""
        self.worlds: dict[str, World] = {}
        self._finished_worlds: set[str] = set()
        self._runs: dict[str, Run] = {}
        self._default_limits = default_limits
        self._on_hook_error = on_hook_error
        self._invariants = list(invariants)
        self._no_notes: list[None] = [None] * len(self._invariants)
        self._steps: dict[str, Step] = {
            "tool_call_started": self._call_started,
            "tool_call_finished": self._call_finished,
            "effect": self._effect,
            "compensation_started": self._compensation_started,
            "compensation_finished": self._compensation_finished,
            "run_finished": self._run_finished,
            "run_resumed": self._run_resumed,
            "process_exited": self._process_exited,
            "partial_success_returned": self._partial_success,
            "harness_lag": self._harness_lag,
        }
        self._hooks: dict[str, tuple[tuple[Invariant, Hook], ...]] = {}
        self._users: tuple[Invariant, ...] = ()
        self._openers: tuple[Invariant, ...] = ()
        self._table: dict[str, _Entry] = {}
        self._subscribe()

    def _subscribe(self) -> None:
        hooks: dict[str, list[tuple[Invariant, Hook]]] = {}
        for invariant in self._invariants:
            for record_type, hook in invariant.hooks().items():
                hooks.setdefault(record_type, []).append((invariant, hook))
        self._hooks = {record_type: tuple(pairs) for record_type, pairs in hooks.items()}
        self._users = tuple(i for i in self._invariants if type(i).used is not Invariant.used)
        self._openers = tuple(i for i in self._invariants if type(i).run_opened is not Invariant.run_opened)
        self._table.clear()
        for record_type in {*self._steps, *hooks, *_NOT_OF_AGENT, *_READ_FIRST}:
            of_agent = None if record_type in _READ_FIRST else record_type not in _NOT_OF_AGENT
            told = tuple(hook for _, hook in self._hooks.get(record_type, ()))
            self._table[record_type] = (of_agent, self._steps.get(record_type), told)

    def _report(self, record_type: str, failed: Hook, *, line: int, error: Exception) -> None:
        for invariant, hook in self._hooks[record_type]:
            if hook == failed:
                self._on_hook_error(invariant, line, error)

    def drop(self, invariant: Invariant) -> None:
        """Tells the invariant nothing from here on."""
        self._invariants = [kept for kept in self._invariants if kept is not invariant]
        self._subscribe()

    def expect(self, run_id: str) -> None:
        """A malformed line was the start of this run: its later records are not held against the order rules."""
        if run_id not in self.order:
            self._new_run(run_id, self._world_of(""), t=float("-inf")).start_line = -1

    def feed(self, numbered: Iterable[tuple[int, CoreRecord]]) -> Iterator[World]:
        """Folds (line, record) pairs in; gives each world that a record finishes, whose runs are to be ruled on.

        This loop is where the time of judging goes: one look into one table says what a type of record needs.
        """
        runs, table = self._runs, self._table
        for line, record in numbered:
            kind = record.type
            of_agent, fold, hooks = table.get(kind, _UNKNOWN_TYPE)
            run = runs.get(record.run_id)
            if of_agent is None:
                if kind == "world_finished":
                    world = self._finish_world(record.world or "")
                    if world is not None:
                        yield world
                    continue
                of_agent = True
                if run is not None:
                    if not self._started_again(run, line, record):
                        continue
                    kind = "run_resumed"
                    _, fold, hooks = table[kind]
            if run is None:
                run = self._open(line, record)
            t = record.t
            if t > run.latest:
                run.latest = t
            elif run.latest - t > _SLACK_S:
                self._out_of_order(run, line, t)
            source = record.source
            if of_agent if source is None else (source == "agent" or source == "wire"):
                run.last_line = line
                run.last_t = t
                step = record.step
                if step is not None and step not in run.steps:
                    run.steps[step] = line
            if record.input_tokens is not None or record.output_tokens is not None or record.cost_usd is not None:
                for invariant in self._users:
                    try:
                        invariant.used(run, line, record)
                    except Exception as error:  # noqa: BLE001 - a checker that raises is a harness error
                        self._on_hook_error(invariant, line, error)
            if fold is not None and not fold(run, line, record):
                continue
            for hook in hooks:
                try:
                    hook(run, line, record)
                except Exception as error:  # noqa: BLE001 - a checker that raises is a harness error, never a pass
                    self._report(kind, hook, line=line, error=error)

    def closing(self) -> list[World]:
        """The worlds that are still open, in order of first appearance; the fold is at its end."""
        worlds = list(self.worlds.values())
        for world in worlds:
            self._settle_facts(world)
        self.worlds.clear()
        self._runs.clear()
        return worlds

    # runs and worlds

    def _open(self, line: int, record: CoreRecord) -> Run:
        """A run's first record; it names the run's world, tenant and limits if it is a `run_started`."""
        starts = record.type == "run_started"
        name = (record.world or "") if starts else ""
        if record.run_id in self.order:
            self.faults.append((line, f"run `{record.run_id}` goes on after a world_finished promised it would not"))
        elif name in self._finished_worlds:
            self.faults.append((line, f"a record of world `{name}` after its world_finished, which is its last"))
        run = self._new_run(record.run_id, self._world_of(name), t=record.t)
        if starts:
            run.start_line, run.start_t = line, record.t
            if record.tenant is not None:
                run.tenant = record.tenant
            if record.limits is not None:
                run.limits = _merged(record.limits, self._default_limits)
        for invariant in self._openers:
            try:
                invariant.run_opened(run, line)
            except Exception as error:  # noqa: BLE001 - a checker that raises is a harness error, never a pass
                self._on_hook_error(invariant, line, error)
        return run

    def _world_of(self, name: str) -> World:
        world = self.worlds.get(name)
        if world is None:
            world = self.worlds[name] = World(name, self._no_notes.copy())
        return world

    def _new_run(self, run_id: str, world: World, *, t: float) -> Run:
        order = self.order.setdefault(run_id, len(self.order))
        run = Run(run_id, order, world, "default", self._default_limits or NO_LIMITS, t, self._no_notes.copy())
        self._runs[run_id] = run
        world.runs.append(run)
        return run

    def _started_again(self, run: Run, line: int, record: CoreRecord) -> bool:
        """A `run_started` of a run that has records already; True where it is read as a resumption."""
        if not run.start_line:
            run.start_line = -1  # say it once
            self.faults.append(
                (line, f"run_started after another record of its run `{run.run_id}`: it comes first in its run")
            )
        if run.stopped:
            return True
        if record.t > run.latest:
            run.latest = record.t
        elif run.latest - record.t > _SLACK_S:
            self._out_of_order(run, line, record.t)
        return False

    def _out_of_order(self, run: Run, line: int, t: float) -> None:
        self.faults.append(
            (
                line,
                f"t is {t:g}, {run.latest - t:.3f} s below an earlier record of its run `{run.run_id}`: file order "
                f"is the order of happening (0.05 s are allowed; --sort sorts first)",
            )
        )

    def _finish_world(self, name: str) -> World | None:
        self._finished_worlds.add(name)
        world = self.worlds.pop(name, None)
        if world is not None:
            for run in world.runs:
                del self._runs[run.run_id]
            self._settle_facts(world)
        return world

    def _settle_facts(self, world: World) -> None:
        """Completes what only the whole world tells: calls that began after their effect, and claimed effects."""
        for run in world.runs:
            calls = run.calls
            for forward in run.forwards:
                if forward.call is None and forward.attempt_id is not None:
                    forward.call = calls.get(forward.attempt_id)
            if run.claims is not None:
                resolve_claims(run, world.observed)

    # single record types

    def _call_started(self, run: Run, line: int, record: CoreRecord) -> bool:
        attempt = record.attempt_id
        windows = run.windows
        call = None
        if attempt is not None:
            if attempt in run.calls:
                return False
            call = run.calls[attempt] = Call(line, record.step, bool(windows))
        if record.effectful:
            run.effectful = True
            tool = record.tool
            if tool is None or tool not in run.world.observed:
                claim = Forward(
                    0,
                    0.0,
                    tool,
                    record.tenant,
                    record.step,
                    record.idempotency_key,
                    record.intent_id,
                    record.args_digest,
                    record.intent_digest,
                    False,
                    None,
                    attempt,
                    call,
                    True,
                    "open",
                )
                if windows:
                    claim.named = frozenset().union(*windows.values())
                if run.claims is None:
                    run.claims = []
                run.claims.append(claim)
                if call is not None:
                    call.claim = claim
        return True

    def _call_finished(self, run: Run, line: int, record: CoreRecord) -> bool:
        attempt = record.attempt_id
        call = run.calls.get(attempt) if attempt is not None else None
        if call is None or call.finished:
            return False
        call.finished = line
        claim = call.claim
        if claim is not None:
            call.claim = None
            finish_claim(claim, line, record)
        return True

    def _effect(self, run: Run, line: int, record: CoreRecord) -> bool:
        world = run.world
        world.observed.add(record.tool)
        if record.caused_by is not None:
            return record.caused_by != "fault"
        if record.outcome == "applied":
            run.has_effect = True
            if record.compensates is not None:
                world.undone.setdefault(record.compensates, line)
            else:
                attempt = record.attempt_id
                run.forwards.append(
                    Forward(
                        line,
                        record.t,
                        record.tool,
                        record.tenant if record.tenant is not None else run.tenant,
                        record.step,
                        record.idempotency_key,
                        record.intent_id,
                        record.args_digest,
                        record.intent_digest,
                        bool(run.windows),
                        record.effect_id,
                        attempt,
                        run.calls.get(attempt) if attempt is not None else None,
                    )
                )
        return True

    def _compensation_started(self, run: Run, line: int, record: CoreRecord) -> bool:
        run.recovered = True
        if not run.undo_began:
            run.undo_began = line
        step = record.step
        if run.windows is None:
            run.windows = {}
        named = run.windows.setdefault(step, set())
        if record.tool is not None:
            named.add(record.tool)
        if step is not None:
            if run.undo_starts is None:
                run.undo_starts = {}
            run.undo_starts.setdefault(step, []).append(line)
        return True

    def _compensation_finished(self, run: Run, line: int, record: CoreRecord) -> bool:
        step = record.step
        if run.windows:
            run.windows.pop(step, None)
        if step is not None and record.outcome == "ok":
            if run.undo_ends is None:
                run.undo_ends = {}
            run.undo_ends.setdefault(step, []).append(line)
        return True

    def _run_finished(self, run: Run, line: int, record: CoreRecord) -> bool:
        run.stopped = True
        run.end_line, run.end_t = line, record.t
        run.end_status, run.end_completed = record.status, record.completed
        return True

    def _run_resumed(self, run: Run, line: int, record: CoreRecord) -> bool:
        run.recovered = True
        return True

    def _process_exited(self, run: Run, line: int, record: CoreRecord) -> bool:
        run.stopped = True
        run.last_line, run.last_t = line, record.t
        if record.injected:
            run.recovered = True
        return True

    def _partial_success(self, run: Run, line: int, record: CoreRecord) -> bool:
        if record.completed:
            run.completed = (run.completed or set()).union(record.completed)
        return True

    def _harness_lag(self, run: Run, line: int, record: CoreRecord) -> bool:
        if record.max_s is not None and record.max_s > LAG_S + TOLERANCE:
            run.lagged = True
        return True


def _merged(own: Limits, defaults: Limits | None) -> Limits:
    """The run's own limits, each missing one taken from the defaults."""
    if defaults is None:
        return own
    missing = {
        name: value
        for name in Limits.__struct_fields__
        if getattr(own, name) is None and (value := getattr(defaults, name)) is not None
    }
    return msgspec.structs.replace(own, **missing)
