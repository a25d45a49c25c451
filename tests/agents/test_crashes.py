"""A run is cut down at every single point where it could be, and started again.

The sweep kills in process: an exception that nothing of the agent catches stands for the end of the process, before
and after every write to the ledger and every exchange on the wire. A few real SIGKILLs show that this is no illusion.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.reference import calls, model
from agents.reference.__main__ import run
from agents.reference.clock import SystemClock
from agents.reference.decisions import REFERENCE
from agents.reference.ledger import Ledger
from agents.reference.outcome import Outcome
from agents.reference.transport import exchange
from tests.agents.fake_shop import ORDER
from tests.agents.fake_world import Fault, World, events, world

REPOSITORY = Path(__file__).resolve().parents[2]


class Killed(BaseException):
    """The end of the process."""


class Bomb:
    """Goes off at the n-th point; counts them all."""

    def __init__(self, at: int | None) -> None:
        self.at = at
        self.points = 0

    def tick(self) -> None:
        """Pass one point."""
        self.points += 1
        if self.points == self.at:
            raise Killed


def live(there: World, folder: Path, bomb: Bomb) -> Outcome:
    """One process of the run, which the bomb may end."""

    class Fragile(Ledger):
        def __init__(self, folder: Path, run_id: str) -> None:
            super().__init__(folder, run_id)
            self._base.execute("PRAGMA synchronous=OFF")  # a process dies here, not the machine

        @contextmanager
        def _writing(self, moment: str) -> Iterator[None]:
            bomb.tick()
            with super()._writing(moment):
                yield
            bomb.tick()

    def fragile_exchange(*args: Any, **named: Any) -> Any:
        bomb.tick()
        reply = exchange(*args, **named)
        bomb.tick()
        return reply

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls, "exchange", fragile_exchange)
        patch.setattr(model, "exchange", fragile_exchange)
        return run(there.environment(folder), SystemClock(), replace(REFERENCE, ledger=Fragile))


def clean(there: World) -> None:
    """Nothing goes wrong."""


def ship_fails(there: World) -> None:
    """Shipping fails for good."""
    there.faults["ship"] = [Fault("status", 500, error={"retryable": False, "may_have_taken_effect": False})] * 9


def refund_is_lost(there: World) -> None:
    """Shipping fails for good, and the first refund's reply is lost."""
    ship_fails(there)
    there.faults["refund"] = [Fault("drop")]


def judge(there: World, outcome: Outcome) -> None:
    """What must hold however often the run was cut down."""
    made = [effect.tool for effect in there.forward()]
    assert len(made) == len(set(made)), "something was done twice"
    undone = there.undone()
    assert len(undone) == len(set(undone)), "something was undone twice"
    assert undone == [tool for tool in ("ship", "reserve", "charge") if tool in undone], "wrong order of undoing"
    if outcome.status == "succeeded":
        assert there.standing() == ["charge", "reserve", "ship", "email"]
    elif outcome.status == "partial_success":
        assert there.standing()[:3] == ["charge", "reserve", "ship"]
        assert outcome.completed == (1, 2, 3), "the mail is left to a person"
    else:
        assert outcome.status == "rolled_back"
        assert there.standing() == []


@pytest.mark.parametrize("weather", [clean, refund_is_lost])
def test_a_run_cut_down_anywhere_ends_as_if_it_had_not(tmp_path: Path, weather: Callable[[World], None]) -> None:
    """At every point in turn: the second process brings the run to a sound end, with no effect twice or left over."""
    counting = Bomb(None)
    with world(ORDER) as there:
        weather(there)
        whole = tmp_path / "whole"
        whole.mkdir()
        expected = live(there, whole, counting)
        judge(there, expected)
    assert counting.points > 30
    for point in range(1, counting.points + 1):
        folder = tmp_path / str(point)
        folder.mkdir()
        with world(ORDER) as there:
            weather(there)
            with pytest.raises(Killed):
                live(there, folder, Bomb(point))
            outcome = live(there, folder, Bomb(None))
            judge(there, outcome)
            if outcome.status != expected.status:
                assert outcome.status == "partial_success", f"killed at point {point}"
                assert [effect.tool for effect in there.forward()][-1] in ("ship", "email")
            if point % 7 == 0:
                again = live(there, folder, Bomb(None))
                assert again.status == outcome.status, "a third process only repeats the outcome"
                judge(there, again)


def start(there: World, folder: Path) -> tuple[int, dict[str, Any] | None]:
    """One real process of the reference agent: exit code and its last line."""
    process = subprocess.Popen(
        [sys.executable, "-m", "agents.reference"],
        cwd=REPOSITORY,
        env={**there.environment(folder), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    there.pid = process.pid
    out, err = process.communicate(timeout=60)
    there.pid = None
    assert err == ""
    lines = out.splitlines()
    return process.returncode, json.loads(lines[-1]) if lines else None


@pytest.mark.parametrize(("tool", "when"), [("charge", "kill"), ("ship", "kill_before")])
def test_sigkill_during_a_keyed_step(tmp_path: Path, tool: str, when: str) -> None:
    """SIGKILL while the service has the call, executed or not: same intent and key after the restart, one effect."""
    with world(ORDER) as there:
        there.faults[tool] = [Fault(when)]
        assert start(there, tmp_path) == (-9, None)
        code, outcome = start(there, tmp_path)
    assert code == 0
    assert outcome is not None
    assert outcome["status"] == "succeeded"
    assert there.standing() == ["charge", "reserve", "ship", "email"]
    assert len({seen.headers["idempotency-key"] for seen in there.calls(tool)}) == 1
    step = {"charge": 1, "reserve": 2, "ship": 3}[tool]
    resumed = next(event for event in events(tmp_path) if event["type"] == "run_resumed")
    assert (resumed["from_step"], resumed["skipped"]) == (step, list(range(1, step)))
    assert there.questions(tool), "the state was asked for before anything was repeated"


def test_sigkill_during_an_irreversible_step(tmp_path: Path) -> None:
    """SIGKILL while a mail may be going out: never sent again, left to a person, the rest kept."""
    with world(ORDER) as there:
        there.faults["email"] = [Fault("kill")]
        assert start(there, tmp_path)[0] == -9
        code, outcome = start(there, tmp_path)
    assert code == 0
    assert outcome is not None
    assert (outcome["status"], outcome["completed"]) == ("partial_success", [1, 2, 3])
    assert len(there.calls("email")) == 1
    assert there.undone() == []


@pytest.mark.parametrize(("tool", "when"), [("release", "kill_before"), ("refund", "kill")])
def test_sigkill_during_compensation(tmp_path: Path, tool: str, when: str) -> None:
    """SIGKILL while undoing: the restart goes on undoing, never forward, and nothing is undone twice."""
    with world(ORDER) as there:
        ship_fails(there)
        there.faults[tool] = [Fault(when)]
        assert start(there, tmp_path)[0] == -9
        code, outcome = start(there, tmp_path)
    assert code == 0
    assert outcome is not None
    assert outcome["status"] == "rolled_back"
    assert there.undone() == ["reserve", "charge"]
    assert len(there.calls("ship")) == 1


def test_sigkill_during_a_model_call(tmp_path: Path) -> None:
    """SIGKILL while the model thinks: the same conversation is asked again, and no step is repeated."""
    with world(ORDER) as there:
        there.model_faults = [None, None, Fault("kill")]
        assert start(there, tmp_path)[0] == -9
        code, outcome = start(there, tmp_path)
    assert code == 0
    assert outcome is not None
    assert outcome["status"] == "succeeded"
    assert there.model_calls()[2].body == there.model_calls()[3].body
    assert [effect.tool for effect in there.effects] == ["charge", "reserve", "ship", "email"]
