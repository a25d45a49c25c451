"""What a run does in a random history: each gesture is one or more threads of records yet to be told.

A gesture tells a sensible piece of behaviour (a call with its effect, an undoing, an end), then the palette
of the history spoils it: fields fall away or are swapped, records change places, come twice or not at all.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tests.oracle.palette import GESTURES, Fields

if TYPE_CHECKING:
    from tests.oracle.histories import Run, Story

Threads = list[list[Fields]]
OUTCOMES = ("ok", "ok", "ok", "ok", "error", "timeout", "unknown", "rejected", "deduplicated")
STATUSES = ("succeeded", "succeeded", "partial_success", "rolled_back", "failed", "handed_off")


def gesture(story: Story, run: Run, name: str | None = None) -> Threads:
    """The threads of one gesture, drawn by the palette's weights unless named."""
    if name is None:
        weights = story.palette.weights
        name = story.rng.choices(GESTURES, [weights[g] for g in GESTURES])[0]
    threads: Threads = globals()[f"_{name}"](story, run)
    for thread in threads:
        _spoil(story, thread)
    return threads


def _spoil(story: Story, thread: list[Fields]) -> None:
    rng, p = story.rng, story.palette
    for fields in thread:
        for name in list(fields):
            if name not in ("type", "@run", "to", "world") and rng.random() < p.drop / 4:
                del fields[name]
            elif rng.random() < p.swap / 4:
                _swap(story, fields, name)
    if len(thread) > 1 and rng.random() < p.disorder:
        i, j = rng.randrange(len(thread)), rng.randrange(len(thread))
        thread[i], thread[j] = thread[j], thread[i]
    if thread and rng.random() < p.disorder / 2:
        del thread[rng.randrange(len(thread))]


def _swap(story: Story, fields: Fields, name: str) -> None:
    rng, p = story.rng, story.palette
    if name == "step":
        fields[name] = _step(story)
    elif name == "tool":
        fields[name] = rng.choice(p.tools)
    elif name in ("args_digest", "intent_digest"):
        fields[name] = rng.choice(("d1", "d2"))
    elif name == "resource_group":
        fields[name] = rng.choice(p.groups)
    elif name == "idempotency_key":
        fields[name] = f"k{rng.randrange(p.keys)}"
    elif name == "attempt_id":
        fields[name] = f"a{rng.randrange(4)}"


def _some(rng: Random, chance: float) -> bool:
    return rng.random() < chance


def _step(story: Story) -> int | None:
    return None if story.rng.random() < story.palette.drop / 2 else story.rng.randint(0, story.palette.steps)


def _common(story: Story, run: Run) -> Fields:
    rng, p = story.rng, story.palette
    run.attempts += 1
    story.fresh += 1
    fresh = _some(rng, p.fresh)
    key = f"k{story.fresh}x" if fresh else rng.choice([*(f"k{i}" for i in range(p.keys)), None, ""])
    return {
        "tool": rng.choice(p.tools),
        "step": run.attempts % (p.steps + 1) if _some(rng, p.tidy) else _step(story),
        "attempt_id": rng.choice(("", "a1", "a2", "a3")) if _some(rng, p.reuse) else f"a{run.attempts}",
        "intent_id": f"i{story.fresh}x" if fresh else rng.choice([*(f"i{i}" for i in range(p.intents)), None, ""]),
        "idempotency_key": key,
        "args_digest": rng.choice(p.digests),
        "intent_digest": rng.choice(["d1", "", None, None, None]),
        "tenant": rng.choice(p.tenants) if _some(rng, 0.2) else None,
    }


def _new_effect(story: Story, run: Run, common: Fields, *, compensates: str | None = None) -> Fields:
    effect: Fields = {**common, "type": "effect", "outcome": "applied"}
    effect["effect_id"] = story.effect_id(run.world)
    if compensates is not None:
        effect["compensates"] = compensates
    else:
        run.effects.append({**effect, "@run": run})
    return effect


def _call(story: Story, run: Run) -> Threads:
    rng, p = story.rng, story.palette
    common = _common(story, run)
    group = rng.choice(p.groups)
    thread: list[Fields] = []
    if _some(rng, p.worded):
        thread += _model_words(story, run, common)[0]
    if _some(rng, p.queued):
        thread.append({**common, "type": "tool_call_queued", "resource_group": group})
        if _some(rng, 0.1):
            thread.append({**common, "type": "tool_call_refused", "reason": "budget"})
    start: Fields = {
        **common,
        "type": "tool_call_started",
        "effectful": rng.choice((True, True, True, False, None)),
        "resource_group": group if _some(rng, 0.9) else rng.choice(p.groups),
    }
    if _some(rng, p.deadlines):
        start["@deadline"] = run.deadline + rng.choice((0, 0, 0, -0.5, 0.125, 0.25, 0.5, 8))
        start["scope"] = rng.choice((None, None, "root", "sub", ""))
    thread.append(start)
    outcome = rng.choice(OUTCOMES)
    if common["tool"] not in p.claimed or _some(rng, 0.01):
        how = rng.choice(("applied", "applied", "applied", "applied", "deduplicated", "rejected"))
        effect = _new_effect(story, run, common) if how == "applied" else {**common, "type": "effect"}
        effect["outcome"] = how
        if how == "deduplicated" and run.effects and _some(rng, 0.8):
            effect["effect_id"] = rng.choice(run.effects)["effect_id"]
        thread.append(effect)
        if _some(rng, 0.1):
            cause = "fault" if _some(rng, 0.8) else "operator"
            thread.append({**_new_effect(story, run, common), "caused_by": cause})
            run.effects.pop()
    elif _some(rng, 0.01):
        thread.append({**common, "type": "effect", "outcome": "rejected", "caused_by": "fault"})
    elif outcome == "ok":
        run.effects.append({**common, "effect_id": None, "@run": run})
    if not _some(rng, p.disorder / 4):
        finish: Fields = {**common, "type": "tool_call_finished", "outcome": outcome}
        if common["tenant"] is None and _some(rng, 0.1):
            finish["tenant"] = rng.choice(p.tenants)
        if outcome == "error" or _some(rng, 0.05):
            finish["error"] = {"kind": "x", "may_have_taken_effect": rng.choice((True, False, None))}
        thread.append(finish)
    return [thread]


def _undo_of(story: Story, run: Run, victim: Fields) -> list[Fields]:
    rng, p = story.rng, story.palette
    tool = rng.choice([*p.tools, "refund", "refund", None])
    step = victim.get("step") if _some(rng, 0.9) else rng.choice((None, _step(story)))
    begun: Fields = {"type": "compensation_started", "step": step, "tool": tool, "strength": "strong"}
    thread = [begun]
    if _some(rng, 0.2):  # a first try that failed, mostly said so
        failed: Fields = {"type": "compensation_finished", "step": step, "outcome": "error"}
        thread += [failed, dict(begun)] if _some(rng, 0.6) else [dict(begun)]
    if victim.get("effect_id") is not None and (_some(rng, 0.8) or tool not in p.claimed):
        common = {"tool": tool, "step": step, "idempotency_key": rng.choice((None, "k0"))}
        undo = _new_effect(story, victim["@run"], common, compensates=victim["effect_id"])
        others = [r for r in story.runs if r.world == victim["@run"].world]
        undo["@run"] = rng.choice(others) if _some(rng, p.elsewhere) else victim["@run"]
        undo["caused_by"] = "fault" if _some(rng, 0.04) else None
        undo["outcome"] = rng.choice(("deduplicated", "rejected")) if _some(rng, 0.1) else "applied"
        thread.append(undo)
    elif _some(rng, 0.8):
        common = {**_common(story, run), "tool": tool}
        thread.append({**common, "type": "tool_call_started", "effectful": True})
        thread.append({**common, "type": "tool_call_finished", "outcome": rng.choice(OUTCOMES)})
    if not _some(rng, 0.1):
        how = "ok" if _some(rng, 0.8) else rng.choice(("error", "manual", "expired"))
        thread.append({"type": "compensation_finished", "step": step, "tool": tool, "outcome": how})
    if _some(rng, 0.3):
        how = rng.choice(("compensated", "compensated", "manual"))
        thread.append({"type": "effect_settled", "step": step, "disposition": how})
    return thread


def _undo(story: Story, run: Run) -> Threads:
    rng = story.rng
    pool = run.effects if not _some(rng, story.palette.elsewhere) else [e for r in story.runs for e in r.effects]
    if not pool:
        return []
    victim = pool[-1] if _some(rng, story.palette.tidy) else rng.choice(pool)
    if _some(rng, 0.7):
        victim["@run"].effects.remove(victim)
    return [_undo_of(story, run, victim)]


def _rollback(story: Story, run: Run) -> Threads:
    rng = story.rng
    order = run.effects[::-1][:6]
    if not _some(rng, story.palette.tidy):
        rng.shuffle(order)
    run.effects = []
    status = "rolled_back" if _some(rng, 0.8) else rng.choice(STATUSES)
    undoing = [fields for victim in order for fields in _undo_of(story, run, victim)]
    return [[*undoing, {"type": "run_finished", "status": status}]]


def _stray_undo(story: Story, run: Run) -> Threads:
    rng, known = story.rng, story.effect_ids.get(run.world, 1)
    named = f"e{rng.randint(max(1, known - 8), known + 1)}"
    common: Fields = {"tool": rng.choice([*story.palette.tools, "refund"]), "step": _step(story)}
    return [[_new_effect(story, run, common, compensates=named)]]


def _settle(story: Story, run: Run) -> Threads:
    how = story.rng.choice(("kept", "kept", "compensated", "uncompensatable", "manual"))
    return [[{"type": "effect_settled", "step": _step(story), "disposition": how}]]


def _finish(story: Story, run: Run) -> Threads:
    rng = story.rng
    end: Fields = {"type": "run_finished", "status": rng.choice(STATUSES)}
    if end["status"] == "failed" or _some(rng, 0.1):
        end["error"] = rng.choice((None, {"kind": ""}, {"message": "no"}, {"kind": "budget"}, {"kind": "down"}))
    if end["status"] == "partial_success" or _some(rng, 0.1):
        end["completed"] = [s for s in range(story.palette.steps + 1) if _some(rng, 0.6)]
    return [[end]]


def _exit(story: Story, run: Run) -> Threads:
    rng = story.rng
    gone: Fields = {
        "type": "process_exited",
        "exit_code": rng.choice((None, 0, 0, 1, 137)),
        "signal": rng.choice((None, None, 0, "", "SIGKILL", 9)),
        "injected": rng.choice((True, True, False, None)),
    }
    back: list[list[Fields]] = [[], [{"type": "run_resumed", "from_step": 2, "skipped": [1]}]]
    if run.started:
        back.append([story.start_record(run)])
    return [[gone, *rng.choice(back)]]


def _restart(story: Story, run: Run) -> Threads:
    if not run.started or _some(story.rng, 0.2):
        return [[{"type": "run_resumed", "step": _step(story)}]]
    again = story.start_record(run)
    again["world"] = story.rng.choice((None, "", "w1", "elsewhere"))
    again["step"] = _step(story)
    return [[again]]


def _model_call(story: Story, run: Run) -> Threads:
    rng = story.rng
    done: Fields = {"type": "model_call_finished", "step": _step(story), "outcome": "ok"}
    done["input_tokens"] = rng.choice((None, 0, 10, 50, 50.25, 50.0000004))
    done["output_tokens"] = rng.choice((None, 0, 10, 50))
    done["cost_usd"] = rng.choice((None, 0, 0.25, 0.5, 0.2500004))
    return [[{"type": "model_call_started", "step": _step(story)}, done]]


def _plan(story: Story, run: Run) -> Threads:
    rng, p = story.rng, story.palette
    chosen = [(s, rng.choice([*p.tools, None])) for s in range(p.steps + 2) if _some(rng, 0.6)]
    thread: list[Fields] = [{"type": "plan_created", "actions": [{"step": s, "tool": tool} for s, tool in chosen]}]
    if _some(rng, 0.4):
        thread += [{"type": "tool_call_refused", "step": s, "reason": "budget"} for s, _ in chosen]
    return [thread]


def _exhaust(story: Story, run: Run) -> Threads:
    spent = story.rng.choice(("steps", "wall_clock", "tokens", "cost", "retry", "retry", "retry", None))
    return [[{"type": "budget_exhausted", "budget": spent}]]


def _breaker(story: Story, run: Run) -> Threads:
    rng, p = story.rng, story.palette
    tool = rng.choice(p.tools)
    states = rng.choice((["open"], ["open", "half_open"], ["open", "half_open", "closed"], ["half_open"], [None]))
    thread: list[Fields] = [{"type": "breaker_state_changed", "tool": tool, "to": to} for to in states]
    if _some(rng, 0.5):
        thread.insert(rng.randint(0, len(thread)), {"type": "tool_call_started", "tool": tool})
    return [thread]


def _refuse(story: Story, run: Run) -> Threads:
    fields = _common(story, run)
    fields["attempt_id"] = f"a{story.rng.randint(1, run.attempts)}"
    return [[{**fields, "type": "tool_call_refused", "reason": "breaker"}]]


def _queue(story: Story, run: Run) -> Threads:
    rng, p = story.rng, story.palette
    common = {**_common(story, run), "resource_group": rng.choice(p.groups), "tenant": rng.choice(p.tenants)}
    thread: list[Fields] = [{**common, "type": "tool_call_queued"}]
    if _some(rng, 0.5):  # somebody else comes later and is served first
        other = rng.choice([r for r in story.runs if r.world == run.world])
        theirs = {**_common(story, other), "resource_group": common["resource_group"], "@run": other}
        theirs["tenant"] = rng.choice(p.tenants)
        thread += [{**theirs, "type": kind} for kind in ("tool_call_queued", "tool_call_started")]
    if _some(rng, 0.7):
        thread.append({**common, "type": "tool_call_started", "effectful": False})
        thread.append({**common, "type": "tool_call_finished", "outcome": "ok"})
    return [thread]


def _lag(story: Story, run: Run) -> Threads:
    return [[{"type": "harness_lag", "max_s": story.rng.choice((0.01, 0.25, 0.5, 0.5))}]]


def _exception(story: Story, run: Run) -> Threads:
    return [[{"type": "exception", "name": "KeyError", "handled": story.rng.choice((True, True, False, None))}]]


def _partial(story: Story, run: Run) -> Threads:
    return [[{"type": "partial_success_returned", "completed": [s for s in range(4) if _some(story.rng, 0.5)]}]]


def _model_words(story: Story, run: Run, common: Fields | None = None) -> Threads:
    rng = story.rng
    said = common or _common(story, run)
    words: Fields = {"type": "model_tool_call", "tool": said["tool"], "args_digest": said["args_digest"]}
    words["complete"] = rng.choice((True, True, True, True, False, None))
    return [[words]]


def _note(story: Story, run: Run) -> Threads:
    rng = story.rng
    kind = rng.choice(("retry_scheduled", "mechanism_acted", "process_started", "fault_injected", "weather"))
    return [[{"type": kind, "step": _step(story), "tool": rng.choice(story.palette.tools)}]]


def _fragment(story: Story, run: Run) -> Threads:
    """One record of a call or an undoing, alone."""
    whole = _call(story, run) if _some(story.rng, 0.6) else _undo(story, run)
    return [[story.rng.choice(thread)] for thread in whole if thread]


def _echo(story: Story, run: Run) -> Threads:
    """A record of this run once more (an effect under an id of its own)."""
    if not run.told:
        return []
    again = dict(story.rng.choice(run.told[-30:]))
    if again["type"] == "effect" and again.get("outcome") == "applied":
        again["effect_id"] = story.effect_id(run.world)
    return [[again]]
