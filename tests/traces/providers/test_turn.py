"""Turns and calls."""

from __future__ import annotations

from traces.providers.turn import best_guess, compact, raw_call, tool_call


def test_blanks_in_arguments_do_not_matter() -> None:
    """Two calls with the same arguments are equal however they are spelled."""
    assert raw_call("1", "charge", '{"amount": 12}') == tool_call("1", "charge", {"amount": 12})
    assert raw_call("1", "charge", '{"amount": 12}') != tool_call("1", "charge", {"amount": 13})


def test_cut_call_is_not_whole() -> None:
    """A cut text gives no arguments but a guess, and an empty one is a call without arguments."""
    cut = raw_call("1", "charge", '{"amount": 12')
    assert (cut.whole, cut.arguments, best_guess(cut)) == (False, {}, {"amount": 12})
    assert raw_call("1", "list", "").whole
    assert not raw_call("1", "list", "[1]").whole


def test_compact_keeps_order_and_letters() -> None:
    """Arguments go out without blanks, in their own order, letters as letters."""
    assert compact({"b": "ä", "a": [1, 2]}) == '{"b":"ä","a":[1,2]}'
