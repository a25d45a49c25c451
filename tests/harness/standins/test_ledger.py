"""The ledger: one transaction for each thing that happens, and nothing forgotten before its time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.standins.ledger import Call, Ledger

CALL = Call(world="w", run_id="r", tenant="t", tool="charge", args_digest="d1", key="k1", wire="w1")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """An empty ledger."""
    opened = Ledger(tmp_path / "effects.sqlite3")
    yield opened
    opened.close()


def test_effect_record_has_the_fields_of_the_contract(ledger: Ledger) -> None:
    """What is applied comes back as an `effect` record of the service, stamped with the time of its commit."""
    before = time.time()
    effect_id = ledger.apply(replace(CALL, caused_by="fault"), b'{"id":1}', compensates="e9")
    (record,) = ledger.effects("r")
    assert (record.type, record.source, record.run_id, record.tenant, record.tool) == (
        *("effect", "service", "r", "t", "charge"),
    )
    assert (record.effect_id, record.outcome, record.compensates) == (effect_id, "applied", "e9")
    assert (record.idempotency_key, record.wire, record.caused_by) == ("k1", "w1", "fault")
    assert record.args_digest == "d1"
    assert before <= record.t <= time.time()


def test_order_of_commit_is_order_of_time(ledger: Ledger) -> None:
    """Records come back in the order of their commits, and their times never fall."""
    for n in range(20):
        ledger.apply(replace(CALL, key=f"k{n}"), b"{}")
        ledger.note(CALL, "deduplicated", earlier=ledger.remembered(replace(CALL, key="k0")))
    times = [record.t for record in ledger.effects("r")]
    assert times == sorted(times)


def test_key_is_known_in_its_world_tenant_and_tool_alone(ledger: Ledger) -> None:
    """A remembered answer is found under the same key only where world, tenant and tool are the same."""
    ledger.apply(CALL, b'{"id":1}')
    found = ledger.remembered(CALL)
    assert found is not None
    assert (found.effect_id, found.args_digest, found.body) == ("e1", "d1", b'{"id":1}')
    for other in ({"world": "x"}, {"tenant": "x"}, {"tool": "x"}, {"key": "x"}):
        assert ledger.remembered(replace(CALL, **other)) is None


def test_second_effect_under_one_key_cannot_be_written(ledger: Ledger) -> None:
    """The key is unique in the file; a transaction that breaks off leaves neither the effect nor a lock behind."""
    ledger.apply(CALL, b"{}")
    with pytest.raises(sqlite3.IntegrityError):
        ledger.apply(CALL, b"{}")
    assert len(ledger.effects("r")) == 1
    assert ledger.apply(replace(CALL, key="k2"), b"{}") == "e2"


def test_effect_ids_count_within_their_world(ledger: Ledger) -> None:
    """Ids are unique within a world and start anew in the next; numbers of a tool count per tenant."""
    first = ledger.apply(replace(CALL, key=None), b"{}")
    second = ledger.apply(replace(CALL, key=None, tenant="u"), b"{}")
    other = ledger.apply(replace(CALL, key=None, world="x"), b"{}")
    assert (first, second, other) == ("e1", "e2", "e1")
    assert ledger.numbers(CALL).of_tool == 2
    assert ledger.numbers(CALL).in_world == 3


def test_reopened_ledger_goes_on_counting(tmp_path: Path) -> None:
    """After a restart of the process, keys and numbers are what they were."""
    path = tmp_path / "effects.sqlite3"
    first = Ledger(path)
    first.apply(CALL, b"{}")
    first.close()
    again = Ledger(path)
    assert again.remembered(CALL) is not None
    assert again.apply(replace(CALL, key="k2"), b"{}") == "e2"
    again.close()


def test_forward_effect_is_found_by_its_business_id(ledger: Ledger) -> None:
    """Numbers and texts are different ids; one not undone comes before one undone, the agent's before the fault's."""
    ledger.apply(replace(CALL, key=None, caused_by="fault"), b"{}", base_id=1, business_id=1)
    ledger.apply(replace(CALL, key=None), b"{}", base_id=1, business_id=1)
    ledger.apply(replace(CALL, key=None), b"{}", base_id=1, business_id=1)
    assert ledger.forward(CALL, "charge", "1") is None
    assert ledger.forward(CALL, "refund", 1) is None
    undo = replace(CALL, tool="refund", key=None)
    ids = []
    for _ in range(4):
        found = ledger.forward(undo, "charge", 1)
        assert found is not None
        ids.append(found.effect_id)
        ledger.apply(undo, b"{}", compensates=found.effect_id)
    assert ids == ["e2", "e3", "e1", "e2"]


def test_undo_without_address_finds_the_last_of_the_run(ledger: Ledger) -> None:
    """Of a run's own effects the latest that is not undone."""
    for run_id in ("r", "r", "other"):
        ledger.apply(replace(CALL, key=None, run_id=run_id), b"{}")
    found = ledger.last_of_run(CALL, "charge")
    assert found is not None
    assert found.effect_id == "e2"
    ledger.apply(replace(CALL, tool="refund", key=None), b"{}", compensates="e2")
    found = ledger.last_of_run(CALL, "charge")
    assert found is not None
    assert found.effect_id == "e1"


def test_standing_effect_ends_when_it_is_undone(ledger: Ledger) -> None:
    """An effect of the same arguments stands until something compensates it."""
    assert ledger.standing(CALL) is None
    effect_id = ledger.apply(replace(CALL, key=None), b"{}")
    found = ledger.standing(CALL)
    assert found is not None
    assert found.effect_id == effect_id
    assert ledger.standing(replace(CALL, args_digest="d2")) is None
    ledger.apply(replace(CALL, tool="refund", key=None), b"{}", compensates=effect_id)
    assert ledger.standing(CALL) is None


def test_forgotten_world_leaves_the_others(ledger: Ledger) -> None:
    """Closing a world drops its effects, keys and numbers, and nothing of another."""
    ledger.apply(CALL, b"{}")
    ledger.apply(replace(CALL, world="x", run_id="r2"), b"{}")
    ledger.forget("w")
    assert ledger.effects("r") == []
    assert ledger.remembered(CALL) is None
    assert ledger.numbers(CALL).in_world == 1
    assert len(ledger.effects("r2")) == 1
