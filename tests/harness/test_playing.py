"""One run, played: nothing is deleted elsewhere, our delays are not the agent's, our failures lose nothing."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HarnessError
from harness.gate import StartGate
from harness.lag import LagMonitor
from harness.playing import MOST_GENERATIONS, Played
from tests.harness.fake_stage import Answer, FakeStage, killed_until, run_plan
from traces.history import Limits, Record

EFFECT = {"type": "effect", "t": time.time(), "run_id": "204-order-small", "source": "service", "outcome": "applied"}


def limits_of(played: Played) -> Limits:
    """The limits that the run was judged by."""
    (started,) = [record for record in played.records if record.type == "run_started"]
    return started.limits or Limits()


def of_type(played: Played, kind: str) -> list[Record]:
    """The records of one type."""
    return [record for record in played.records if record.type == kind]


# ------------------------------------------------------------------------------------------- the run's folder


@pytest.mark.parametrize("run_id", ["204-/../../victim", "../victim", "..", ".", "a/b"])
def test_nothing_is_deleted_outside_the_runs(run_id: str, tmp_path: Path) -> None:
    """A run whose name would lead out of the folder of the runs is an error of its own; nothing is touched."""
    victim = tmp_path / "victim" / "precious.txt"
    victim.parent.mkdir()
    victim.write_text("here")
    (tmp_path / "runs" / "a" / "b").mkdir(parents=True)
    stage = FakeStage()
    played = asyncio.run(stage.player(tmp_path / "runs").play(replace(run_plan(), run_id=run_id)))
    assert "cannot be the folder of a run" in (played.harness_error or "")
    assert (victim.read_text(), stage.starts) == ("here", [])
    assert (tmp_path / "runs" / "a" / "b").is_dir()


def test_what_an_earlier_session_left_is_gone(tmp_path: Path) -> None:
    """An agent never resumes from the state of another session's run."""
    old = tmp_path / "204-order-small" / "state" / "ledger"
    old.parent.mkdir(parents=True)
    old.write_text("old")
    played = FakeStage().play(tmp_path)
    assert (played.harness_error, old.exists(), old.parent.is_dir()) == (None, False, True)


# --------------------------------------------------------------------------------------------------- restarts


def test_a_restart_does_not_wait_for_first_starts(tmp_path: Path) -> None:
    """With every place of the gate taken, a killed agent is started again at once."""

    async def session() -> Played:
        stage, gate = FakeStage(), StartGate(1)
        taken = asyncio.Event()

        async def hold() -> None:
            async with gate.starting():
                taken.set()
                await asyncio.sleep(30)

        holders = []

        def start(stage: FakeStage, fields: Mapping[str, Any]) -> Answer:
            # From the run's first start on, others are starting up.
            holders.append(asyncio.get_running_loop().create_task(hold()))
            return killed_until(2)(stage, fields)

        stage.launcher.answers["start"] = start
        async with asyncio.timeout(5):
            played = await stage.player(tmp_path, gate=gate).play(run_plan())
        assert taken.is_set()
        for holder in holders:
            holder.cancel()
        return played

    played = asyncio.run(session())
    assert [record.generation for record in of_type(played, "process_started")] == [1, 2]
    assert played.queued_s < 0.5


def test_the_time_between_a_kill_and_the_restart_is_ours(tmp_path: Path) -> None:
    """However slow the harness is to start the agent again, the run has that much more time to recover."""
    stage = FakeStage()

    def kill(stage: FakeStage, fields: Mapping[str, Any]) -> Answer:
        stage.tell(
            fields["run_id"],
            "exited",
            generation=len(stage.starts),
            pid=1,
            t=time.time() - 1.5,
            exit_code=None,
            signal="SIGKILL",
        )
        return {"t": time.time() - 1.5}

    stage.launcher.answers.update(start=killed_until(2), kill=kill)
    given = run_plan().limits.get("recovery_s", 0.0)
    recovery = limits_of(stage.play(tmp_path)).recovery_s
    assert recovery is not None
    assert 1.5 <= recovery - given < 1.5 + 2.0
    assert limits_of(FakeStage().play(tmp_path)).recovery_s == given, "a run that was never killed gets nothing"


def test_killed_for_ever_is_given_up(tmp_path: Path) -> None:
    """A fault that kills every process of a run ends in saying so, after a bounded number of starts."""
    stage = FakeStage()
    stage.launcher.answers["start"] = killed_until(10**6)
    played = stage.play(tmp_path)
    assert (len(stage.starts), played.given_up) == (MOST_GENERATIONS, True)
    assert all(record.injected for record in of_type(played, "process_exited"))
    assert not FakeStage().play(tmp_path).given_up


# ------------------------------------------------------------------------------------------ lag and the clock


class AskedLag(LagMonitor):
    """Remembers since when it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_since = math.inf

    def worst_since(self, moment: float) -> float:
        """Always the same."""
        self.asked_since = moment
        return 0.4


class SlowGate(StartGate):
    """Holds up restarts, as a harness that is late does."""

    @asynccontextmanager
    async def starting(self, *, again: bool = False) -> AsyncIterator[None]:
        """A place, at once or late."""
        await asyncio.sleep(0.3 if again else 0.0)
        async with super().starting(again=again):
            yield


def test_lag_counts_from_the_first_start(tmp_path: Path) -> None:
    """The window of the lag begins with the run's first process, whatever time lay between it and the next."""
    stage, lag = FakeStage(), AskedLag()
    started: list[float] = []

    def start(stage: FakeStage, fields: Mapping[str, Any]) -> Answer:
        started.append(time.monotonic())
        return killed_until(2)(stage, fields)

    stage.launcher.answers["start"] = start
    played = stage.play(tmp_path, lag=lag, gate=SlowGate(1))
    assert len(started) == 2
    assert lag.asked_since <= started[0]
    assert [record.max_s for record in of_type(played, "harness_lag")] == [0.4]


def test_a_set_clock_is_an_error_of_the_run(tmp_path: Path) -> None:
    """Where the clock was set during a run, its times prove nothing, and the run says so."""
    stage, moved = FakeStage(), [0.0]

    def start(stage: FakeStage, fields: Mapping[str, Any]) -> Answer:
        moved[0] = 2.0
        stage.exit(fields["run_id"], fields["generation"])
        return {"pid": 1, "t": time.time()}

    stage.launcher.answers["start"] = start
    played = stage.play(tmp_path, lag=LagMonitor(wall=lambda: time.time() + moved[0]))
    assert "clock was set by +2.0" in (played.harness_error or "")
    assert played.sound_until == -math.inf


# ------------------------------------------------------------------------------------------ failures of ours


def broken(error: Exception) -> Any:
    """An answer that never comes."""

    def answer(_stage: FakeStage, _fields: Mapping[str, Any]) -> Answer:
        raise error

    return answer


@pytest.mark.parametrize(
    ("child", "op", "missing"),
    [("launcher", "start", False), ("launcher", "sweep", False), ("proxy", "close_run", True)],
)
@pytest.mark.parametrize("error", [HarnessError("it broke"), KeyError("it broke")])
def test_one_failure_skips_no_other_source(
    child: str, op: str, missing: bool, error: Exception, tmp_path: Path
) -> None:
    """Whichever step fails, the tree is swept, the port closed and the ledger read; the first error is told."""
    stage = FakeStage()
    stage.drained = {"effects": [EFFECT], "unfinished": []}
    getattr(stage, child).answers[op] = broken(error)
    played = stage.play(tmp_path)
    assert "it broke" in (played.harness_error or "")
    assert "sweep" in stage.launcher.asked
    assert stage.proxy.asked[-1] == "close_run"
    assert stage.standins.asked[-1] == "drain"
    assert len(of_type(played, "effect")) == 1
    assert (played.sound_until == -math.inf) is missing


def test_a_failed_proxy_tells_since_when(tmp_path: Path) -> None:
    """The record is sound up to just before the proxy's failure, and the effects are there all the same."""
    stage = FakeStage()
    stage.closed |= {"failure": "a hook raised", "failed_at": 1000.0}
    stage.drained = {"effects": [EFFECT], "unfinished": []}
    played = stage.play(tmp_path)
    assert played.harness_error == "the proxy failed in this run: a hook raised"
    assert 999.9 < played.sound_until < 1000.0
    assert len(of_type(played, "effect")) == 1


def test_a_missing_ledger_leaves_nothing_sound(tmp_path: Path) -> None:
    """Without the service's account no effect is ground truth any more."""
    stage = FakeStage()
    stage.standins.answers["drain"] = broken(HarnessError("it broke"))
    played = stage.play(tmp_path)
    assert (played.harness_error, played.sound_until) == ("it broke", -math.inf)


def test_a_run_that_was_never_opened_is_not_drained(tmp_path: Path) -> None:
    """Where the stand-ins refuse a run, they are not asked what they did in it."""
    stage = FakeStage()
    stage.standins.answers["open_run"] = broken(HarnessError("no such trace"))
    played = stage.play(tmp_path)
    assert played.harness_error == "no such trace"
    assert stage.standins.asked == ["open_run"]


def test_a_lost_process_ends_the_run_at_once(tmp_path: Path) -> None:
    """The run ends with the process that it was played on, and keeps what stood before."""
    stage = FakeStage()

    def start(stage: FakeStage, fields: Mapping[str, Any]) -> Answer:
        stage.listeners[fields["run_id"]].put_nowait({"event": "lost", "process": "_standins"})
        return {"pid": 1, "t": time.time()}

    stage.launcher.answers["start"] = start
    before = time.time()
    played = stage.play(tmp_path)
    assert "ended in the middle of the run" in (played.harness_error or "")
    assert before - 0.1 <= played.sound_until < time.time()


def test_a_lost_supervisor_is_our_error(tmp_path: Path) -> None:
    """Where the process that watches over the agent was killed, nobody knows how the agent ended: no crash of it."""
    stage = FakeStage()

    def start(stage: FakeStage, fields: Mapping[str, Any]) -> Answer:
        lost = {"exit_code": None, "signal": None, "lost": True}
        stage.tell(fields["run_id"], "exited", generation=1, pid=1, t=time.time() - 1.0, **lost)
        return {"pid": 1, "t": time.time()}

    stage.launcher.answers["start"] = start
    played = stage.play(tmp_path)
    assert "watched over the agent was lost" in (played.harness_error or "")
    assert of_type(played, "process_exited") == []
    assert played.sound_until < time.time() - 1.0


def test_proxy_and_stand_ins_share_the_secret_of_the_stage(tmp_path: Path) -> None:
    """Both are told it when the run opens; the agent's environment does not have it."""
    stage, told = FakeStage(), []

    def opened(_stage: FakeStage, fields: Mapping[str, Any]) -> Answer:
        told.append(fields.get("run", fields)["secret"])
        return {"port": 9}

    stage.standins.answers["open_run"] = stage.proxy.answers["open_run"] = opened
    stage.play(tmp_path)
    assert told == [stage.secret, stage.secret]
    assert stage.secret not in stage.starts[0]["env"].values()
