"""Effects of which nobody but the agent tells (contract section 4, "claimed only")."""

from __future__ import annotations

from collections.abc import Set

from invariants.facts import Forward, Run
from traces.history import CoreRecord

_NOBODY_KNOWS = frozenset({"timeout", "unknown"})


def finish_claim(claim: Forward, line: int, record: CoreRecord) -> None:
    """Books the counted finish of an effectful call: what the start left unsaid, and what became of it."""
    if claim.tool is None:
        claim.tool = record.tool
    if claim.tenant is None:
        claim.tenant = record.tenant
    if claim.step is None:
        claim.step = record.step
    if claim.key is None:
        claim.key = record.idempotency_key
    if claim.intent_id is None:
        claim.intent_id = record.intent_id
    if claim.args_digest is None:
        claim.args_digest = record.args_digest
    if claim.intent_digest is None:
        claim.intent_digest = record.intent_digest
    outcome = record.outcome
    if outcome == "ok":
        claim.line, claim.t = line, record.t
        claim.fate = "applied"
    elif outcome not in _NOBODY_KNOWS and not (
        outcome == "error" and record.error is not None and record.error.may_have_taken_effect
    ):
        claim.fate = "none"


def resolve_claims(run: Run, observed: Set[str | None]) -> None:
    """Once a run's world is over: its claims become forward effects, open calls, or nothing.

    Calls of observed tools are told by the service; a call of a tool that an open compensation had named is that
    compensation's own.
    """
    found: list[Forward] = []
    for claim in run.claims or ():
        if claim.tool in observed or claim.fate == "none":
            continue
        if claim.named is not None and claim.tool in claim.named:
            continue
        if claim.fate == "open":
            run.open_calls = True
            continue
        if claim.tenant is None:
            claim.tenant = run.tenant
        found.append(claim)
    if found:
        run.claimed_forwards = found
        run.forwards += found
        run.forwards.sort(key=_line)


def _line(forward: Forward) -> int:
    return forward.line
