"""Naive rules 4 and 5: `no-escaped-exception` and `breaker-respected`."""

from __future__ import annotations

from tests.oracle.reading import History, Line
from tests.oracle.ruling import Opinion


def no_escaped_exception(history: History, run: str) -> Opinion:
    """4. `no-escaped-exception`."""
    # "Never vacuous; unobservable when the run has neither `run_finished` nor `exception` nor
    # `process_exited`."
    opinion = Opinion(
        unobservable=not any(history.of(run, "run_finished", "exception", "process_exited")),
    )
    # "`exception` with handled false: `unhandled`."
    for line in history.of(run, "exception"):
        if line.record.handled is False:
            opinion.told("unhandled", line.number)
    # "`process_exited`, not `injected`, by a signal, or with a non-zero exit code while its run had no
    # `run_finished` yet: `crash`." "A signal of 0 or empty is none."
    for line in history.of(run, "process_exited"):
        over = any(end.number < line.number for end in history.of(run, "run_finished"))
        by_signal = line.record.signal not in (None, 0, "")
        by_code = line.record.exit_code not in (None, 0) and not over
        if line.record.injected is not True and (by_signal or by_code):
            opinion.told("crash", line.number)
    # "Any `run_finished` with status `failed` and no `error.kind` (an empty one is none): `unstructured`."
    for line in history.of(run, "run_finished"):
        error = line.record.error
        if line.record.status == "failed" and not (error is not None and error.kind):
            opinion.told("unstructured", line.number)
    return opinion


def breaker_respected(history: History, run: str) -> Opinion:
    """5. `breaker-respected`."""
    changes = list(history.of(run, "breaker_state_changed"))
    # "Vacuous: no breaker opened."
    opinion = Opinion(vacuous=not any(change.record.to == "open" for change in changes))
    probes = history.limits(run).half_open_probes or 0
    for change in changes:
        started = _calls_until_next_change(history, change)
        # "After `breaker_state_changed` to `open` for a tool, its run starts no call of that tool until the
        # state changes; after a change to `half_open` at most `half_open_probes` calls until the next change
        # ...: `call-while-open` (proof: the change and the start)"
        allowed = {"open": 0, "half_open": probes}.get(change.record.to or "")
        if allowed is not None:
            for nth, start in enumerate(started, 1):
                if nth > allowed:
                    opinion.told("call-while-open", change.number, start.number)
    return opinion


def _calls_until_next_change(history: History, change: Line) -> list[Line]:
    """The starts of the change's tool after it, up to the next change of that tool; "`process_exited` end[s]
    the ban"."""
    enders = [
        x.number
        for x in history.of(change.run, "breaker_state_changed", "process_exited")
        if x.number > change.number and (x.kind == "process_exited" or x.record.tool == change.record.tool)
    ]
    return [
        start
        for start in history.of(change.run, "tool_call_started")
        if change.number < start.number < min(enders, default=start.number + 1)
        and start.record.tool == change.record.tool
    ]
