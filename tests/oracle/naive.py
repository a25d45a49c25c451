"""A second, naive reading of contract section 4: each sentence a quantifier over the whole list.

`judge_naively` answers what `invariants.judge.judge_records` answers, written from the contract's text
alone and sharing nothing with it. Quadratic on purpose: one can hold the code against the sentence quoted
beside it. Section 3 is in `reading.py`; the eight rules are in `effects.py`, `limits.py`, `undoing.py` and
`conduct.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.oracle.conduct import breaker_respected, no_escaped_exception
from tests.oracle.effects import effect_provenance, single_effect
from tests.oracle.limits import bounded_concurrency, budgets
from tests.oracle.reading import History
from tests.oracle.ruling import Opinion
from tests.oracle.undoing import no_dangling_effect, reverse_compensation
from traces.history import Record

RULES: dict[str, Callable[[History, str], Opinion]] = {
    "single-effect": single_effect,
    "budgets": budgets,
    "no-dangling-effect": no_dangling_effect,
    "no-escaped-exception": no_escaped_exception,
    "breaker-respected": breaker_respected,
    "reverse-compensation": reverse_compensation,
    "bounded-concurrency": bounded_concurrency,
    "effect-provenance": effect_provenance,
}
"""The rules, in the order of the contract."""


@dataclass(frozen=True, slots=True)
class NaiveVerdict:
    """One verdict: the judge's, less its message for people."""

    run_id: str
    invariant: str
    verdict: str
    reason: str | None = None
    evidence: tuple[int, ...] = ()


def judge_naively(records: Iterable[tuple[int, Record]]) -> list[NaiveVerdict]:
    """The verdicts of every run, runs by first appearance, invariants in the contract's order.

    `records` are pairs of the 1-based line number and the record, in file order.
    """
    history = History(records)
    verdicts: list[NaiveVerdict] = []
    for run in history.run_ids:
        for name, rule in RULES.items():
            # "`effect-provenance` only for runs with `model_tool_call` records"
            if name == "effect-provenance" and not any(history.of(run, "model_tool_call")):
                continue
            opinion = rule(history, run)
            violations = opinion.violations()
            # "A violation beats `unobservable`, which beats `held` and `vacuous`."
            if violations:
                verdicts += [NaiveVerdict(run, name, "violated", why, proof) for why, proof in violations]
            elif opinion.unobservable:
                verdicts.append(NaiveVerdict(run, name, "unobservable"))
            else:
                verdicts.append(NaiveVerdict(run, name, "vacuous" if opinion.vacuous else "held"))
    return verdicts
