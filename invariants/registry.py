"""The invariants, in the order in which every report lists them."""

from __future__ import annotations

from invariants.bounded_concurrency import BoundedConcurrency
from invariants.breaker_respected import BreakerRespected
from invariants.budgets import Budgets
from invariants.effect_provenance import EffectProvenance
from invariants.invariant import Invariant
from invariants.no_dangling_effect import NoDanglingEffect
from invariants.no_escaped_exception import NoEscapedException
from invariants.reverse_compensation import ReverseCompensation
from invariants.single_effect import SingleEffect

INVARIANTS: tuple[type[Invariant], ...] = (
    SingleEffect,
    Budgets,
    NoDanglingEffect,
    NoEscapedException,
    BreakerRespected,
    ReverseCompensation,
    BoundedConcurrency,
    EffectProvenance,
)
