"""What judging yields: verdicts of contract section 4, and the rulings they are made of."""

from __future__ import annotations

from typing import Literal

import msgspec

VerdictWord = Literal["held", "violated", "vacuous", "unobservable"]
VERDICT_WORDS: tuple[VerdictWord, ...] = ("held", "violated", "vacuous", "unobservable")


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """What one invariant says of one run; a violated invariant gives one verdict per reason.

    `evidence`: the lines that prove a violation in the order of happening, the last being the record that broke
    it; empty otherwise. `reason`: a public code of contract section 4, None unless violated.
    """

    run_id: str
    invariant: str
    verdict: VerdictWord
    reason: str | None
    evidence: tuple[int, ...]
    message: str


class Ruling(msgspec.Struct, frozen=True, gc=False):
    """One proven violation. `lines` in any order: the record that broke the invariant is the latest of them."""

    reason: str
    lines: tuple[int, ...]
    message: str


class Standing(msgspec.Struct, frozen=True, gc=False):
    """That an invariant was not violated, as what that counts, and why."""

    verdict: VerdictWord
    message: str


Outcome = list[Ruling] | Standing | None
"""Violations (at least one), or how the invariant stands; None where it says nothing of the run at all."""
