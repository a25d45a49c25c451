"""The judge against a second, naive reading of contract section 4 (`tests/oracle`): zero differences.

By default the search is the same on every machine and takes some seconds. For a long one, with new
histories every time:

    STORMPROOF_ORACLE=thorough pytest tests/invariants/test_against_oracle.py

(the hypothesis profile `thorough`, registered here and used by this file alone). A difference is shown as
the smallest history that has it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from invariants.judge import judge_records
from tests.oracle.comparing import difference, explained, judged, records_of, valid
from tests.oracle.histories import history
from tests.oracle.naive import RULES, judge_naively
from traces.history import Record

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "histories"
PROFILE = os.environ.get("STORMPROOF_ORACLE", "default")
SCALE = {"default": 1, "thorough": 40}[PROFILE]

_quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
settings.register_profile("thorough", deadline=None, suppress_health_check=_quiet, print_blob=True)


def search(examples: int) -> settings:
    """The settings of one property: `examples` histories, times forty when thorough."""
    return settings(
        settings.get_profile("thorough"),
        max_examples=examples * SCALE,
        derandomize=PROFILE == "default",
        database=None,
    )


SEEDS = st.integers(min_value=0, max_value=2**62)

VIOLATIONS = {
    "single-effect": ("duplicate-key", "duplicate-intent", "key-reused", "duplicate-compensation"),
    "budgets": ("steps", "wall-clock", "tokens", "cost", "silent-truncation", "deadline-reset"),
    "no-dangling-effect": ("unsettled", "unfinished", "false-claim"),
    "no-escaped-exception": ("unhandled", "crash", "unstructured"),
    "breaker-respected": ("call-while-open",),
    "reverse-compensation": ("out-of-order", "forward-during-compensation"),
    "bounded-concurrency": ("peak", "group-peak", "starved"),
    "effect-provenance": ("cut-arguments", "unplanned"),
}
"""Every reason of section 4."""

UNVIOLATED = {
    "single-effect": ("held", "vacuous", "unobservable"),
    "budgets": ("held", "vacuous", "unobservable"),
    "no-dangling-effect": ("held", "vacuous", "unobservable"),
    "no-escaped-exception": ("held", "unobservable"),
    "breaker-respected": ("held", "vacuous"),
    "reverse-compensation": ("held", "vacuous"),
    "bounded-concurrency": ("held", "vacuous", "unobservable"),
    "effect-provenance": ("held", "vacuous"),
}
"""Every other verdict that section 4 can give."""


@search(80)
@given(rng=st.randoms(use_true_random=False), size=st.integers(1, 25))
def test_small_histories_are_judged_as_the_contract_reads(rng: Random, size: int) -> None:
    """On small histories, shrunk by hypothesis where they fail, judge and oracle say the same."""
    lines = history(rng, size)
    assert difference(judge_records, lines) is None, explained(judge_records, lines)


@search(250)
@given(seed=SEEDS, size=st.sampled_from((20, 40, 80, 160, 320)))
def test_crowded_histories_are_judged_as_the_contract_reads(seed: int, size: int) -> None:
    """On histories of tens to hundreds of records judge and oracle say the same."""
    lines = history(Random(seed), size)
    assert difference(judge_records, lines) is None, explained(judge_records, lines)


@search(8)
@given(seed=SEEDS, size=st.integers(2000, 3000))
def test_long_histories_are_judged_as_the_contract_reads(seed: int, size: int) -> None:
    """On histories of thousands of records judge and oracle say the same."""
    lines = history(Random(seed), size)
    assert difference(judge_records, lines) is None, explained(judge_records, lines)


@search(30)
@given(seed=SEEDS)
def test_evidence_counts_lines_not_records(seed: int) -> None:
    """Where blank lines stood between the records, the evidence names the lines of the file."""
    rng = Random(seed)
    number = 0
    records: list[tuple[int, Record]] = []
    for _, record in records_of(history(rng, 60)):
        number += rng.choice((1, 1, 2, 5))
        records.append((number, record))
    assert judged(judge_records, records) == judge_naively(records)


@search(30)
@given(seed=SEEDS, size=st.integers(1, 200))
def test_histories_are_ones_that_section_3_allows(seed: int, size: int) -> None:
    """The generator makes no bad input: first `run_started`, times, effect ids and ends of worlds are right."""
    assert valid(history(Random(seed), size))


def test_every_verdict_and_reason_is_met_often() -> None:
    """Over a fixed set of histories every reason and every verdict word of every invariant occurs often."""
    met: Counter[tuple[str, str]] = Counter()
    for seed in range(600):
        lines = history(Random(seed), (20, 60, 200)[seed % 3])
        met.update((v.invariant, v.reason or v.verdict) for v in judge_naively(records_of(lines)))
    wanted = [(name, word) for table in (VIOLATIONS, UNVIOLATED) for name, words in table.items() for word in words]
    assert set(VIOLATIONS) == set(UNVIOLATED) == set(RULES)
    assert set(met) <= set(wanted), "a verdict that section 4 does not know"
    assert {pair: met[pair] for pair in wanted if met[pair] < 10} == {}


def _cases() -> Iterator[Any]:
    listed = CASES / "expected.json"
    if not listed.is_file():
        yield pytest.param(None, marks=pytest.mark.skip(reason=f"no recorded cases at {CASES}"))
        return
    for case in json.loads(listed.read_text(encoding="utf-8")):
        if "bad_input_line" not in case:
            yield pytest.param(case, id=case["file"].removesuffix(".jsonl"))


@pytest.mark.parametrize("case", list(_cases()))
def test_the_oracle_judges_the_recorded_cases_rightly(case: dict[str, Any]) -> None:
    """The naive reading gives each recorded case the verdicts, reasons and last line written beside it."""
    text = (CASES / case["file"]).read_text(encoding="utf-8").splitlines()
    records = [(n, msgspec.json.decode(line, type=Record)) for n, line in enumerate(text, 1) if line.strip()]
    verdicts = judge_naively(records)
    violations = {(v.run_id, v.invariant, v.reason, v.evidence[-1]) for v in verdicts if v.verdict == "violated"}
    assert violations == {(x["run_id"], x["invariant"], x["reason"], x["broken_at"]) for x in case["violations"]}
    words = {(v.run_id, v.invariant, v.verdict) for v in verdicts}
    assert {(x["run_id"], x["invariant"], x["verdict"]) for x in case["verdicts"]} <= words
