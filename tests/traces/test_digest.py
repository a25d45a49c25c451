"""Digests: one spelling for one meaning."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given

from tests.traces.strategies import json_values, searched
from traces.digest import Intent, Normalise, args_digest, canonical, digest, intent_digest, normalise
from traces.paths import parse_path


def intent(*paths: str) -> Intent:
    """An intent of these fields."""
    return Intent(json=tuple(parse_path(path) for path in paths))


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        ({"b": 1, "a": [1.0, 2.5, -0.0]}, '{"a":[1,2.5,0],"b":1}'),
        ({"ä": "ö"}, '{"ä":"ö"}'),
        ([True, None, 1e3], "[true,null,1000]"),
        ({"a": {"d": 1, "c": {}}}, '{"a":{"c":{},"d":1}}'),
    ],
)
def test_canonical(value: Any, spelled: str) -> None:
    """Keys are sorted, blanks left out, letters kept, integral floats integers."""
    assert canonical(value) == spelled.encode()
    assert digest(value) == hashlib.sha256(spelled.encode()).hexdigest()


@searched
@given(value=json_values)
def test_spelling_does_not_matter(value: Any) -> None:
    """A value written and read by JSON in another order and layout has the same digest."""
    again = json.loads(json.dumps(value, indent=3, sort_keys=True))
    assert digest(again) == digest(value)


def test_nothing_an_agent_sends_fails() -> None:
    """NaN and lone surrogates, which Python's JSON reader lets through, have digests too."""
    assert len(digest([float("nan"), float("inf"), "\ud800"])) == 64


def test_normalise() -> None:
    """Named fields are dropped at any depth, paths at their place; texts are trimmed; named fields casefolded."""
    rule = Normalise(drop=frozenset({"ts", "$.meta.id"}), trim=True, casefold=frozenset({"currency"}))
    args = {
        "ts": 1,
        "id": "kept",
        "meta": {"id": "x", "deep": {"ts": 2, "id": 3}},
        "currency": " EUR ",
        "items": [{"ts": 5, "currency": "Usd", "name": " B "}],
    }
    assert normalise(args, rule) == {
        "id": "kept",
        "meta": {"deep": {"id": 3}},
        "currency": "eur",
        "items": [{"currency": "usd", "name": "B"}],
    }
    assert args["ts"] == 1


def test_volatile_fields_are_added() -> None:
    """Fields found to differ between fault-free runs drop out of the digest."""
    rule = Normalise().also_dropping(["request_id"])
    assert args_digest({"a": 1, "request_id": "x"}, rule) == args_digest({"a": 1.0, "request_id": "y"}, rule)
    assert args_digest({"a": 1, "request_id": "x"}) != args_digest({"a": 1, "request_id": "y"})


def test_intent_is_the_declared_fields() -> None:
    """The digest of an intent is that of an object with the declared fields that are there, and of nothing else."""
    rule = Normalise(trim=True)
    assert intent_digest({"order_id": " o-1", "amount": 5, "x": 1}, intent("$.order_id", "$.amount"), rule) == digest(
        {"order_id": "o-1", "amount": 5}
    )
    assert intent_digest({"order_id": "o-1"}, intent("$.order_id", "$.amount")) == digest({"order_id": "o-1"})
    assert intent_digest({"x": 1}, intent("$.order_id")) is None
    assert intent_digest({"x": 1}, None) is None


def test_intent_in_a_header() -> None:
    """An intent header is read in any case; an empty or missing one is no intent."""
    header = Intent(header="X-Intent-Id")
    assert intent_digest({}, header, headers={"x-intent-id": "i-1"}) == intent_digest(
        {"a": 1}, header, headers={"X-INTENT-ID": "i-1"}
    )
    assert intent_digest({}, header, headers={"x-intent-id": ""}) is None
    assert intent_digest({}, header) is None
