"""Naive rules 1 and 8: `single-effect` and `effect-provenance`."""

from __future__ import annotations

from tests.oracle.reading import Effect, History, Line
from tests.oracle.ruling import Opinion


def single_effect(history: History, run: str) -> Opinion:
    """1. `single-effect`."""
    opinion = Opinion()
    own = [e for e in history.forward if e.run == run]
    for later in own:
        for earlier in history.forward:
            if earlier.at < later.at and (earlier.world, earlier.tenant) == (later.world, later.tenant):
                _compare(earlier, later, opinion)
    _key_reused(history, run, opinion)
    # "Two compensating effects that name the same effect, whatever their keys: `duplicate-compensation`."
    for undo in history.compensating:
        for first in history.compensating:
            if (
                undo.run == run
                and first.number < undo.number
                and first.record.compensates == undo.record.compensates
                and history.world(first.run) == history.world(run)
            ):
                opinion.told("duplicate-compensation", first.number, undo.number)
    # "Unobservable: ... an open call"
    opinion.unobservable |= bool(history.open_calls(run))
    # "Vacuous: the run has no effect of either kind and no effectful call."
    opinion.vacuous = (
        not own
        and not any(x.run == run for x in history.compensating)
        and not any(x.record.effectful is True for x in history.of(run, "tool_call_started"))
    )
    return opinion


def _compare(earlier: Effect, later: Effect, opinion: Opinion) -> None:
    """Two forward effects of one world and tenant, "of whatever runs"."""
    same_key = earlier.key is not None and earlier.key == later.key
    # "Two forward effects of one (world, tenant, idempotency_key), of whatever runs: `duplicate-key`";
    # "For claimed-only effects `duplicate-key` and `key-reused` are not told."
    if same_key and not earlier.claimed and not later.claimed:
        opinion.told("duplicate-key", earlier.at, later.at)
    # "Two forward effects of one (world, tenant, intent_id, tool, intent_digest else args_digest), intent_id
    # present, whose keys differ or are missing: `duplicate-intent`."
    if earlier.intent is not None and _intent(earlier) == _intent(later) and not same_key:
        opinion.told("duplicate-intent", earlier.at, later.at)
    # "Unobservable: a claimed-only effect whose (world, tenant, key) an earlier forward effect has"
    if later.claimed and same_key:
        opinion.unobservable = True
    # "a forward effect that has the world, tenant, tool and args_digest of an earlier one of its run, other
    # or no key, and no intent_id on one of the two"
    if (
        earlier.run == later.run
        and (earlier.tool, earlier.args_digest) == (later.tool, later.args_digest)
        and not same_key
        and (earlier.intent is None or later.intent is None)
    ):
        opinion.unobservable = True


def _intent(effect: Effect) -> tuple[str | None, ...]:
    """ "A missing tool equals a missing one everywhere ...; so does a missing digest of an intent." """
    digest = effect.args_digest if effect.intent_digest is None else effect.intent_digest
    return (effect.intent, effect.tool, digest)


def _key_reused(history: History, run: str, opinion: Opinion) -> None:
    """ "An `effect` record (`applied` or `deduplicated`, not compensating) whose (world, tenant, key) was first
    met by another tool or another `args_digest` (a missing digest equals any): `key-reused`"."""

    def meets(line: Line) -> bool:
        r = line.record
        return (
            line.kind == "effect"
            and r.outcome in ("applied", "deduplicated")
            and r.compensates is None
            and r.caused_by != "fault"  # "`caused_by: fault` effects take part in nothing"
            and r.idempotency_key is not None
        )

    def key(line: Line) -> tuple[str | None, ...]:
        return (history.world(line.run), history.tenant(line), line.record.idempotency_key)

    met = [x for x in history.lines if meets(x)]
    for line in met:
        if line.run == run:
            first = next(x for x in met if key(x) == key(line))
            if first.record.tool != line.record.tool or not _same_or_missing(
                first.record.args_digest, line.record.args_digest
            ):
                opinion.told("key-reused", first.number, line.number)


def effect_provenance(history: History, run: str) -> Opinion:
    """8. `effect-provenance`."""
    own = [e for e in history.forward if e.run == run]
    opinion = Opinion(vacuous=not own)  # "Vacuous: no forward effect."
    for effect in own:
        # "Every forward effect goes back to a tool call that the model had delivered ... before the call was
        # started (same run, tool and args_digest, a missing digest equals any)"
        words = [
            x
            for x in history.of(run, "model_tool_call")
            if x.number < effect.start_or_stand
            and x.record.tool == effect.tool
            and _same_or_missing(x.record.args_digest, effect.args_digest)
        ]
        # "`cut-arguments` (only calls that are not `complete` match; proof: the first of them and the effect)
        # or `unplanned` (none matches)"
        if not words:
            opinion.told("unplanned", effect.at)
        elif not any(x.record.complete is True for x in words):
            opinion.told("cut-arguments", words[0].number, effect.at)
    return opinion


def _same_or_missing(a: str | None, b: str | None) -> bool:
    return a is None or b is None or a == b
