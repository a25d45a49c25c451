"""Logical calls and attempts, told from the wire alone."""

from __future__ import annotations

from typing import Any

from injectors.intents import Ask, Attempt, ModelCalls, ToolCalls

GROUPS = {"charge": "payments", "refund": "payments"}


class Wire:
    """A run seen from the wire, in a few words."""

    def __init__(self, **wanted: int) -> None:
        self.calls = ToolCalls(GROUPS, {("gift", meaning): count for meaning, count in wanted.items()} or None)
        self.turn = 0

    def model(self, *asks: tuple[str, str]) -> None:
        """A whole message of the model."""
        self.turn += 1
        self.calls.asked(self.turn, [Ask(tool, meaning) for tool, meaning in asks])

    def call(self, tool: str, meaning: str, key: str | None = None, outcome: str = "ok") -> tuple[int, int, int]:
        """One request and how it ended: number of the call, attempt, ordinal among equal calls."""
        attempt = self.calls.attempt(tool, meaning, key=key)
        self.calls.ended(attempt, outcome)
        return numbers(attempt)


def numbers(attempt: Attempt) -> tuple[int, int, int]:
    """Number of the call, attempt, ordinal."""
    return attempt.place.call, attempt.place.attempt, attempt.ordinal


def test_calls_are_numbered_as_the_model_asked() -> None:
    """Parallel calls that arrive in another order keep the numbers of the message."""
    wire = Wire()
    wire.model(("charge", "a"), ("charge", "b"), ("charge", "c"))
    assert [wire.call("charge", what)[0] for what in "cab"] == [3, 1, 2]


def test_calls_nobody_asked_for_follow_by_arrival() -> None:
    """A compensation gets the next number of its tool."""
    wire = Wire()
    wire.model(("charge", "a"), ("refund", "asked"))
    assert wire.call("refund", "undo-1") == (2, 1, 1)
    assert wire.call("refund", "undo-2") == (3, 1, 1)
    assert wire.call("refund", "asked") == (1, 1, 1)


def test_a_repeat_with_its_key_is_another_attempt() -> None:
    """The same key is the same call, whatever else has happened."""
    wire = Wire()
    wire.model(("charge", "a"))
    assert [wire.call("charge", "a", "k", "unknown"), wire.call("charge", "a", "k")] == [(1, 1, 1), (1, 2, 1)]


def test_a_fresh_key_for_each_attempt_does_not_hide_a_repeat() -> None:
    """The model has asked once, so that three keys are three attempts of one call."""
    wire = Wire()
    wire.model(("charge", "a"))
    assert [wire.call("charge", "a", key, "unknown") for key in "xyz"] == [(1, 1, 1), (1, 2, 1), (1, 3, 1)]


def test_two_equal_gifts_are_two_calls_and_a_third_is_none() -> None:
    """As many as the model has asked for, whether at once or one after the other."""
    for at_once in (True, False):
        wire = Wire()
        if at_once:
            wire.model(("gift", "g"), ("gift", "g"))
        else:
            wire.model(("gift", "g"))
        found = [wire.call("gift", "g", "k1")]
        if not at_once:
            wire.model(("gift", "g"))
        found += [wire.call("gift", "g", "k2"), wire.call("gift", "g", "k3")]
        assert found == [(1, 1, 1), (2, 1, 2), (2, 2, 2)]


def test_without_keys_a_failure_tells_a_repeat_from_the_next_gift() -> None:
    """After an error the same call is tried again; after a success, or beside one under way, it is the next."""
    wire = Wire()
    wire.model(("gift", "g"), ("gift", "g"), ("gift", "g"))
    assert wire.call("gift", "g", outcome="error") == (1, 1, 1)
    assert wire.call("gift", "g") == (1, 2, 1)
    under_way = wire.calls.attempt("gift", "g")
    assert numbers(under_way) == (2, 1, 2)
    assert wire.call("gift", "g") == (3, 1, 3)


def test_asking_again_is_no_further_call_where_the_task_is_known() -> None:
    """A model that asks a second time for the task's only gift asks for another attempt, even under a new key."""
    wire = Wire(g=1)
    wire.model(("gift", "g"))
    assert wire.call("gift", "g", "k1", "timeout") == (1, 1, 1)
    wire.model(("gift", "g"))
    assert wire.call("gift", "g", "k2") == (1, 2, 1)


def test_groups_count_over_their_tools() -> None:
    """The second call of a group may be the first of its tool."""
    wire = Wire()
    wire.model(("charge", "a"), ("refund", "b"))
    place: Any = wire.calls.attempt("refund", "b").place
    assert (place.group, place.call, place.group_call) == ("payments", 1, 2)


def test_fields_that_the_agent_adds_do_not_make_another_call() -> None:
    """A request with all the arguments the model gave, and more, is the call that was asked for."""
    calls = ToolCalls({})
    calls.asked(1, [Ask("charge", "m1", {"order": "o-1"}), Ask("charge", "m2", {"order": "o-2"})])
    attempt = calls.attempt("charge", "m2+", args={"order": "o-2", "trace": "t"})
    assert numbers(attempt) == (2, 1, 1)
    assert numbers(calls.attempt("charge", "other", args={"order": "o-9"})) == (3, 1, 1)


def test_equal_bodies_are_attempts_of_one_model_call() -> None:
    """The body tells calls apart, also after a restart that begins anew."""
    calls = ModelCalls()
    places = [calls.attempt(body) for body in ("a", "a", "b", "a")]
    assert [(place.call, place.attempt) for place in places] == [(1, 1), (1, 2), (2, 1), (1, 3)]
    assert calls.latest == 2
