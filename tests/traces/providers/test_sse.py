"""The event stream format."""

from __future__ import annotations

from traces.providers.sse import EventReader, events, write_event


def test_names_data_and_offsets() -> None:
    """Each event has its name, its data and the bytes it takes up, blank line included."""
    body = b'event: ping\ndata: {"type": "ping"}\n\ndata: [DONE]\n\n'
    first, second = events(body)
    assert (first.name, first.json(), first.start, first.end) == ("ping", {"type": "ping"}, 0, 36)
    assert (second.name, second.data, second.end) == (None, "[DONE]", len(body))
    assert second.json() is None


def test_all_line_ends_comments_and_joined_data() -> None:
    """CR, LF and CRLF end lines; comments are skipped; several data lines are one text."""
    body = b"\xef\xbb\xbf: hello\r\ndata: a\rdata:b\r\n\r\n"
    assert [event.data for event in events(body)] == ["a\nb"]


def test_unfinished_event_is_none_yet() -> None:
    """What no blank line ends is no event, and is counted as the rest."""
    reader = EventReader()
    assert reader.feed(b"data: one\n\ndata: tw") != []
    assert reader.rest == len(b"data: tw")
    assert events(b"data: tw") == []


def test_cr_waits_for_its_lf() -> None:
    """A CR at the end of a chunk may be half of a CRLF: no empty line comes of it."""
    reader = EventReader()
    assert reader.feed(b"data: x\r") == []
    assert reader.feed(b"\n\r") == []
    assert [event.data for event in reader.feed(b"\n", last=True)] == ["x"]


def test_lone_surrogate_stays_an_escape() -> None:
    """Text that UTF-8 cannot carry goes as a JSON escape and comes back."""
    [event] = events(write_event({"text": "\ud83d"}))
    assert event.json() == {"text": "\ud83d"}
