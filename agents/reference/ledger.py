"""The ledger: what was decided, what was begun, what came of it. Written before the call, in SQLite.

One file per run. A turn of the model and the actions it plans are stored in one transaction, so that a restart finds
both or neither; the state of an action moves `declared`, `pending`, then `succeeded`, `failed` or `uncertain`; calls
that never leave are `refused` or `skipped`. Nothing stored is erased.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.reference.errors import Failure

_TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS turns (n INTEGER PRIMARY KEY, message TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS actions (
    step INTEGER PRIMARY KEY, turn INTEGER NOT NULL, call_id TEXT NOT NULL, tool TEXT NOT NULL,
    arguments TEXT NOT NULL, ordinal INTEGER NOT NULL, key TEXT NOT NULL, intent TEXT NOT NULL,
    state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, result TEXT, failure TEXT, settled_at REAL);
CREATE TABLE IF NOT EXISTS undoings (
    step INTEGER PRIMARY KEY, tool TEXT NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0,
    failure TEXT);
"""


@dataclass(frozen=True, slots=True)
class Action:
    """One logical call of a tool, from plan to end."""

    step: int
    turn: int
    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    ordinal: int
    key: str
    intent: str
    state: str = "declared"
    attempts: int = 0
    result: Any = None
    failure: Failure | None = None
    settled_at: float | None = None


@dataclass(frozen=True, slots=True)
class Undoing:
    """The undoing of one step: `pending`, `compensated`, `compensation_failed` or `manual`."""

    step: int
    tool: str
    state: str
    attempts: int = 0
    failure: Failure | None = None


class Ledger:
    """The stored state of one run; safe to use from several threads."""

    def __init__(self, folder: Path, run_id: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(run_id.encode()).hexdigest()[:16]
        self._lock = threading.RLock()
        self._base = sqlite3.connect(
            folder / f"run-{name}.sqlite", timeout=10.0, isolation_level=None, check_same_thread=False
        )
        self._base.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; {_TABLES}")
        self.generation = int(self.fact("generation") or 0) + 1
        self.note("generation", self.generation)

    @property
    def resumed(self) -> bool:
        """Whether an earlier process of this run came before."""
        return self.generation > 1

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    # --- facts -----------------------------------------------------------------------------------------------------

    def fact(self, name: str) -> Any:
        """A stored value, or `None`."""
        with self._lock:
            row = self._base.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return json.loads(row[0]) if row else None

    def note(self, name: str, value: Any) -> None:
        """Store a value under a name."""
        with self._writing("noted"):
            self._set(name, value)

    def decide_to_undo(self, failure: Failure) -> None:
        """Turn round, for good: a restart goes on undoing. The first reason stands."""
        with self._writing("decided"):
            if self.fact("undoing") is None:
                self._set("undoing", failure.as_json())

    # --- forward ---------------------------------------------------------------------------------------------------

    def plan(self, message: Mapping[str, Any], actions: Sequence[Action], spent: Mapping[str, Any]) -> None:
        """Store a turn of the model, the actions planned from it and what was spent so far, all or nothing."""
        with self._writing("planned"):
            self._base.execute(
                "INSERT INTO turns SELECT COALESCE(MAX(n), 0) + 1, ? FROM turns", (json.dumps(message),)
            )
            self._base.executemany(
                "INSERT INTO actions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [_row(action) for action in actions],
            )
            self._set("spent", spent)

    def begin(self, step: int, attempt: int) -> bool:
        """Mark a step as started, before it is. True: the mark is on disk, whatever happens now."""
        with self._writing("begun"):
            self._base.execute("UPDATE actions SET state = 'pending', attempts = ? WHERE step = ?", (attempt, step))
        return not self._base.in_transaction

    def settle(self, step: int, state: str, *, at: float, result: Any = None, failure: Failure | None = None) -> None:
        """Store how a step ended."""
        with self._writing("settled"):
            self._base.execute(
                "UPDATE actions SET state = ?, result = ?, failure = ?, settled_at = ? WHERE step = ?",
                (state, json.dumps(result), _dump(failure), at, step),
            )

    def turns(self) -> list[Mapping[str, Any]]:
        """The model's turns, in order."""
        with self._lock:
            rows = self._base.execute("SELECT message FROM turns ORDER BY n").fetchall()
        return [json.loads(row[0]) for row in rows]

    def actions(self) -> list[Action]:
        """All actions, in the order of their steps."""
        with self._lock:
            rows = self._base.execute("SELECT * FROM actions ORDER BY step").fetchall()
        return [_action(row) for row in rows]

    # --- backward --------------------------------------------------------------------------------------------------

    def begin_undoing(self, step: int, tool: str, attempt: int) -> bool:
        """Mark an undoing as started, before it is; see `begin`."""
        with self._writing("begun"):
            self._base.execute(
                "INSERT INTO undoings (step, tool, state, attempts) VALUES (?, ?, 'pending', ?)"
                " ON CONFLICT (step) DO UPDATE SET state = 'pending', attempts = excluded.attempts",
                (step, tool, attempt),
            )
        return not self._base.in_transaction

    def settle_undoing(self, step: int, state: str, *, failure: Failure | None = None) -> None:
        """Store how an undoing ended, or that a step was handed to a person without one."""
        with self._writing("settled"):
            self._base.execute(
                "INSERT INTO undoings (step, tool, state, failure) VALUES (?, '', ?, ?)"
                " ON CONFLICT (step) DO UPDATE SET state = excluded.state, failure = excluded.failure",
                (step, state, _dump(failure)),
            )

    def undoings(self) -> dict[int, Undoing]:
        """All undoings, by step."""
        with self._lock:
            rows = self._base.execute("SELECT step, tool, state, attempts, failure FROM undoings").fetchall()
        return {row[0]: Undoing(row[0], row[1], row[2], row[3], _load(row[4])) for row in rows}

    # --- writing ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self, moment: str) -> Iterator[None]:
        """One transaction, durable when it is left; it takes part in one that is open already."""
        with self._lock:
            nested = self._base.in_transaction
            if not nested:
                self._base.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")
                raise
            if self._durable(moment, nested=nested):
                self._base.execute("COMMIT")

    def _durable(self, moment: str, *, nested: bool) -> bool:
        """Whether the transaction is to reach the disk now: always, before anything else happens."""
        return not nested

    def _set(self, name: str, value: Any) -> None:
        self._base.execute(
            "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, json.dumps(value)),
        )


def _dump(failure: Failure | None) -> str | None:
    return None if failure is None else json.dumps(failure.as_json())


def _load(text: str | None) -> Failure | None:
    return None if text is None else Failure.from_json(json.loads(text))


def _row(action: Action) -> tuple[Any, ...]:
    return (
        *(action.step, action.turn, action.call_id, action.tool, json.dumps(action.arguments)),
        *(action.ordinal, action.key, action.intent, action.state, action.attempts),
        *(json.dumps(action.result), _dump(action.failure), action.settled_at),
    )


def _action(row: Sequence[Any]) -> Action:
    step, turn, call_id, tool, arguments, ordinal, key, intent, state, attempts, result, failure, at = row
    return Action(
        *(step, turn, call_id, tool, json.loads(arguments), ordinal, key, intent, state, attempts),
        result=json.loads(result or "null"),
        failure=_load(failure),
        settled_at=at,
    )
