"""Executing what was cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.known_bad.cut_arguments_executed import completed, harvest
from tests.agents.fake_model import Says
from tests.agents.fake_shop import CHARGE, ORDER
from tests.agents.fake_world import world
from tests.agents.known_bad.variant import play


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('{"amount": 12', {"amount": 12}),
        ('{"a": "sku-', {"a": "sku-"}),
        ('{"a": [1, {"b": 2', {"a": [1, {"b": 2}]}),
        ('{"a": 1, "b', {"a": 1}),
        ('{"a": "x\\', {"a": "x"}),
        ("{", {}),
        ("", {}),
    ],
)
def test_the_guess(raw: str, expected: Any) -> None:
    """The longest beginning that becomes JSON by closing what is open."""
    assert completed(raw) == expected


def test_the_wrong_amount_is_charged(tmp_path: Path) -> None:
    """A stream that ends cleanly inside 1200: twelve are charged, and the run says succeeded."""

    def script(said: int, body: dict[str, Any]) -> Says:
        return Says(calls=[CHARGE], cut=len('{"order": "o-1", "amount": 12')) if said == 0 else ORDER[said]

    with world(script) as there:
        outcome = play(there, tmp_path, task={"stream": True}, harvest=harvest)
    assert outcome.status == "succeeded"
    assert there.effects[0].arguments == {"order": "o-1", "amount": 12}
