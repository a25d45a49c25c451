"""The judge: verdicts per run, worlds that finish, faults of order, and invariants that fail."""

from __future__ import annotations

import gc
from typing import ClassVar

import msgspec
import pytest

from invariants.facts import Run
from invariants.invariant import Hook, Invariant
from invariants.judge import Judge, judge_records
from invariants.registry import INVARIANTS
from invariants.verdict import Outcome, Standing
from tests.invariants.shorthand import Fields, call, done, effect, ended, exited, numbered, of, record, started, undo
from traces.codec import HistoryError
from traces.history import Limits, Record

ORDER = [invariant.name for invariant in INVARIANTS]


def judge_of(*records: Fields, default_limits: Limits | None = None) -> Judge:
    """A judge that has been fed these records and not closed."""
    judge = Judge(default_limits=default_limits)
    judge.feed_all(numbered(records))
    return judge


def test_each_run_gets_one_verdict_per_invariant_in_the_order_of_the_contract() -> None:
    """Runs stand by first appearance; within one the seven in order, and the eighth only where words are shown."""
    verdicts = judge_records(
        numbered(
            [*of("b", started()), *of("a", started(), record("model_tool_call", complete=True)), *of("b", ended())]
        )
    )
    assert [(verdict.run_id, verdict.invariant) for verdict in verdicts] == [
        *(("b", name) for name in ORDER[:7]),
        *(("a", name) for name in ORDER),
    ]


def test_an_unviolated_verdict_has_neither_reason_nor_evidence_but_says_why() -> None:
    """Held, vacuous and unobservable verdicts carry a message and nothing else."""
    for verdict in judge_records(numbered([started(), ended()])):
        assert (verdict.reason, verdict.evidence) == (None, ())
        assert verdict.message


def test_messages_of_violations_name_tool_step_and_time() -> None:
    """A violated verdict says in a sentence what happened."""
    verdicts = judge_records(
        numbered([effect("e", step=1, idempotency_key="k"), effect("f", step=2, idempotency_key="k")])
    )
    violated = next(verdict for verdict in verdicts if verdict.verdict == "violated")
    assert (
        violated.message == "`charge` (step 2) took effect a second time, 0.100 s after the first, under one key `k`"
    )


def test_unknown_types_and_fields_are_ignored() -> None:
    """A record of a type that nobody knows changes no verdict."""
    known = [started(), effect("e"), ended()]
    with_strangers = [started(), record("telemetry"), effect("e"), ended()]
    judged = [(v.invariant, v.verdict) for v in judge_records(numbered(with_strangers))]
    assert judged == [(v.invariant, v.verdict) for v in judge_records(numbered(known))]


# worlds


def in_world(run: str, world: str, *records: Fields) -> list[Fields]:
    """A whole run of that world."""
    return of(run, {**started(), "world": world}, *records, ended())


def finished(world: str, run: str = "whoever") -> Fields:
    """No record of that world follows."""
    return record("world_finished", world=world, run_id=run)


def test_verdicts_are_final_when_their_world_finishes() -> None:
    """`feed` gives the verdicts of a world on its world_finished, `close` those of the rest."""
    judge = Judge()
    given: list[tuple[int, str]] = []
    lines = numbered([*in_world("a", "w1"), *in_world("b", "w2"), finished("w1"), *in_world("c", "w3")])
    for line, one in lines:
        given += [(line, verdict.run_id) for verdict in judge.feed(line, one) if verdict.invariant == ORDER[0]]
    assert given == [(5, "a")]
    assert [verdict.run_id for verdict in judge.close() if verdict.invariant == ORDER[0]] == ["b", "c"]


def test_world_finished_is_of_no_run() -> None:
    """It makes no run, counts for no order of time and gives no run an end, whatever its run_id says."""
    judge = judge_of(*of("a", started(), ended()), {**finished("other", "a"), "t": 0}, finished("other", "z"))
    assert judge.faults == []
    assert {verdict.run_id for verdict in judge.close()} == {"a"}


def test_a_finished_world_knows_itself_alone() -> None:
    """What happened in another world of the same file neither observes nor undoes anything in this one."""
    records = [
        *in_world("a", "w1", call("x"), done("x", "timeout")),
        finished("w1"),
        *in_world("b", "w2", effect("e")),
    ]
    verdicts = {(v.run_id, v.invariant): v.verdict for v in judge_records(numbered(records))}
    assert verdicts["a", "single-effect"] == "unobservable"


@pytest.mark.parametrize("late", [of("a", effect("e")), of("c", {**started(), "world": "w1"})], ids=["run", "world"])
def test_a_record_after_its_world_finished_is_bad_input(late: list[Fields]) -> None:
    """A broken promise is a fault of the history, never a verdict on half of it."""
    judge = judge_of(*in_world("a", "w1"), finished("w1"), *late)
    assert [line for line, _ in judge.faults] == [4]


def test_memory_does_not_grow_with_finished_worlds() -> None:
    """After a world has finished, none of its runs is kept."""
    judge = Judge()
    line = 0
    for number in range(50):
        for _, one in numbered(
            [*in_world(f"r{number}", f"w{number}", effect("e"), undo("e")), finished(f"w{number}")]
        ):
            line += 1
            judge.feed(line, one)
    gc.collect()
    assert [held for held in gc.get_objects() if isinstance(held, Run) and held.run_id.startswith("r")] == []


# order


def faults_of(*records: Fields) -> list[int]:
    """Lines with faults."""
    return [line for line, _ in judge_of(*records).faults]


def test_time_may_fall_back_by_a_twentieth_of_a_second() -> None:
    """Further back than 0.05 s below an earlier record of the run is bad input; other runs do not matter."""
    assert faults_of(record("x", t=1), record("x", t=0.95), record("x", t=0.9501)) == []
    assert faults_of(record("x", t=1), record("x", t=0.96), record("x", t=0.94)) == [3]
    assert faults_of(*of("a", record("x", t=9)), *of("b", record("x", t=1))) == []


def test_a_late_run_started_is_bad_input() -> None:
    """run_started comes first in its run if there is one, even before records of unknown types."""
    assert faults_of(record("x"), started()) == [2]
    assert faults_of(record("x"), exited(), started()) == [3]
    assert faults_of(record("x"), started(), started()) == [2]


def test_an_ignored_run_started_counts_for_the_order_of_time() -> None:
    """Its own time must fit, and later records must fit to it."""
    assert faults_of(started(), {**started(), "t": 5}, record("x", t=4)) == [3]
    assert faults_of(started(), record("x", t=5), {**started(), "t": 4}) == [3]


def test_judge_records_raises_what_is_wrong_with_the_history() -> None:
    """All faults at once, with their lines."""
    with pytest.raises(HistoryError) as caught:
        judge_records(numbered([record("x"), started(), record("x", t=-1)]))
    assert [line for line, _ in caught.value.faults] == [2, 3]


# limits


def test_default_limits_fill_in_field_by_field() -> None:
    """A run's own limits go before the defaults, and the defaults hold where it states none."""
    records = [*of("a", started(steps=9), *(record("x", step=n) for n in range(3))), *of("b", record("x", step=1))]
    defaults = Limits(steps=2, max_concurrency=0)
    verdicts = {(v.run_id, v.invariant): v.verdict for v in judge_of(*records, default_limits=defaults).close()}
    assert verdicts["a", "budgets"] == "held"
    assert verdicts["b", "budgets"] == "held"
    called = [*of("a", started(steps=9), call("x"))]
    verdicts = {(v.run_id, v.invariant): v.verdict for v in judge_of(*called, default_limits=defaults).close()}
    assert verdicts["a", "bounded-concurrency"] == "violated"


def test_default_limits_of_time_need_a_start() -> None:
    """A run without run_started cannot be held against a limit of time."""
    verdicts = {v.invariant: v.verdict for v in judge_of(ended(), default_limits=Limits(wall_clock_s=1)).close()}
    assert verdicts["budgets"] == "unobservable"


# invariants that fail


class Broken(Invariant):
    """Raises where it is told to."""

    name: ClassVar[str] = "broken"
    where: ClassVar[str] = ""

    def hooks(self) -> dict[str, Hook]:
        return {"effect": self._effect}

    def _effect(self, run: Run, line: int, record: object) -> None:
        self._fail("hook")

    def run_opened(self, run: Run, line: int) -> None:
        self._fail("opened")

    def used(self, run: Run, line: int, record: object) -> None:
        self._fail("used")

    def world_closing(self, world: object) -> None:
        self._fail("closing")

    def rule(self, run: Run) -> Outcome:
        self._fail("rule")
        return Standing("held", "all is well")

    def _fail(self, where: str) -> None:
        if where == self.where:
            raise ZeroDivisionError(where)


@pytest.mark.parametrize("where", ["hook", "opened", "used", "closing", "rule"])
def test_an_invariant_that_raises_is_an_error_and_never_a_pass(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its runs are unobservable, the error is told once, and the other invariants judge on."""
    monkeypatch.setattr(Broken, "where", where)
    judge = Judge(invariants=[Broken, *INVARIANTS])
    judge.feed_all(numbered([started(), effect("e", input_tokens=1), effect("e", input_tokens=1), ended("failed")]))
    verdicts = judge.close()
    assert [v.verdict for v in verdicts if v.invariant == "broken"] == ["unobservable"]
    assert [v.reason for v in verdicts if v.verdict == "violated"] == ["unsettled"]
    assert len(judge.errors) == 1
    assert "ZeroDivisionError" in judge.errors[0]


def test_the_same_history_in_pieces_gives_the_same_verdicts() -> None:
    """Feeding record by record is feeding all at once."""
    records = numbered([*in_world("a", "w", effect("e"), effect("e2")), *in_world("b", "", call("x"))])
    judge = Judge()
    piecewise = [verdict for line, one in records for verdict in judge.feed(line, one)] + judge.close()
    assert piecewise == judge_records(records)


def test_records_are_read_whatever_struct_they_come_in() -> None:
    """The runner's own records and decoded lines are judged alike."""
    whole = numbered([started(), ended()])
    again = [(line, msgspec.json.decode(msgspec.json.encode(one), type=Record)) for line, one in whole]
    assert judge_records(whole) == judge_records(again)
