"""Server-sent events with byte offsets: read in one go or as the bytes come, and written.

Follows the WHATWG event stream rules: lines end in LF, CR or CRLF, an event ends at a blank line, what stands after
the last blank line is no event yet. Offsets count bytes from the start of the body.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from traces.json_bodies import shallow

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Event:
    """One event: bytes `start` (inclusive) to `end` (exclusive, behind its blank line), its name and data text."""

    start: int
    end: int
    name: str | None
    data: str

    def json(self) -> Any:
        """The data as JSON, or `None` where it is none (`[DONE]`, garbage)."""
        try:
            return shallow(json.loads, self.data)
        except ValueError:
            return None


class EventReader:
    """Reads a stream as its chunks arrive."""

    __slots__ = ("_buffer", "_data", "_name", "_offset", "_start")

    def __init__(self) -> None:
        self._buffer = b""
        self._offset = 0
        """Bytes of the body that stand before the buffer."""
        self._start = 0
        self._name: str | None = None
        self._data: list[str] = []

    @property
    def rest(self) -> int:
        """Bytes that have come since the end of the last event: an unfinished one, if any."""
        return self._offset + len(self._buffer) - self._start

    def feed(self, chunk: bytes, *, last: bool = False) -> list[Event]:
        """The events that this chunk completes. `last`: nothing follows, so that a final CR ends its line."""
        self._buffer += chunk
        done: list[Event] = []
        at = 0
        while (found := _LINE_END.search(self._buffer, at)) is not None:
            if found.group() == b"\r" and found.end() == len(self._buffer) and not last:
                break  # the LF of a CRLF may still come
            line = self._buffer[at : found.start()]
            if self._offset == 0 and at == 0:
                line = line.removeprefix(_BOM)
            at = found.end()
            event = self._line(line, self._offset + at)
            if event is not None:
                done.append(event)
        self._offset += at
        self._buffer = self._buffer[at:]
        return done

    def _line(self, line: bytes, end: int) -> Event | None:
        if line:
            name, _, value = line.partition(b":")
            text = value.removeprefix(b" ").decode("utf-8", "replace")
            if name == b"data":
                self._data.append(text)
            elif name == b"event":
                self._name = text
            return None
        event = Event(self._start, end, self._name, "\n".join(self._data)) if self._data else None
        self._start, self._name, self._data = end, None, []
        return event


def events(body: bytes) -> list[Event]:
    """All whole events of a body."""
    return EventReader().feed(body, last=True)


def write_event(data: Any, name: str | None = None) -> bytes:
    """One event on the wire; `data` is JSON, or a text of one line such as `[DONE]` that goes as it is."""
    head = f"event: {name}\n".encode() if name is not None else b""
    return head + b"data: " + (data.encode() if isinstance(data, str) else json_bytes(data)) + b"\n\n"


def json_bytes(value: Any) -> bytes:
    """Compact JSON in UTF-8; a lone surrogate, which UTF-8 cannot carry, stays an escape."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()
