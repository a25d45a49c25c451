"""The digest of a run: the same for a repeat, another where something else happened."""

from __future__ import annotations

import random
from typing import Any

from harness.digest import history_digest
from traces.history import Record


def call(number: int, **fields: Any) -> list[Record]:
    """One call of `lookup` with its finish, ids made from a number that differs in every run."""
    common: dict[str, Any] = {
        "run_id": "r",
        "tool": "lookup",
        "args_digest": fields.pop("args", "d"),
        "intent_id": f"i{number}",
        "attempt_id": f"a{number}",
        "wire": f"w{number}",
        "idempotency_key": f"k{number}",
    }
    return [
        Record(type="tool_call_started", t=float(number), source="wire", **common),
        Record(
            type="tool_call_finished", t=number + 0.5, source="wire", outcome=fields.get("outcome", "ok"), **common
        ),
    ]


def test_times_and_ids_do_not_count() -> None:
    """Another clock and other ids are the same run."""
    assert history_digest(call(1)) == history_digest(call(9))


def test_outcomes_count() -> None:
    """Another outcome of a call is another run."""
    assert history_digest(call(1)) != history_digest(call(1, outcome="error"))


def test_order_of_parallel_calls_does_not_count() -> None:
    """Parallel calls may be served in any order."""
    calls = [call(number, args=f"d{number}") for number in range(1, 6)]
    digests = set()
    for seed in range(5):
        random.Random(seed).shuffle(calls)
        digests.add(history_digest(record for pair in calls for record in pair))
    assert len(digests) == 1


def test_order_of_parallel_faults_does_not_count() -> None:
    """Faults on parallel calls strike in any order."""
    faults = [
        Record(type="fault_injected", t=1.0, run_id="r", kind="latency", site=f"lookup#{n}/1") for n in (1, 2, 3)
    ]
    assert history_digest(faults) == history_digest(faults[::-1])
    assert history_digest(faults) != history_digest(faults[1:])


def test_equal_keys_stay_equal() -> None:
    """A key that changes between two attempts of one call is told from one that does not."""
    first, second = call(1), call(2)
    same = [Record(**{**as_fields(r), "idempotency_key": "k1", "intent_id": "i1"}) for r in second]
    other = [Record(**{**as_fields(r), "intent_id": "i1"}) for r in second]
    assert history_digest(first + same) != history_digest(first + other)


def as_fields(record: Record) -> dict[str, Any]:
    """The fields of a record by name."""
    return {name: getattr(record, name) for name in record.__struct_fields__}
