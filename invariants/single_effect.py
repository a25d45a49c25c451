"""single-effect: one intent takes effect at most once (contract section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from invariants.facts import Forward, Run, World
from invariants.invariant import Hook, Invariant
from invariants.verdict import Outcome, Ruling, Standing
from traces.history import Record

_HELD = Standing("held", "every intent took effect at most once")
_VACUOUS = Standing("vacuous", "the run had no effect and no effectful call")
_OPEN_CALL = "an effectful call that only the agent tells of ended unknown, so it may have taken effect"
_SAME_KEY = "two effects that only the agent tells of share a key, and the service may have collapsed them"
_NO_INTENT = "two effects with equal arguments lack an intent id, so nobody can tell a repeat from a second wish"

_Scope = tuple[str | None, str]
_Intent = tuple[str | None, str, str | None, str | None]
_Arguments = tuple[str | None, str | None, str | None]


class _Key(msgspec.Struct, eq=False, gc=False):
    """How a (world, tenant, idempotency key) was first met, and the first forward effect under it."""

    line: int = 0
    tool: str | None = None
    args_digest: str | None = None
    forward: int = 0


class _IntentSeen(msgspec.Struct, eq=False, gc=False):
    """The first effect of an intent, and the first one after it that has another key or none."""

    line: int
    key: str | None
    other: int = 0


class _Ambiguity(msgspec.Struct, eq=False, gc=False):
    """Effects of one run with equal tenant, tool and arguments: which keys they had, with and without intent."""

    keys: set[str | None]
    keys_without_intent: set[str | None]


class _WorldKeys(msgspec.Struct, eq=False):
    keys: dict[_Scope, _Key] = {}
    intents: dict[_Intent, _IntentSeen] = {}


class _RunNotes(msgspec.Struct, eq=False):
    rulings: dict[str, Ruling] = {}
    doubt: str | None = None
    arguments: dict[_Arguments, _Ambiguity] = {}


class SingleEffect(Invariant):
    """Counts effects by key, by intent, and undoings by the effect they undo."""

    name: ClassVar[str] = "single-effect"

    def __init__(self) -> None:
        self._worlds: dict[World, _WorldKeys] = {}
        self._runs: dict[Run, _RunNotes] = {}

    def hooks(self) -> Mapping[str, Hook]:
        return {"effect": self._effect}

    def world_closing(self, world: World) -> None:
        """Claimed-only effects are known only now; they collide with earlier effects in file order."""
        claims = [(forward.line, run, forward) for run in world.runs for forward in run.forwards if forward.claimed]
        known = self._worlds.pop(world, None) or _WorldKeys()
        for line, run, forward in sorted(claims, key=lambda claim: claim[0]):
            if forward.key is not None:
                entry = known.keys.setdefault((forward.tenant, forward.key), _Key())
                if not entry.forward:
                    entry.forward = line
                elif entry.forward < line:
                    self._notes(run).doubt = _SAME_KEY
                else:
                    entry.forward = line
            self._same_intent(known, run, forward)
            self._same_arguments(run, forward)

    def rule(self, run: Run) -> Outcome:
        notes = self._runs.pop(run, None)
        if notes is not None and notes.rulings:
            return list(notes.rulings.values())
        if run.open_calls:
            return Standing("unobservable", _OPEN_CALL)
        if notes is not None and notes.doubt is not None:
            return Standing("unobservable", notes.doubt)
        return _HELD if run.has_effect or run.effectful else _VACUOUS

    def _effect(self, run: Run, line: int, record: Record) -> None:
        outcome = record.outcome
        if outcome != "applied" and outcome != "deduplicated":
            return
        applied = outcome == "applied" and record.caused_by is None
        if record.compensates is not None:
            first = run.world.undone.get(record.compensates, line)
            if applied and first != line:
                self._break(
                    run,
                    "duplicate-compensation",
                    (first, line),
                    f"effect `{record.compensates}` was undone twice: first on line {first}, and again by "
                    f"{_called(record.tool)}",
                )
            return
        known = self._worlds.get(run.world)
        if known is None:
            known = self._worlds[run.world] = _WorldKeys()
        key = record.idempotency_key
        if key is not None:
            tenant = record.tenant if record.tenant is not None else run.tenant
            scope = (tenant, key)
            entry = known.keys.get(scope)
            if entry is None:
                known.keys[scope] = _Key(line, record.tool, record.args_digest, line if applied else 0)
            else:
                self._key_again(run, line, record, entry=entry, applied=applied)
        if applied:
            forward = run.forwards[-1]
            self._same_intent(known, run, forward)
            self._same_arguments(run, forward)

    def _key_again(self, run: Run, line: int, record: Record, *, entry: _Key, applied: bool) -> None:
        key, tool, digest = record.idempotency_key, record.tool, record.args_digest
        if tool != entry.tool:
            self._break(
                run,
                "key-reused",
                (entry.line, line),
                f"key `{key}` was used for {_called(tool)} after it had served {_called(entry.tool)}",
            )
        elif digest is not None and entry.args_digest is not None and digest != entry.args_digest:
            self._break(
                run,
                "key-reused",
                (entry.line, line),
                f"key `{key}` was used again for {_called(tool)} with other arguments ({digest} after "
                f"{entry.args_digest})",
            )
        if applied:
            if entry.forward:
                self._break(
                    run,
                    "duplicate-key",
                    (entry.forward, line),
                    f"{_called(tool)} took effect a second time under one idempotency key `{key}`",
                )
            else:
                entry.forward = line

    def _same_intent(self, known: _WorldKeys, run: Run, forward: Forward) -> None:
        if forward.intent_id is None:
            return
        digest = forward.intent_digest if forward.intent_digest is not None else forward.args_digest
        intent = (forward.tenant, forward.intent_id, forward.tool, digest)
        seen = known.intents.get(intent)
        line, key = forward.line, forward.key
        if seen is None:
            known.intents[intent] = _IntentSeen(line, key)
            return
        if key is None or seen.key is None or key != seen.key:
            first = seen.line
            if not seen.other:
                seen.other = line
        else:
            first = seen.other
        if first:
            keys = "without a common key" if key is None else f"under another key (`{key}`)"
            self._break(
                run,
                "duplicate-intent",
                (first, line),
                f"{forward.describe()} took effect a second time for one intent `{forward.intent_id}`, {keys}",
            )

    def _same_arguments(self, run: Run, forward: Forward) -> None:
        """Whether an equal effect of the run cannot be told apart from a repeat."""
        notes = self._notes(run)
        if notes.doubt is not None:
            return
        arguments = (forward.tenant, forward.tool, forward.args_digest)
        seen = notes.arguments.get(arguments)
        key = forward.key
        if seen is None:
            seen = notes.arguments[arguments] = _Ambiguity(set(), set())
        else:
            rivals = seen.keys if forward.intent_id is None else seen.keys_without_intent
            if rivals and (key is None or len(rivals) > 1 or key not in rivals):
                notes.doubt = _NO_INTENT
        seen.keys.add(key)
        if forward.intent_id is None:
            seen.keys_without_intent.add(key)

    def _notes(self, run: Run) -> _RunNotes:
        notes = self._runs.get(run)
        if notes is None:
            notes = self._runs[run] = _RunNotes()
        return notes

    def _break(self, run: Run, reason: str, lines: tuple[int, ...], message: str) -> None:
        rulings = self._notes(run).rulings
        known = rulings.get(reason)
        if known is None or max(lines) < max(known.lines):
            rulings[reason] = Ruling(reason, lines, message)


def _called(tool: str | None) -> str:
    return f"`{tool}`" if tool is not None else "a call without tool name"
