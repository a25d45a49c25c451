"""What the agent says of itself: its event file and its last line on standard output (contract section 6).

Claims, nothing more. A record that only the service, the wire or the harness can know is not taken from an agent:
it would let it write its own proof.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from traces.history import Record

OTHERS_TYPES = frozenset(
    {
        "effect",
        "fault_injected",
        "harness_lag",
        "process_started",
        "process_exited",
        "run_started",
        "model_tool_call",
        "world_finished",
    }
)
STATUSES = frozenset({"succeeded", "partial_success", "rolled_back", "failed", "handed_off"})
TAIL_BYTES = 64 * 1024
EVENTS_BYTES = 64 * 1024 * 1024
"""More than this of an agent's own events is not read."""

_decoder = msgspec.json.Decoder(dict[str, Any])


@dataclass(slots=True, kw_only=True)
class AgentWords:
    """The agent's records in the order it wrote them, and what in its file could not be used."""

    records: list[Record] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    status: str | None = None
    last_error: str = ""
    """The last line on its standard error."""


def read_agent_words(folder: Path, run_id: str, last_exit: Record | None) -> AgentWords:
    """Read `events.jsonl` and `stdout.txt` of a run; `last_exit` is the last `process_exited` on record.

    If the agent wrote no `run_finished`, its last line on standard output is read as one; without either, exit code
    0 counts as the claim `succeeded`.
    """
    words = AgentWords()
    for number, line in enumerate(_lines(folder / "events.jsonl"), 1):
        if not line.strip():
            continue
        try:
            words.records.append(_claim(line, run_id))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            words.unreadable.append(f"line {number}: {error}")
    ended = [record for record in words.records if record.type == "run_finished"]
    if not ended and last_exit is not None and not last_exit.injected:
        outcome = _outcome(folder / "stdout.txt")
        if outcome is None and last_exit.exit_code == 0:
            outcome = {"status": "succeeded"}
        if outcome is not None:
            fields = {"type": "run_finished", "t": last_exit.t, "run_id": run_id, "source": "agent", **outcome}
            ended = [msgspec.convert(fields, Record)]
            words.records += ended
    words.status = ended[-1].status if ended else None
    words.last_error = _tail(folder / "stderr.txt").rpartition(b"\n")[2].decode("utf-8", "replace")[:200]
    return words


def _claim(line: bytes, run_id: str) -> Record:
    fields = _decoder.decode(line)
    kind = fields.get("type")
    if kind in OTHERS_TYPES:
        raise ValueError(f"`{kind}` is not for an agent to write")
    # Its own words stay its own: under this run, and with the agent as their source.
    return msgspec.convert({**fields, "run_id": run_id, "source": "agent"}, Record)


def _lines(path: Path) -> list[bytes]:
    return read_of_agent(path, most=EVENTS_BYTES).split(b"\n")


def _tail(path: Path) -> bytes:
    return read_of_agent(path, most=TAIL_BYTES, from_end=True).strip()


def read_of_agent(path: Path, *, most: int, from_end: bool = False) -> bytes:
    """At most so many bytes of a file that an agent could write, or put something else in the place of.

    A link, a folder, a pipe or a device is read as nothing: it could lead elsewhere, or never end.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    told = os.fstat(descriptor)
    if not stat.S_ISREG(told.st_mode):
        os.close(descriptor)
        return b""
    with os.fdopen(descriptor, "rb") as file:
        if from_end:
            file.seek(max(0, told.st_size - most))
        return file.read(most)


def _outcome(path: Path) -> dict[str, Any] | None:
    """The last line of standard output, if it is an outcome object."""
    try:
        value = _decoder.decode(_tail(path).rpartition(b"\n")[2])
        if value.get("status") not in STATUSES:
            return None
        fields = {key: value.get(key) for key in ("status", "error", "completed", "recoverable", "degraded")}
        if isinstance(fields["error"], str):
            fields["error"] = {"kind": "error", "message": fields["error"]}
        msgspec.convert({"type": "run_finished", "t": 0.0, "run_id": "", **fields}, Record)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return {key: value for key, value in fields.items() if value is not None}
