"""Keys: stable over attempts, different for different things, the same for the same."""

from __future__ import annotations

from typing import Any

from agents.reference import keys
from agents.reference.keys import Earlier, next_ordinal
from agents.reference.tools import Normalise, Tool

TOOL = Tool("charge", idempotency="keyed")


def key(arguments: dict[str, Any], tool: Tool = TOOL, **given: Any) -> str:
    """The key of a call."""
    about = {"tenant": "a", "intent": "i", "ordinal": 1, **given}
    return keys.forward_key(tool, arguments, **about)


def test_no_two_actions_share_a_spelling() -> None:
    """Tenant, intent, tool, arguments and ordinal cannot flow into one another, whatever signs they hold."""
    made = [
        key({"x": 1}),
        key({"x": 1}, ordinal=2),
        key({"x": 1}, tenant="b"),
        key({"x": 1}, tenant="a|i", intent=""),
        key({"x": 1}, tenant="a", intent="|i"),
        key({"x": 1}, tenant='a","i'),
        key({"x": "1"}),
        key({"x": 1}, Tool("refund", idempotency="keyed")),
        keys.compensation_key(key({"x": 1}), "charge"),
        keys.compensation_key(key({"x": 1}), "refund"),
    ]
    assert len(set(made)) == len(made)


def test_the_same_action_has_one_key() -> None:
    """Order of fields, integral floats and what the registry calls noise make no difference, at any depth."""
    rule = Normalise(frozenset({"ts"}), True, frozenset({"currency"}))
    tool = Tool("charge", normalise=rule)
    one = {"amount": 5, "of": {"currency": "EUR ", "ts": 1}, "list": [" a "]}
    two = {"list": ["a"], "of": {"ts": 2, "currency": "eur"}, "amount": 5.0}
    assert key(one, tool) == key(two, tool)
    assert key(one) != key(two)


def test_paths_in_the_rule_count_there_alone() -> None:
    """A dropped path leaves fields of the same name elsewhere."""
    rule = Normalise(frozenset({"$.meta.ts"}))
    assert keys.normalised({"ts": 1, "meta": {"ts": 2}}, rule) == {"ts": 1, "meta": {}}


def test_two_gifts_are_two() -> None:
    """Asking again for what was done, or may have been, is another action; for what surely failed, the same."""
    assert next_ordinal([]) == 1
    assert next_ordinal([Earlier(1, False)]) == 2
    assert next_ordinal([Earlier(1, False), Earlier(2, False)]) == 3
    assert next_ordinal([Earlier(1, True)]) == 1
    assert next_ordinal([Earlier(1, False), Earlier(2, True)]) == 2
    assert next_ordinal([Earlier(1, True), Earlier(1, False)]) == 2


def test_declared_intent_fields_say_what_is_equal() -> None:
    """Where the registry names the business fields, the rest does not make another action."""
    tool = Tool("book", intent_paths=("$.flight", "$.who.name"))
    one = {"flight": "X1", "who": {"name": "A"}, "card": 1}
    assert keys.identity(tool, one) == keys.identity(tool, {**one, "card": 2})
    assert keys.identity(tool, one) != keys.identity(tool, {**one, "flight": "X2"})
    assert keys.identity(tool, {"card": 1}) != keys.identity(tool, {"card": 2})


def test_a_key_is_shown_where_the_tool_looks() -> None:
    """In the header, in another header, in the body; a read shows none."""
    assert keys.present(TOOL, "k", {"a": 1}).headers == {"Idempotency-Key": "k"}
    shown = keys.present(Tool("t", key_header=None, key_path="$.meta.request_id"), "k", {"a": 1})
    assert (shown.headers, shown.body, shown.key) == ({}, {"a": 1, "meta": {"request_id": "k"}}, "k")
    assert keys.present(Tool("t", severity="none"), "k", {"a": 1}).key is None


def test_arguments_of_any_text_have_a_key() -> None:
    """A lone surrogate, as JSON readers let through, does not break the key."""
    assert key({"x": "\ud800"}).startswith("do-")
