"""Findings: facts worth knowing that break no invariant, each with code, fact and advice (contract section 4).

One function per code, listed in `FINDERS`. What only the harness can see (hosts that nobody declared, processes
that were left) is handed in.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reports.mechanisms.attempts import MODEL, Attempt, Line, source_of
from reports.mechanisms.retries import server_directed_wait
from reports.mechanisms.view import View, World
from reports.results import Finding
from traces.history import Limits, Record

if TYPE_CHECKING:
    from traces.registry import Registry

AMPLIFIED_FROM = 6
"""Attempts of one logical call from which retries count as amplified: twice the usual budget of three."""


def find(
    records: Sequence[Line],
    *,
    run_id: str | None = None,
    registry: Registry | None = None,
    limits: Limits | None = None,
    egress: Iterable[str] = (),
    orphans: Iterable[Mapping[str, Any]] = (),
) -> list[Finding]:
    """All findings of one run.

    `records` are (line, record) of the run or its world, `egress` hosts that the agent tried to reach and nobody
    declared, `orphans` processes (`pid`, `cmd`) that were alive after the run's end.
    """
    world = World(records)
    view = View(run_id if run_id is not None else next(iter(world.by_run), ""), world, registry, limits)
    found = [finding for finder in FINDERS for finding in finder(view)]
    return [*found, *egress_findings(egress), *orphan_findings(orphans)]


def retry_after_ignored(view: View) -> Iterator[Finding]:
    """A later attempt came before the time that the server had named."""
    early: dict[str, list[int]] = defaultdict(list)
    for seen in server_directed_wait(view):
        if not seen.acted:
            early[seen.tool or ""].append(seen.line)
    for tool, lines in early.items():
        yield Finding(
            code="retry-after-ignored",
            fact=f"{_named(tool)} was tried again before the time that its Retry-After had named"
            f" ({_times(len(lines))}).",
            advice="Wait at least as long as the server says; where that passes the deadline, stop and say so.",
            lines=list(lines),
            tool=tool or None,
            times=len(lines),
        )


def retry_amplification(view: View) -> Iterator[Finding]:
    """One logical call was sent far more often than it was asked for."""
    for (tool, _), attempts in view.by_intent.items():
        asked = max(1, view.asked_for(tool, attempts[0].digest))
        if len(attempts) >= AMPLIFIED_FROM * asked:
            yield Finding(
                code="retry-amplification",
                fact=f"{_named(tool)} was asked for {_times(asked)} and sent {len(attempts)} times.",
                advice="Retry in one layer only, with one budget for the run: retries of an SDK, a framework and"
                " the agent multiply.",
                lines=[attempt.line for attempt in attempts],
                tool=tool,
            )


def keyless_write(view: View) -> Iterator[Finding]:
    """A write that could carry an idempotency key went out without one."""
    bare: dict[str, list[int]] = defaultdict(list)
    for attempt in view.attempts:
        declared = view.tool(attempt.tool)
        keyed = declared.idempotency == "keyed" if declared else view.is_write(attempt)
        on_wire = attempt.start.wire is not None or source_of(attempt.start) == "wire"
        if keyed and on_wire and not attempt.start.idempotency_key:
            bare[attempt.tool].append(attempt.line)
    for tool, lines in bare.items():
        yield Finding(
            code="keyless-write",
            fact=f"{_named(tool)} was called without an idempotency key ({_times(len(lines))}).",
            advice="Derive one key from the intent before the first attempt and send it with every attempt.",
            lines=list(lines),
            tool=tool,
            times=len(lines),
        )


def status_dishonest(view: View) -> Iterator[Finding]:
    """The run claims success although a write that the model had planned never took effect."""
    if view.finished is None or view.status != "succeeded":
        return
    observed = bool(view.world.observed_tools)
    if not observed and not any(source_of(record) == "wire" for _, record in view.own):
        return  # nobody watched: there is the agent's word alone
    landed = [
        effect
        for _, effect in view.effects
        if effect.outcome in {"applied", "deduplicated"} and not effect.compensates
    ]

    def took_effect(call: Record) -> bool:
        if any(effect.tool == call.tool and _same_action(effect, call) for effect in landed):
            return True
        return not observed and any(_answered(attempt, call) for attempt in view.attempts)

    planned = _planned_writes(view)
    for at, (line, call) in enumerate(planned):
        if took_effect(call):
            continue
        replaced = any(later.tool == call.tool and took_effect(later) for _, later in planned[at + 1 :])
        if replaced or _was_declined(view, line, call):
            continue
        yield Finding(
            code="status-dishonest",
            fact=f"The run says it succeeded, but {_named(call.tool, begins=False)}, which it had planned, never took"
            " effect.",
            advice="Return partial_success with the failed step and what stays, or failed with an error kind.",
            lines=[line, view.finished[0]],
            tool=call.tool,
        )
        return


def service_duplicate(view: View) -> Iterator[Finding]:
    """The injected fault, not the agent, made the service act again."""
    lines = [
        line
        for line, record in view.of_type("effect")
        if record.caused_by and record.outcome == "applied" and not record.compensates
    ]
    if lines:
        tools = sorted({record.tool or "a tool" for line, record in view.own if line in set(lines)})
        yield Finding(
            code="service-duplicate",
            fact=f"A repeated delivery made {', '.join(tools)} act again ({_times(len(lines))}): the service does"
            " not collapse it.",
            advice="Let the service collapse by idempotency key; the agent cannot prevent this.",
            lines=list(lines),
            tool=tools[0] if len(tools) == 1 else None,
            times=len(lines),
        )


def phantom_claim(view: View) -> Iterator[Finding]:
    """The agent holds a write for done of which the service, which is watched, knows nothing."""
    for attempt in view.attempts:
        tool = attempt.tool
        if tool not in view.world.observed_tools or not view.is_write(attempt) or not attempt.ok:
            continue
        if any(_belongs(effect, attempt) for _, effect in view.world.records if effect.type == "effect"):
            continue
        yield Finding(
            code="phantom-claim",
            fact=f"The agent holds {_named(tool, begins=False)} for done; the service did nothing.",
            advice="Take a write for done only when the service's own answer, or a query of its state, says so.",
            lines=[attempt.line, attempt.end_line or attempt.line],
            tool=tool,
        )


def two_effects_in_one_step(view: View) -> Iterator[Finding]:
    """Two different effects share a step number, so that a settlement by step cannot tell them apart."""
    steps: dict[int, list[Line]] = defaultdict(list)
    for line, effect in view.forward_effects:
        if effect.step is not None:
            steps[effect.step].append((line, effect))
    for step, effects in steps.items():
        actions = {(e.tool, e.intent_id, e.intent_digest or e.args_digest) for _, e in effects}
        if len(actions) > 1:  # the same action twice is a duplicate, which is an invariant's matter
            tools = Counter(effect.tool or "?" for _, effect in effects)
            listed = ", ".join(f"{tool} × {count}" if count > 1 else tool for tool, count in tools.items())
            yield Finding(
                code="two-effects-in-one-step",
                fact=f"Step {step} holds {len(effects)} effects ({listed}).",
                advice="Give every effectful call a step of its own: settlement and resumption go by step.",
                lines=[line for line, _ in effects],
            )


def deadline_untraceable(view: View) -> Iterator[Finding]:
    """The run has a time limit and its calls carry no deadline, so nobody downstream can see it."""
    if view.limits.wall_clock_s is None:
        return
    sent = [a for a in view.attempts if a.start.wire is not None or source_of(a.start) == "wire"]
    if sent and not any(a.start.deadline_remaining_s is not None for a in sent):
        yield Finding(
            code="deadline-untraceable",
            fact=f"The run has {view.limits.wall_clock_s:g} s, and none of its {len(sent)} tool calls carries what"
            " is left of them.",
            advice="Send the remaining time with every call (X-Agent-Deadline-Ms) and let it only fall.",
            lines=[sent[0].line],
        )


def unstructured_tool_error(view: View) -> Iterator[Finding]:
    """A tool failed without saying what kind of failure it was, and no fault was the reason."""
    bare: dict[str, list[int]] = defaultdict(list)
    for attempt in view.attempts:
        finish = attempt.finish
        if finish is None or attempt.end_line is None or attempt.outcome not in {"error", "rejected"}:
            continue
        struck = any(attempt.line < line <= attempt.end_line + 1 for line, _ in view.of_type("fault_injected"))
        if not struck and not (finish.error and finish.error.kind):
            bare[attempt.tool].append(attempt.end_line)
    for tool, lines in bare.items():
        yield Finding(
            code="unstructured-tool-error",
            fact=f"{_named(tool)} failed without an error kind ({_times(len(lines))}).",
            advice="Let the tool say kind, retryable, retry_after_s and may_have_taken_effect: without them an agent"
            " cannot choose between repeating, asking and giving up.",
            lines=list(lines),
            tool=tool,
            times=len(lines),
        )


def egress_findings(hosts: Iterable[str]) -> Iterator[Finding]:
    """Hosts that the agent tried to reach and nobody declared."""
    for host, count in sorted(Counter(hosts).items()):
        yield Finding(
            code="egress",
            fact=f"The agent tried to reach {host} ({_times(count)}), which nobody declared.",
            advice="Declare the tool in tools.yaml, or take the call out: it bypasses every fault and every check.",
            times=count,
        )


def orphan_findings(processes: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    """Processes that were alive after the end of their run."""
    for process in processes:
        yield Finding(
            code="orphan-process",
            fact=f"Process {process.get('pid', '?')} ({process.get('cmd') or 'unknown command'}) was alive after the"
            " run had ended.",
            advice="End what the agent starts: a process group or a subreaper, and a bounded wait.",
        )


FINDERS: tuple[Callable[[View], Iterator[Finding]], ...] = (
    retry_after_ignored,
    retry_amplification,
    keyless_write,
    status_dishonest,
    service_duplicate,
    phantom_claim,
    two_effects_in_one_step,
    deadline_untraceable,
    unstructured_tool_error,
)


def _planned_writes(view: View) -> list[Line]:
    """Writes that the model asked for in whole messages, else those of the agent's last plan."""
    asked = [
        (line, call)
        for line, call in view.of_type("model_tool_call")
        if call.complete is not False and _is_write(view, call.tool)
    ]
    if asked:
        return asked
    plans = list(view.of_type("plan_created"))
    if not plans:
        return []
    line, plan = plans[-1]
    return [
        (
            line,
            Record(type="planned", t=plan.t, run_id=plan.run_id, tool=a.tool, step=a.step, args_digest=a.args_digest),
        )
        for a in plan.actions or ()
        if _is_write(view, a.tool)
    ]


def _is_write(view: View, tool: str | None) -> bool:
    declared = view.tool(tool)
    if declared is not None:
        return declared.effectful
    return any(attempt.tool == tool and view.is_write(attempt) for attempt in view.attempts)


def _same_action(effect: Record, call: Record) -> bool:
    if effect.intent_digest and call.intent_digest:
        return effect.intent_digest == call.intent_digest
    return effect.args_digest is None or call.args_digest is None or effect.args_digest == call.args_digest


def _answered(attempt: Attempt, call: Record) -> bool:
    """Whether the wire saw the planned write answered as done: where no service told anything, that has to do."""
    return attempt.tool == call.tool and attempt.ok and _same_action(attempt.start, call)


def _was_declined(view: View, line: int, call: Record) -> bool:
    """Whether the service refused the write on its merits, or the agent before sending it: the model was told."""
    for attempt in view.attempts:
        if attempt.tool == call.tool and attempt.line > line and _same_action(attempt.start, call):
            return attempt.outcome == "rejected"
    return any(
        at > line and refused.tool == call.tool and refused.reason in {"preflight", "confirmation", "limit"}
        for at, refused in view.of_type("tool_call_refused")
    )


def _belongs(effect: Record, attempt: Attempt) -> bool:
    start = attempt.start
    if effect.tool != attempt.tool:
        return False
    for mine, its in (
        (start.attempt_id, effect.attempt_id),
        (start.wire, effect.wire),
        (start.idempotency_key, effect.idempotency_key),
    ):
        if mine is not None and mine == its:
            return True
    if effect.run_id != start.run_id or effect.attempt_id is not None or effect.wire is not None:
        return False
    return _same_action(effect, start)


def _named(tool: str | None, *, begins: bool = True) -> str:
    name = "the model" if tool == MODEL else f"the tool {tool}" if tool else "a tool"
    return name[0].upper() + name[1:] if begins else name


def _times(count: int) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count} times"
