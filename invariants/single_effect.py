"""single-effect: one intent takes effect at most once (contract section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from invariants.facts import Forward, Run, World
from invariants.invariant import Hook, Invariant
from invariants.verdict import Outcome, Ruling, Standing
from traces.history import CoreRecord

_HELD = Standing("held", "every intent took effect at most once")
_VACUOUS = Standing("vacuous", "the run had no effect and no effectful call")
_OPEN_CALL = Standing("unobservable", "an effectful call that only the agent tells of ended unknown")
_SAME_KEY = Standing(
    "unobservable", "the agent alone tells of an effect under a used key, which may have been collapsed"
)
_NO_INTENT = Standing("unobservable", "two equal effects lack an intent id: a repeat and a second wish look the same")

_Intent = tuple[str | None, str, str | None, str | None]


class _FirstMet(msgspec.Struct, eq=False, gc=False):
    """How a key was first met where that was no forward effect, and the first forward effect under it since."""

    line: int
    tool: str | None
    args_digest: str | None
    forward: Forward | None = None


class _Known(msgspec.Struct, eq=False):
    """Of one world. A forward effect that is the first of its key or intent stands there itself."""

    keys: dict[str | None, dict[str, Forward | _FirstMet]] = {}
    """By tenant and idempotency key."""
    intents: dict[_Intent, Forward] = {}
    """First forward effect of each intent."""
    second_keys: dict[_Intent, Forward] = {}
    """First forward effect of an intent whose key is another than that of the intent's first one, or missing."""


class _Notes(msgspec.Struct, eq=False):
    """Of one run that has something to it."""

    rulings: dict[str, Ruling] = {}
    same_key: bool = False


class SingleEffect(Invariant):
    """Counts effects by key, by intent, and undoings by the effect they undo."""

    name: ClassVar[str] = "single-effect"

    def hooks(self) -> Mapping[str, Hook]:
        return {"effect": self._effect}

    def world_closing(self, world: World) -> None:
        """Claimed-only effects are known only now; they collide with earlier effects in file order."""
        known: _Known = world.notes[self._slot] or _Known()
        claims = [(forward.line, run, forward) for run in world.runs for forward in run.claimed_forwards]
        for line, run, forward in sorted(claims, key=lambda claim: claim[0]):
            if forward.key is not None:
                keys = known.keys.setdefault(forward.tenant, {})
                met = keys.get(forward.key)
                first = met.forward if isinstance(met, _FirstMet) else met
                if first is not None and first.line < line:
                    self._notes(run).same_key = True
                else:
                    keys[forward.key] = forward
            self._same_intent(known, run, forward)

    def rule(self, run: Run) -> Outcome:
        notes: _Notes | None = run.notes[self._slot]
        if notes is not None and notes.rulings:
            return list(notes.rulings.values())
        if run.open_calls:
            return _OPEN_CALL
        if notes is not None and notes.same_key:
            return _SAME_KEY
        if len(run.forwards) > 1 and _is_ambiguous(run.forwards):
            return _NO_INTENT
        return _HELD if run.has_effect or run.effectful else _VACUOUS

    def _effect(self, run: Run, line: int, record: CoreRecord) -> None:
        applied = record.outcome == "applied"
        if not applied and record.outcome != "deduplicated":
            return
        applied = applied and record.caused_by is None
        if record.compensates is not None:
            if applied:
                self._undone(run, line, record, effect_id=record.compensates)
            return
        known: _Known | None = run.world.notes[self._slot]
        if known is None:
            known = run.world.notes[self._slot] = _Known()
        forward = run.forwards[-1] if applied else None
        key = record.idempotency_key
        if key is not None:
            tenant = record.tenant if record.tenant is not None else run.tenant
            keys = known.keys.get(tenant)
            if keys is None:
                keys = known.keys[tenant] = {}
            met = keys.get(key)
            if met is None:
                keys[key] = forward or _FirstMet(line, record.tool, record.args_digest)
            else:
                self._key_again(run, line, record, met=met, forward=forward)
        if forward is not None:
            self._same_intent(known, run, forward)

    def _undone(self, run: Run, line: int, record: CoreRecord, *, effect_id: str) -> None:
        first = run.world.undone[effect_id]
        if first != line:
            message = f"effect `{effect_id}` was undone a second time, by {_called(record.tool)}"
            self._break(run, "duplicate-compensation", (first, line), message)

    def _key_again(
        self, run: Run, line: int, record: CoreRecord, *, met: Forward | _FirstMet, forward: Forward | None
    ) -> None:
        key, tool, digest = record.idempotency_key, record.tool, record.args_digest
        if tool != met.tool:
            message = f"key `{key}` was used for {_called(tool)} after it had served {_called(met.tool)}"
            self._break(run, "key-reused", (met.line, line), message)
        elif digest is not None and met.args_digest is not None and digest != met.args_digest:
            message = f"key `{key}` was used again for {_called(tool)}, with other arguments than before"
            self._break(run, "key-reused", (met.line, line), message)
        if forward is None:
            return
        first = met.forward if isinstance(met, _FirstMet) else met
        if first is not None:
            message = f"{_twice(first, forward)} under one key `{key}`"
            self._break(run, "duplicate-key", (first.line, line), message)
        elif isinstance(met, _FirstMet):
            met.forward = forward

    def _same_intent(self, known: _Known, run: Run, forward: Forward) -> None:
        if forward.intent_id is None:
            return
        digest = forward.intent_digest if forward.intent_digest is not None else forward.args_digest
        intent = (forward.tenant, forward.intent_id, forward.tool, digest)
        seen = known.intents.setdefault(intent, forward)
        if seen is forward:
            return
        first: Forward | None = seen
        if forward.key is None or forward.key != seen.key:
            known.second_keys.setdefault(intent, forward)
        else:
            first = known.second_keys.get(intent)
        if first is not None:
            keys = f"first with key {_quoted(first.key)}, then with {_quoted(forward.key)}"
            message = f"{_twice(first, forward)} for one intent `{forward.intent_id}`, {keys}"
            self._break(run, "duplicate-intent", (first.line, forward.line), message)

    def _notes(self, run: Run) -> _Notes:
        notes: _Notes | None = run.notes[self._slot]
        if notes is None:
            notes = run.notes[self._slot] = _Notes()
        return notes

    def _break(self, run: Run, reason: str, lines: tuple[int, int], message: str) -> None:
        """Keeps the proof with the smallest breaking line: claims come later than what the service told."""
        rulings = self._notes(run).rulings
        known = rulings.get(reason)
        if known is None or lines[-1] < known.lines[-1]:
            rulings[reason] = Ruling(reason, lines, message)


def _is_ambiguous(forwards: list[Forward]) -> bool:
    """Whether an effect equals an earlier one of its run but for the key, and one of the two has no intent id."""
    for forward in forwards:
        if forward.intent_id is None:
            break
    else:
        return False
    seen: dict[tuple[str | None, str | None, str | None], tuple[set[str | None], set[str | None]]] = {}
    for forward in forwards:
        arguments = (forward.tenant, forward.tool, forward.args_digest)
        keys, keys_without_intent = seen.setdefault(arguments, (set(), set()))
        key = forward.key
        rivals = keys if forward.intent_id is None else keys_without_intent
        if rivals and (key is None or len(rivals) > 1 or key not in rivals):
            return True
        keys.add(key)
        if forward.intent_id is None:
            keys_without_intent.add(key)
    return False


def _called(tool: str | None) -> str:
    return f"`{tool}`" if tool is not None else "a call without tool name"


def _quoted(key: str | None) -> str:
    return f"`{key}`" if key is not None else "none"


def _twice(first: Forward, second: Forward) -> str:
    return f"{second.describe()} took effect a second time, {second.t - first.t:.3f} s after the first,"
