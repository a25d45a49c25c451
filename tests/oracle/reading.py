"""Section 3 of the contract, read over a whole history at once, for the oracle alone.

Nothing here is shared with the judge in `invariants/`: the only common ground is the contract's text and
the shape of a `Record`. Everything is a list and a question asked of the list; speed is no concern.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from traces.history import Limits, Record

HARNESS_TYPES = frozenset({"fault_injected", "harness_lag", "process_started", "process_exited"})
UNCOUNTED = "(a start, queue record or finish that does not count)"
IGNORED = "(a further run_started that is ignored)"


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One record with its line number and the type it is *read* as."""

    number: int
    record: Record
    kind: str

    @property
    def run(self) -> str:
        """The run this line belongs to."""
        return self.record.run_id

    @property
    def source(self) -> str:
        """Section 3: "default `service` for `effect`, `harness` for the types so marked, else `agent`"."""
        if self.record.source is not None:
            return self.record.source
        if self.record.type == "effect":
            return "service"
        return "harness" if self.record.type in HARNESS_TYPES else "agent"


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One tool call: its counted start, its counted finish, its counted queue record."""

    start: Line
    finish: Line | None
    queue: Line | None

    @property
    def run(self) -> str:
        """The run that made the call."""
        return self.start.run

    @property
    def attempt(self) -> str | None:
        """The attempt_id, unique within the run."""
        return self.start.record.attempt_id

    @property
    def tool(self) -> str | None:
        """Of the start, else of the finish."""
        return self._either(self.start.record.tool, self.finish.record.tool if self.finish else None)

    @property
    def group(self) -> str | None:
        """ "A call's resource_group is that of its `tool_call_queued` where it has one, else of its start"."""
        queued = self.queue.record.resource_group if self.queue is not None else None
        return self._either(queued, self.start.record.resource_group)

    @staticmethod
    def _either(first: str | None, second: str | None) -> str | None:
        return first if first is not None else second


@dataclass(frozen=True, slots=True, eq=False)
class Effect:
    """A forward effect: ground truth, or claimed only (then `effect_id` is None)."""

    at: int
    run: str
    world: str
    tenant: str
    tool: str | None
    step: int | None
    key: str | None
    intent: str | None
    args_digest: str | None
    intent_digest: str | None
    effect_id: str | None
    claimed: bool
    started: int | None
    finished: int | None

    @property
    def start_or_stand(self) -> int:
        """Where its call was started; "without a start on record: that stands"."""
        return self.at if self.started is None else self.started


class History:
    """The whole list, read once by section 3."""

    def __init__(self, records: Iterable[tuple[int, Record]]) -> None:
        # "world_finished ... of no run, whatever its run_id": it is no line of any run at all.
        raw = [Line(n, r, r.type) for n, r in records if r.type != "world_finished"]
        self.run_ids = list(dict.fromkeys(line.run for line in raw))
        self._by_run: dict[str, list[Line]] = {run: [] for run in self.run_ids}
        for line in raw:
            self._by_run[line.run].append(line)
        for run, lines in self._by_run.items():
            self._by_run[run] = [Line(x.number, x.record, _kind_read(x, lines)) for x in lines]
        self._of_kind: dict[tuple[str, str], list[Line]] = {}
        for line in (x for own in self._by_run.values() for x in own):
            self._of_kind.setdefault((line.run, line.kind), []).append(line)
        self._starts = {run: next(self.of(run, "run_started"), None) for run in self.run_ids}
        self.lines = sorted((x for own in self._by_run.values() for x in own), key=lambda x: x.number)
        # "An `effect` with outcome `applied` and no `caused_by` is ... else a *compensating effect*"
        self.compensating = [x for x in self.lines if _applied(x) and x.record.compensates is not None]
        self.calls = [call for run in self.run_ids for call in self._calls_of(run)]
        self.claimed_effectful = [
            c for c in self.calls if c.start.record.effectful is True and self.claimed_only(c.tool, self.world(c.run))
        ]
        self.forward = sorted([*self._ground_truth(), *self._claims()], key=lambda e: e.at)

    def of(self, run: str, *kinds: str) -> Iterator[Line]:
        """The lines of a run, in file order: all of them, or those of the kinds named."""
        if len(kinds) == 1:
            return iter(self._of_kind.get((run, kinds[0]), ()))
        return (x for x in self._by_run[run] if not kinds or x.kind in kinds)

    def start_of(self, run: str) -> Line | None:
        """The `run_started` of the run ("comes first in its run if there is one")."""
        return self._starts[run]

    def limits(self, run: str) -> Limits:
        """ "limits of a run: those of its `run_started`"; without one nothing is limited."""
        start = self.start_of(run)
        return (start.record.limits if start is not None else None) or Limits()

    def world(self, run: str) -> str:
        """ "`world` of `run_started`, default `""`"."""
        start = self.start_of(run)
        return (start.record.world if start is not None else None) or ""

    def run_tenant(self, run: str) -> str:
        """The run's tenant, "from its `run_started`, else "default""."""
        start = self.start_of(run)
        tenant = start.record.tenant if start is not None else None
        return "default" if tenant is None else tenant

    def tenant(self, line: Line) -> str:
        """The tenant of a record: its own, by default the run's."""
        return self.run_tenant(line.run) if line.record.tenant is None else line.record.tenant

    def last_finish(self, run: str) -> Line | None:
        """ "If a run finishes more than once, its last `run_finished` gives status, `completed` and end"."""
        return max(self.of(run, "run_finished"), key=lambda x: x.number, default=None)

    def status(self, run: str) -> str | None:
        """How the run ended; None where it never finished."""
        end = self.last_finish(run)
        return end.record.status if end is not None else None

    def completed(self, run: str) -> set[int]:
        """ "`completed` is joined with that of all its `partial_success_returned`"."""
        end = self.last_finish(run)
        told = [*self.of(run, "partial_success_returned"), *([end] if end is not None else [])]
        return {step for line in told for step in line.record.completed or ()}

    def lagged(self, run: str) -> bool:
        """ "`harness_lag` max_s > 0.25"."""
        return any((x.record.max_s or 0) > 0.25 + 1e-6 for x in self.of(run, "harness_lag"))

    def undone_by(self, effect: Effect) -> list[Line]:
        """The compensating effects for a ground-truth effect, of whatever run of its world."""
        if effect.effect_id is None:
            return []
        return [
            x
            for x in self.compensating
            if x.record.compensates == effect.effect_id and self.world(x.run) == effect.world
        ]

    def claimed_only(self, tool: str | None, world: str) -> bool:
        """ "*claimed only* where its world has no `effect` record of any outcome or cause for it"."""
        return not any(
            x.kind == "effect" and x.record.tool == tool and self.world(x.run) == world for x in self.lines
        )

    def compensations_own(self, call: Call) -> bool:
        """ "A claimed-only call of the tool that a `compensation_started` of its run, standing before it,
        names, started before a `compensation_finished` of that step follows, is the compensation's own"."""
        begun = call.start.number
        return any(
            undo.number < begun
            and undo.record.tool is not None  # "a `compensation_started` without tool names none"
            and undo.record.tool == call.tool
            and not any(
                undo.number < done.number < begun
                and done.record.step == undo.record.step  # "two records without step match" in this window
                for done in self.of(call.run, "compensation_finished")
            )
            for undo in self.of(call.run, "compensation_started")
        )

    def open_calls(self, run: str) -> list[Call]:
        """ "Any other claimed-only effectful call is *open* when it finished `timeout`, `unknown`, or `error`
        with `may_have_taken_effect`, or never; so is a start without `attempt_id`"."""
        return [
            call
            for call in self.claimed_effectful
            if call.run == run and not self.compensations_own(call) and _left_open(call)
        ]

    def _calls_of(self, run: str) -> Iterator[Call]:
        for start in self.of(run, "tool_call_started"):
            attempt = start.record.attempt_id
            same = [
                x
                for x in self.of(run, "tool_call_finished", "tool_call_queued")
                if attempt is not None and x.record.attempt_id == attempt
            ]
            finish = next((x for x in same if x.kind == "tool_call_finished"), None)
            queue = next((x for x in same if x.kind == "tool_call_queued"), None)
            yield Call(start, finish, queue)

    def _ground_truth(self) -> Iterator[Effect]:
        """ "An `effect` with outcome `applied` and no `caused_by` is a *forward effect* where `compensates`
        is absent"."""
        for x in self.lines:
            if not _applied(x) or x.record.compensates is not None:
                continue
            r = x.record
            call = next(
                (c for c in self.calls if c.run == x.run and c.attempt is not None and c.attempt == r.attempt_id),
                None,
            )
            yield Effect(
                at=x.number,
                run=x.run,
                world=self.world(x.run),
                tenant=self.tenant(x),
                tool=r.tool,
                step=r.step,
                key=r.idempotency_key,
                intent=r.intent_id,
                args_digest=r.args_digest,
                intent_digest=r.intent_digest,
                effect_id=r.effect_id,
                claimed=False,
                started=call.start.number if call is not None else None,
                finished=call.finish.number if call is not None and call.finish is not None else None,
            )

    def _claims(self) -> Iterator[Effect]:
        """ "a call whose start has `effectful` true and whose counted finish has outcome `ok` is its forward
        effect, standing at that finish (tool, tenant, step, intent, key, digests: of the start, else of the
        finish)"."""
        for call in self.claimed_effectful:
            finish = call.finish
            if finish is None or finish.record.outcome != "ok" or self.compensations_own(call):
                continue
            a, b = call.start.record, finish.record
            tenant = b.tenant if a.tenant is None else a.tenant
            yield Effect(
                at=finish.number,
                run=call.run,
                world=self.world(call.run),
                tenant=self.run_tenant(call.run) if tenant is None else tenant,
                tool=call.tool,
                step=b.step if a.step is None else a.step,
                key=b.idempotency_key if a.idempotency_key is None else a.idempotency_key,
                intent=b.intent_id if a.intent_id is None else a.intent_id,
                args_digest=b.args_digest if a.args_digest is None else a.args_digest,
                intent_digest=b.intent_digest if a.intent_digest is None else a.intent_digest,
                effect_id=None,
                claimed=True,
                started=call.start.number,
                finished=finish.number,
            )


def _applied(line: Line) -> bool:
    """An `effect`, `applied`, with no `caused_by`: ground truth of either kind."""
    return line.kind == "effect" and line.record.outcome == "applied" and line.record.caused_by is None


def _left_open(call: Call) -> bool:
    if call.attempt is None or call.finish is None:
        return True
    done = call.finish.record
    if done.outcome == "error":
        return done.error is not None and done.error.may_have_taken_effect is True
    return done.outcome in ("timeout", "unknown")


def _kind_read(line: Line, of_run: list[Line]) -> str:
    """As what a line of a run is read, given all lines of that run."""
    before = [x for x in of_run if x.number < line.number]
    if line.kind == "run_started" and any(x.kind == "run_started" for x in before):
        # "a further one is read as `run_resumed` where a `process_exited` or `run_finished` of the run
        # stands before it, else ignored"
        ended = any(x.kind in ("process_exited", "run_finished") for x in before)
        return "run_resumed" if ended else IGNORED
    attempt = line.record.attempt_id
    if attempt is None:
        return UNCOUNTED if line.kind == "tool_call_finished" else line.kind
    same = [x for x in before if x.record.attempt_id == attempt]
    if line.kind in ("tool_call_started", "tool_call_queued"):
        # "Of several starts or queue records of one `attempt_id` the first counts"
        again = any(x.kind == line.kind for x in same)
        # A call stands in the queue before it starts: a queue record after the start queues nothing.
        late = line.kind == "tool_call_queued" and any(x.kind == "tool_call_started" for x in same)
        return UNCOUNTED if again or late else line.kind
    if line.kind == "tool_call_finished":
        # "of finishes the first after the start"
        start = next((x for x in same if x.kind == "tool_call_started"), None)
        counts = start is not None and not any(x.kind == line.kind and x.number > start.number for x in same)
        return line.kind if counts else UNCOUNTED
    return line.kind
