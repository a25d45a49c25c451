"""Runs one task, as contract section 6 asks: `python -m agents.reference`, or `_agent reference` of the harness."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import closing

from agents.reference.assembly import assemble
from agents.reference.clock import Clock, SystemClock
from agents.reference.decisions import REFERENCE, Decisions
from agents.reference.errors import Failure, unexpected
from agents.reference.events import Events
from agents.reference.outcome import Outcome
from agents.reference.task import TaskError, read_task


def run(env: Mapping[str, str], clock: Clock, decisions: Decisions = REFERENCE) -> Outcome:
    """One run of one task. Whatever goes wrong, there is an outcome."""
    try:
        task = read_task(env)
    except TaskError as fault:
        return Outcome("failed", failure=Failure("bad_task", str(fault)))
    common = {"run_id": task.run_id, "tenant": task.tenant, "intent_id": task.intent_id}
    events = Events(task.events_path, clock, common)
    try:
        agent = assemble(task, events=events, clock=clock, decisions=decisions)
        with closing(agent.ledger):
            return agent.finish()
    except Exception as fault:  # noqa: BLE001 - the outermost frame: an agent ends in words, not in a traceback
        outcome = Outcome("failed", failure=unexpected(fault))
        events.emit("exception", name=type(fault).__name__, message=str(fault), handled=True)
        events.emit("run_finished", status="failed", error=outcome.as_json()["error"], completed=[])
        return outcome
    finally:
        events.close()


def main(decisions: Decisions = REFERENCE) -> int:
    """Run the task of the environment and print its outcome as the last line. 1 only if that cannot be done."""
    outcome = run(os.environ, SystemClock(), decisions)
    try:
        sys.stdout.write(json.dumps(outcome.as_json()) + "\n")
        sys.stdout.flush()
    except OSError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
