"""What may be used of a model's answer."""

from __future__ import annotations

import pytest

from agents.reference.turn import Call, Turn, harvest, readable, sse_events

CALL = Call("c1", "charge", '{"amount": 1200}')


def test_a_normal_end_is_used_whole() -> None:
    """Calls with the stop reason for calls, text with the one for the end."""
    used = harvest(Turn("", (CALL,), "tool_use", ended=True))
    assert (used.fault, used.calls[0].arguments) == (None, {"amount": 1200})
    assert harvest(Turn("done", (), "end_turn", ended=True)).fault is None


@pytest.mark.parametrize(
    ("turn", "fault"),
    [
        (Turn("", (CALL,), "tool_use"), "cut"),
        (Turn("", (CALL,), "max_tokens", ended=True), "max_tokens"),
        (Turn("text", (), "max_tokens", ended=True), "max_tokens"),
        (Turn("", (CALL, Call("c2", "charge", '{"amount": 12')), "tool_use", ended=True), "unreadable arguments"),
        (Turn("", (CALL,), "end_turn", ended=True), "calls and stop reason disagree"),
        (Turn("", (), "tool_use", ended=True), "calls and stop reason disagree"),
    ],
)
def test_without_a_normal_end_nothing_is_used(turn: Turn, fault: str) -> None:
    """Cut, out of room, contradictory, or with one unreadable call among good ones: nothing is used, ask again."""
    used = harvest(turn)
    assert (used.calls, used.fault, used.rescuable) == ((), fault, True)


def test_a_refusal_is_final() -> None:
    """A model that stops for a reason of its own is not asked again."""
    used = harvest(Turn("", (), "refusal", ended=True))
    assert (used.fault, used.rescuable) == ("stopped: refusal", False)


@pytest.mark.parametrize(("raw", "expected"), [("", {}), ("{}", {}), ("[1]", None), ("1", None), ('{"a"', None)])
def test_arguments_are_an_object_or_nothing(raw: str, expected: dict[str, object] | None) -> None:
    """No text means no arguments; a list, a number or half an object is unreadable."""
    call = readable(Call("c", "t", raw))
    assert (call.arguments if call else None) == expected


def test_events_across_chunks() -> None:
    """Events come out whole, however the bytes were cut, with either line ending; comments are passed over."""
    buffer = bytearray()
    assert sse_events(buffer, b": ping\n\nevent: a\nda") == []
    assert sse_events(buffer, b"ta: 1\n") == []
    assert sse_events(buffer, b"\ndata: x\r\ndata: y\r\n\r\ndata: {") == [("a", "1"), (None, "x\ny")]
    assert bytes(buffer) == b"data: {"
