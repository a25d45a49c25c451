"""Results that no recording holds, and ids that stay unique."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.standins.ledger import Call, Ledger
from harness.standins.results import business_id, own_id, synthesised, with_value
from tests.harness.standins.shop import REGISTRY
from traces.paths import parse_path
from traces.registry_reading import registry_from

TOOLS = registry_from(REGISTRY).tools
CALL = Call(world="w", run_id="r", tenant="t", tool="charge")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """An empty ledger."""
    opened = Ledger(tmp_path / "effects.sqlite3")
    yield opened
    opened.close()


def test_made_up_result_echoes_the_arguments_under_an_id() -> None:
    """The id has the tool's name and number; what the agent sent comes back, but for id and status."""
    made = synthesised(TOOLS["refund"], {"charge_id": "ch_1", "status": "?"}, 3)
    assert made.body == {"id": "refund-3", "status": "ok", "charge_id": "ch_1"}
    assert made.ok


def test_made_up_result_can_be_undone() -> None:
    """The id stands also where the compensation looks for it, at any depth."""
    assert synthesised(TOOLS["charge"], {"amount": 2}, 1).body["charge_id"] == "charge-1"
    made = synthesised(TOOLS["reserve"], {"sku": "s1"}, 2)
    assert made.body["hold"] == {"id": "reserve-2"}
    assert business_id(TOOLS["reserve"], made.body) == "reserve-2"


def test_tool_without_address_has_no_business_id() -> None:
    """Where the registry names no path, or the result lacks it, the effect has no name."""
    assert business_id(TOOLS["email"], {"id": 1}) is None
    assert business_id(TOOLS["refund"], {"id": 1}) is None
    assert business_id(TOOLS["charge"], "not an object") is None


@pytest.mark.parametrize(("base", "second", "third"), [("ch_1", "ch_1-2", "ch_1-3"), (7, 7002, 7003)])
def test_second_effect_gets_an_id_of_its_own(ledger: Ledger, base: Any, second: Any, third: Any) -> None:
    """The recorded id goes to the first effect, a numbered one to each further one; a number stays a number."""
    for wanted in (base, second, third):
        own = own_id(ledger, CALL, base)
        assert own == wanted
        ledger.apply(CALL, b"{}", base_id=base, business_id=own)


def test_id_that_the_recording_uses_elsewhere_is_not_given_twice(ledger: Ledger) -> None:
    """A numbered id that another effect has already is skipped."""
    for base in ("ch_1", "ch_1-2"):
        ledger.apply(CALL, b"{}", base_id=base, business_id=base)
    assert own_id(ledger, CALL, "ch_1") == "ch_1-3"


def test_tenants_and_worlds_have_ids_of_their_own(ledger: Ledger) -> None:
    """What one tenant has does not take the recorded id from another."""
    ledger.apply(CALL, b"{}", base_id="ch_1", business_id="ch_1")
    assert own_id(ledger, replace(CALL, tenant="u"), "ch_1") == "ch_1"
    assert own_id(ledger, replace(CALL, world="x"), "ch_1") == "ch_1"
    assert own_id(ledger, CALL, None) is None


def test_value_is_set_at_a_path_in_a_copy() -> None:
    """Fields are made where they are missing, list items changed in place, and the original stays as it was."""
    value = {"a": [{"b": 1}], "c": 2}
    assert with_value(value, parse_path("$.a[0].b"), 9) == {"a": [{"b": 9}], "c": 2}
    assert with_value(value, parse_path("$.x.y"), 9) == value | {"x": {"y": 9}}
    assert with_value(value, parse_path("$.a[5].b"), 9) == value
    assert with_value(value, parse_path("$.c.d"), 9) == value
    assert value == {"a": [{"b": 1}], "c": 2}
