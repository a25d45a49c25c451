"""The ledger of effects: the ground truth, in SQLite, one transaction for each thing that happens.

An effect and the answer remembered under its key are committed together. `t` (Unix time, seconds) is taken inside the
transaction just before COMMIT: measured against the wire it then never contradicts the order of happening.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traces.history import Record

_SCHEMA = """
CREATE TABLE IF NOT EXISTS effects (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, world TEXT NOT NULL, run_id TEXT NOT NULL, tenant TEXT NOT NULL,
    tool TEXT NOT NULL, effect_id TEXT, outcome TEXT NOT NULL, t REAL NOT NULL, idempotency_key TEXT, wire TEXT,
    compensates TEXT, caused_by TEXT, args_digest TEXT, base_id TEXT, business_id TEXT
);
CREATE INDEX IF NOT EXISTS effects_of_run ON effects (run_id);
CREATE INDEX IF NOT EXISTS effects_by_id ON effects (world, tenant, tool, business_id);
CREATE INDEX IF NOT EXISTS effects_by_base ON effects (world, tenant, tool, base_id);
CREATE INDEX IF NOT EXISTS effects_by_digest ON effects (world, tenant, tool, args_digest);
CREATE INDEX IF NOT EXISTS undone ON effects (world, compensates);
CREATE TABLE IF NOT EXISTS answers (
    world TEXT NOT NULL, tenant TEXT NOT NULL, tool TEXT NOT NULL, idempotency_key TEXT NOT NULL,
    args_digest TEXT NOT NULL, effect_id TEXT NOT NULL, compensates TEXT, body BLOB NOT NULL,
    PRIMARY KEY (world, tenant, tool, idempotency_key)
) WITHOUT ROWID;
"""
_UNDONE = """EXISTS (SELECT 1 FROM effects AS undo
    WHERE undo.world = effects.world AND undo.compensates = effects.effect_id AND undo.outcome = 'applied')"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a tool as the ledger knows it: whose it is, what it asks for, under which key, by which request."""

    world: str
    run_id: str
    tenant: str
    tool: str
    args_digest: str | None = None
    key: str | None = None
    wire: str | None = None
    caused_by: str | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """An effect that was applied at `t`; `compensates` is the effect that it undid."""

    effect_id: str
    compensates: str | None
    t: float


@dataclass(frozen=True, slots=True)
class Remembered:
    """What the service knows under a key: the arguments of the effect, and the answer (JSON) it gave."""

    effect_id: str
    compensates: str | None
    args_digest: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Numbers:
    """What a new effect is called: the n-th of its world, and the n-th of its tool for its tenant (both from 1)."""

    in_world: int
    of_tool: int


class Ledger:
    """The effects of all open worlds. Raises `sqlite3.Error` where the file cannot be read or written."""

    def __init__(self, path: Path | str) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        # WAL without a sync per commit: it survives the death of the process, and costs 0.01 ms an effect.
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.executescript(_SCHEMA)
        self._worlds: dict[str, int] = {}
        self._tools: dict[tuple[str, str, str], int] = {}

    def close(self) -> None:
        """Closes the file."""
        self._db.close()

    def numbers(self, call: Call) -> Numbers:
        """The numbers of the effect that would come next."""
        return Numbers(self._world(call.world) + 1, self._tool(call) + 1)

    def apply(
        self,
        call: Call,
        body: bytes,
        *,
        compensates: str | None = None,
        base_id: Any = None,
        business_id: Any = None,
    ) -> str:
        """Commits a new effect and, where the call has a key, its answer (JSON) to remember; returns its id.

        `business_id` is what the answer calls the effect, `base_id` what the recording called it; `None` for no name.
        """
        numbers = self.numbers(call)
        effect_id = f"e{numbers.in_world}"
        with self._transaction():
            if call.key is not None:
                whose = (call.world, call.tenant, call.tool, call.key)
                self._db.execute(
                    "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (*whose, call.args_digest, effect_id, compensates, body),
                )
            self._insert(
                call,
                outcome="applied",
                effect_id=effect_id,
                compensates=compensates,
                base_id=_text(base_id),
                business_id=_text(business_id),
            )
        self._worlds[call.world] = numbers.in_world
        self._tools[call.world, call.tenant, call.tool] = numbers.of_tool
        return effect_id

    def note(self, call: Call, outcome: str, *, earlier: Effect | Remembered | None = None) -> None:
        """Commits that a call was `deduplicated` (as the `earlier` effect) or `rejected`."""
        with self._transaction():
            self._insert(
                call,
                outcome=outcome,
                effect_id=earlier.effect_id if earlier else None,
                compensates=earlier.compensates if earlier else None,
            )

    def remembered(self, call: Call) -> Remembered | None:
        """The effect under the key of this call, within its world, tenant and tool."""
        row = self._db.execute(
            "SELECT effect_id, compensates, args_digest, body FROM answers"
            " WHERE world = ? AND tenant = ? AND tool = ? AND idempotency_key = ?",
            (call.world, call.tenant, call.tool, call.key),
        ).fetchone()
        return Remembered(*row) if row else None

    def standing(self, call: Call) -> Effect | None:
        """An effect of the same call (world, tenant, tool, arguments) that has not been undone."""
        return self._effect(
            f"tool = ? AND args_digest = ? AND NOT {_UNDONE} ORDER BY seq", call, call.tool, call.args_digest
        )

    def forward(self, call: Call, tool: str, business_id: Any) -> Effect | None:
        """The effect of a tool that has this business id, in the world and for the tenant of the call: rather one
        that is not undone yet, and rather one that the agent caused than one that a fault caused."""
        return self._effect(
            f"tool = ? AND business_id = ? ORDER BY {_UNDONE}, caused_by IS NOT NULL, seq",
            call,
            tool,
            _text(business_id),
        )

    def last_of_run(self, call: Call, tool: str) -> Effect | None:
        """The latest effect of a tool in the run of the call; rather one that is not undone yet."""
        return self._effect(
            f"tool = ? AND run_id = ? ORDER BY {_UNDONE}, caused_by IS NOT NULL, seq DESC", call, tool, call.run_id
        )

    def _effect(self, condition: str, call: Call, *values: str | None) -> Effect | None:
        row = self._db.execute(
            "SELECT effect_id, compensates, t FROM effects WHERE world = ? AND tenant = ? AND outcome = 'applied'"
            f" AND {condition} LIMIT 1",
            (call.world, call.tenant, *values),
        ).fetchone()
        return Effect(*row) if row else None

    def came_with(self, call: Call, base_id: Any) -> int:
        """How many effects of this tool, for this tenant in this world, the recording calls by this name."""
        row = self._db.execute(
            "SELECT COUNT(*) FROM effects WHERE world = ? AND tenant = ? AND tool = ? AND base_id = ?",
            (call.world, call.tenant, call.tool, _text(base_id)),
        ).fetchone()
        return int(row[0])

    def is_taken(self, call: Call, business_id: Any) -> bool:
        """True where an effect of this tool, for this tenant in this world, has this business id."""
        row = self._db.execute(
            "SELECT 1 FROM effects WHERE world = ? AND tenant = ? AND tool = ? AND business_id = ?",
            (call.world, call.tenant, call.tool, _text(business_id)),
        ).fetchone()
        return row is not None

    def effects(self, run_id: str) -> list[Record]:
        """The `effect` records of a run, in the order in which they were committed."""
        rows = self._db.execute(
            "SELECT t, tenant, tool, effect_id, outcome, idempotency_key, wire, compensates, caused_by, args_digest"
            " FROM effects WHERE run_id = ? ORDER BY seq",
            (run_id,),
        )
        names = ("t", "tenant", "tool", "effect_id", "outcome", "idempotency_key", "wire", "compensates")
        return [
            Record(
                type="effect",
                source="service",
                run_id=run_id,
                **dict(zip((*names, "caused_by", "args_digest"), row, strict=True)),
            )
            for row in rows
        ]

    def forget(self, world: str) -> None:
        """Drops all that belongs to a world."""
        with self._transaction():
            self._db.execute("DELETE FROM effects WHERE world = ?", (world,))
            self._db.execute("DELETE FROM answers WHERE world = ?", (world,))
        self._worlds.pop(world, None)
        for name in [name for name in self._tools if name[0] == world]:
            del self._tools[name]

    def _insert(
        self,
        call: Call,
        *,
        outcome: str,
        effect_id: str | None,
        compensates: str | None,
        base_id: str | None = None,
        business_id: str | None = None,
    ) -> None:
        whose = (call.world, call.run_id, call.tenant, call.tool)
        what = (call.key, call.wire, compensates, call.caused_by, call.args_digest, base_id, business_id)
        self._db.execute(
            "INSERT INTO effects (world, run_id, tenant, tool, effect_id, outcome, t, idempotency_key, wire,"
            " compensates, caused_by, args_digest, base_id, business_id)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*whose, effect_id, outcome, time.time(), *what),
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _world(self, world: str) -> int:
        """Effects applied so far in a world; read once after a start of the process, counted since."""
        if world not in self._worlds:
            query = "SELECT COUNT(*) FROM effects WHERE world = ? AND outcome = 'applied'"
            self._worlds[world] = self._db.execute(query, (world,)).fetchone()[0]
        return self._worlds[world]

    def _tool(self, call: Call) -> int:
        name = (call.world, call.tenant, call.tool)
        if name not in self._tools:
            query = "SELECT COUNT(*) FROM effects WHERE world = ? AND tenant = ? AND tool = ? AND outcome = 'applied'"
            self._tools[name] = self._db.execute(query, name).fetchone()[0]
        return self._tools[name]


def _text(value: Any) -> str | None:
    """A business id as one text per value, so that 1 and "1" stay two ids."""
    return None if value is None else json.dumps(value, sort_keys=True)
