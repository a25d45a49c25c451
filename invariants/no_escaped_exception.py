"""no-escaped-exception: failures end in words, not in a crash (contract section 4.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from invariants.facts import Run
from invariants.invariant import Hook, Invariant
from invariants.verdict import Outcome, Ruling, Standing
from traces.history import CoreRecord

_HELD = Standing("held", "no exception left the run and every failure says why")
_UNOBSERVABLE = Standing("unobservable", "no record tells of the run's end, of its process or of an exception")


class NoEscapedException(Invariant):
    """Looks at exceptions, at ends of processes and at what failed runs say."""

    name: ClassVar[str] = "no-escaped-exception"

    def hooks(self) -> Mapping[str, Hook]:
        return {"exception": self._exception, "process_exited": self._exited, "run_finished": self._ended}

    def rule(self, run: Run) -> Outcome:
        rulings: dict[str, Ruling] | None = run.notes[self._slot]
        if rulings:
            return list(rulings.values())
        return _HELD if run.stopped or rulings is not None else _UNOBSERVABLE

    def _exception(self, run: Run, line: int, record: CoreRecord) -> None:
        if run.notes[self._slot] is None:
            run.notes[self._slot] = {}
        if record.handled is False:
            name = f"`{record.name}`" if record.name else "an exception"
            says = f": {record.message}" if record.message else ""
            self._break(run, line, "unhandled", f"{name} was not handled{says}")

    def _exited(self, run: Run, line: int, record: CoreRecord) -> None:
        if record.injected:
            return
        signal, code = record.signal, record.exit_code
        if signal:
            self._break(run, line, "crash", f"the process was ended by signal {signal}, which no fault sent")
        elif code and not run.end_line:
            self._break(run, line, "crash", f"the process exited with code {code} before its run had finished")

    def _ended(self, run: Run, line: int, record: CoreRecord) -> None:
        if record.status == "failed" and (record.error is None or not record.error.kind):
            self._break(run, line, "unstructured", "the run failed and its error names no kind")

    def _break(self, run: Run, line: int, reason: str, message: str) -> None:
        rulings: dict[str, Ruling] = run.notes[self._slot] or {}
        rulings.setdefault(reason, Ruling(reason, (line,), message))
        run.notes[self._slot] = rulings
