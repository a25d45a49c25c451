"""The run: ask the model, do what it wants, and at the end keep or undo what was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.reference import saga
from agents.reference.budget import Account, TimePlan
from agents.reference.compensation import Undoer, Undone
from agents.reference.context import exchanges
from agents.reference.errors import Failure, RunStopped, unexpected
from agents.reference.events import Events
from agents.reference.ledger import Action, Ledger
from agents.reference.model import ModelClient, Question
from agents.reference.outcome import Outcome, advice_for, shortfalls
from agents.reference.steps import Steps
from agents.reference.task import Task
from agents.reference.tools import Toolbox
from agents.reference.turn import Conversation


@dataclass(frozen=True, slots=True)
class Run:
    """One run, from wherever an earlier process of it stopped."""

    task: Task
    ledger: Ledger
    events: Events
    time: TimePlan
    account: Account
    toolbox: Toolbox
    model: ModelClient
    steps: Steps
    undoer: Undoer

    def finish(self) -> Outcome:
        """Bring the run to its end and say how it ended; an error of the agent's own is an end like any other."""
        stored = self.ledger.fact("outcome")
        if stored is None:
            self._open()
            ending = self._forward()
            outcome = self._conclude(ending)
            self.ledger.note("outcome", outcome.as_json())
        else:
            outcome = _restored(stored)
            self._say_resumed()
        self._say(outcome)
        return outcome

    def _open(self) -> None:
        now = self.steps.clock.now()
        for scope, rule in (
            (self.time.forward, "wall clock of the run; the share kept back is not for forward work"),
            (self.time.compensation, "share kept back, and the time for recovery"),
        ):
            self.events.emit(
                "budget_allocated",
                scope=scope.name,
                allotted_s=scope.allotted_s,
                remaining_s=round(scope.remaining(now), 4),
                rule=rule,
            )
        if self.ledger.resumed:
            self._say_resumed()

    def _say_resumed(self) -> None:
        actions = self.ledger.actions()
        done = [action.step for action in actions if action.state not in ("declared", "pending")]
        rest = [action.step for action in actions if action.state in ("declared", "pending")]
        from_step = rest[0] if rest else len(actions) + 1
        self.events.emit("run_resumed", from_step=from_step, skipped=done)
        self.events.acted(
            "resume",
            generation=self.ledger.generation,
            direction="backward" if self.ledger.fact("undoing") else "forward",
            in_doubt=[action.step for action in actions if action.state == "pending"],
        )

    def _forward(self) -> saga.Ending:
        """All forward work; a run that once turned round goes no step forward any more."""
        turned = self.ledger.fact("undoing")
        if turned is not None:
            return saga.Ending("undo", Failure.from_json(turned))
        try:
            stop = self._converse()
        except RunStopped as end:
            stop = saga.Stop(end.failure, budget=end.budget)
        except Exception as fault:  # noqa: BLE001 - the last place where forward work can be turned into an end
            self.events.emit("exception", name=type(fault).__name__, message=str(fault), handled=True)
            stop = saga.Stop(unexpected(fault))
        if stop is not None and stop.budget is not None:
            self.events.emit("budget_exhausted", budget=stop.budget)
        return saga.conclude(self.ledger.actions(), self.toolbox.any, stop)

    def _converse(self) -> saga.Stop | None:
        """Turn by turn until the model is done (`None`) or a step leaves no way forward."""
        while True:
            turns = self.ledger.turns()
            if turns:
                stop = self.steps.carry_out(len(turns))
                if stop is not None or not turns[-1]["calls"]:
                    return stop
            actions = self.ledger.actions()
            following = len(actions) + 1
            question = Question(
                Conversation(self.task.request, exchanges(turns, actions), self.task.offers),
                turn=len(turns) + 1,
                next_step=following if following <= self.task.limits.steps else None,
                scope=self.time.forward,
            )
            self.steps.plan(self.model.ask(question), self.account)

    def _conclude(self, ending: saga.Ending) -> Outcome:
        actions = self.ledger.actions()
        degraded = _degraded(actions, self.toolbox)
        if ending.way == "succeed":
            answer = self.ledger.turns()[-1]["text"] if self.ledger.turns() else None
            return Outcome("succeeded", self._standing(actions), answer=answer, degraded=degraded)
        if ending.way == "keep_part":
            return self._keep_part(ending.failure, degraded)
        if ending.way == "fail":
            return Outcome(
                "failed",
                failure=ending.failure,
                failed=shortfalls(actions),
                recoverable=True,
                advice=advice_for("failed", ending.failure),
                degraded=degraded,
            )
        return self._undo(ending.failure or Failure("unsettled", "no reason was stored"))

    def _keep_part(self, failure: Failure | None, degraded: tuple[dict[str, str], ...]) -> Outcome:
        left = self.undoer.settle_doubts()
        actions = self.ledger.actions()
        if left:
            self.events.emit("handed_off", **self._handover(actions, Undone(manual=left), failure))
        outcome = Outcome(
            "partial_success",
            completed=self._standing(actions),
            failure=failure,
            failed=shortfalls(actions),
            recoverable=True,
            advice=advice_for("partial_success", failure),
            degraded=degraded,
        )
        for effect in saga.standing_effects(actions, self.toolbox.any):
            self.events.emit("effect_settled", step=effect.step, disposition="kept")
        self.events.emit(
            "partial_success_returned",
            completed=list(outcome.completed),
            failed=list(outcome.failed),
            recoverable=True,
            advice=outcome.advice,
        )
        return outcome

    def _standing(self, actions: Sequence[Action]) -> tuple[int, ...]:
        undone = saga.undone_by_plan(actions, self.toolbox.any)
        return tuple(a.step for a in actions if a.state == "succeeded" and a.step not in undone)

    def _undo(self, failure: Failure) -> Outcome:
        """Turn round. Should undoing itself break down, whatever it had not settled goes to a person."""
        self.ledger.decide_to_undo(failure)
        try:
            done = self.undoer.undo_all()
        except Exception as fault:  # noqa: BLE001 - effects must not be left unsettled by an error of our own
            self.events.emit("exception", name=type(fault).__name__, message=str(fault), handled=True)
            done = self.undoer.give_up(unexpected(fault))
        actions = self.ledger.actions()
        status = "handed_off" if done.manual else "rolled_back"
        handover = self._handover(actions, done, failure) if done.manual else {}
        if handover:
            self.events.emit("handed_off", **handover)
        return Outcome(
            status,
            failure=failure,
            failed=shortfalls(actions),
            recoverable=not done.manual,
            advice=advice_for(status, failure),
            handover=handover,
        )

    def _handover(self, actions: Sequence[Action], done: Undone, failure: Failure | None) -> dict[str, Any]:
        """What a person needs: what is certain, what is not, what was tried, and what nobody has tried."""
        doubtful = [action.step for action in actions if action.state in ("pending", "uncertain")]
        return {
            "timeline": [
                {"step": action.step, "tool": action.tool, "state": action.state, "at": action.settled_at}
                for action in actions
            ],
            "certain": [action.step for action in actions if action.state == "succeeded"],
            "uncertain": doubtful,
            "tried": [{"compensated": done.compensated}, {"failed_with": failure.as_json() if failure else None}],
            "untried": [{"step": step, "why": why} for step, why in sorted(done.manual.items())],
            "in_flight": doubtful,
        }

    def _say(self, outcome: Outcome) -> None:
        said = outcome.as_json()
        self.events.emit(
            "run_finished",
            status=said["status"],
            error=said["error"],
            completed=said["completed"],
            recoverable=said["recoverable"],
            degraded=said["degraded"] or None,
            advice=said["advice"],
        )


def _degraded(actions: Sequence[Action], toolbox: Toolbox) -> tuple[dict[str, str], ...]:
    """Sources that stayed silent: reads that failed and that no later call of the same tool made up for."""
    silent: dict[str, str] = {}
    for action in actions:
        if toolbox.any(action.tool).effectful:
            continue
        if action.state == "succeeded":
            silent.pop(action.tool, None)
        elif action.failure is not None:
            silent[action.tool] = action.failure.kind
    return tuple({"what": tool, "why": why} for tool, why in silent.items())


def _restored(data: dict[str, Any]) -> Outcome:
    """An outcome as an earlier process stored it."""
    error = data.get("error")
    return Outcome(
        status=data["status"],
        completed=tuple(data["completed"]),
        failure=Failure(error["kind"], error["message"]) if error else None,
        failed=tuple(data["failed"]),
        recoverable=data["recoverable"],
        advice=data["advice"],
        degraded=tuple(data["degraded"]),
        answer=data["answer"],
    )
