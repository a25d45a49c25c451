"""What the agent says about itself: one JSON line per event, appended to the file it was given."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.reference.clock import Clock


class Events:
    """Appends events in the order of their times. Events are testimony: a full disk must not stop the business."""

    def __init__(self, path: Path | None, clock: Clock, common: Mapping[str, Any]) -> None:
        self._clock = clock
        self._common = dict(common)
        self._lock = threading.Lock()
        self._last = 0.0
        self._file = _fresh_line(path) if path is not None else None

    def emit(self, kind: str, **fields: Any) -> None:
        """Write one event of type `kind`. Fields that are `None` are left out."""
        with self._lock:
            self._last = max(self._last, self._clock.now())
            event = {"type": kind, "t": self._last, **self._common, "source": "agent", **fields}
            line = json.dumps({name: value for name, value in event.items() if value is not None}, default=str)
            if self._file is not None:
                try:
                    os.write(self._file, line.encode() + b"\n")
                except OSError:
                    self._file = None

    def close(self) -> None:
        """Write no more."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
            self._file = None

    def acted(self, mechanism: str, **grounds: Any) -> None:
        """Say that a mechanism did its work, and why."""
        step, tool = grounds.pop("step", None), grounds.pop("tool", None)
        self.emit("mechanism_acted", name=mechanism, step=step, tool=tool, grounds=grounds)


def _fresh_line(path: Path) -> int | None:
    """Open for appending. A line torn by a kill of an earlier process is closed, so that ours is not glued to it."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            os.write(file, b"\n")
    except OSError:
        return None
    return file
