"""The result directory as it grows: each world whole or not at all, history before verdicts (contract section 1)."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import msgspec

from harness.errors import HarnessError, InputError
from invariants.judge import Judge
from invariants.verdict import Verdict
from reports.render import WRITTEN
from reports.results import RunResult, read_results
from traces.history import Record

HISTORY, VERDICTS = "history.jsonl", "verdicts.jsonl"


@dataclass(slots=True, kw_only=True)
class Block:
    """The lines of one world in `history.jsonl`, read back from disk, and the verdicts on its runs."""

    first: int
    last: int
    records: list[tuple[int, Record]]
    verdicts: dict[str, list[Verdict]] = field(default_factory=dict)
    error: str | None = None
    """Why the verdicts are worth nothing: a judge that raised, or a history that we ourselves wrote wrongly."""


class ResultWriter:
    """Appends worlds and results. A killed harness loses at most the worlds that had not ended."""

    def __init__(self, folder: Path, *, resume: bool) -> None:
        self.folder = folder
        self.done: list[RunResult] = []
        folder.mkdir(parents=True, exist_ok=True)
        history, verdicts = folder / HISTORY, folder / VERDICTS
        if resume and verdicts.exists():
            self.done = list(read_results(folder).runs)
            _keep_complete_lines(verdicts)
        else:
            # What an earlier session left must not be taken for this one's, should this one be killed.
            for name in (HISTORY, VERDICTS, *WRITTEN):
                (folder / name).unlink(missing_ok=True)
        self._lines = max((result.lines[1] for result in self.done if result.lines), default=0) + (
            1 if self.done else 0
        )
        if self.done:
            # Each world ends with one more line than its runs name: `world_finished`.
            self._lines = _truncate(history, self._lines)
        self._history: IO[bytes] = history.open("ab")
        self._verdicts: IO[bytes] = verdicts.open("ab")

    def write_world(self, world: str, records: Sequence[Record]) -> Block:
        """Append the records of one world, closed by `world_finished`, and judge them from what is on disk."""
        end = max((record.t for record in records), default=time.time())
        closing = Record(type="world_finished", t=end, run_id="", source="harness", world=world)
        encoder = msgspec.json.Encoder()
        offset = self._history.tell()
        self._append(self._history, b"".join(encoder.encode(record) + b"\n" for record in (*records, closing)))
        block = self._read_back(offset)
        self._lines = block.last + 1
        judge = Judge()
        by_run: dict[str, list[Verdict]] = defaultdict(list)
        for verdict in (*judge.feed_all(block.records), *judge.close()):
            by_run[verdict.run_id].append(verdict)
        block.verdicts = dict(by_run)
        complaints = [*judge.errors, *(f"line {line}: {text}" for line, text in judge.faults)]
        block.error = f"the history could not be judged: {complaints[0]}" if complaints else None
        return block

    def write_result(self, result: RunResult) -> None:
        """Append one judged run."""
        self._append(self._verdicts, msgspec.json.encode(result) + b"\n")

    def _append(self, file: IO[bytes], data: bytes) -> None:
        try:
            file.write(data)
            file.flush()
        except OSError as error:
            raise HarnessError(
                f"{self.folder} cannot be written: {error.strerror}; every run that had ended is kept, and "
                "--resume goes on from there"
            ) from None

    def close(self) -> None:
        """Close the files."""
        for file in (self._history, self._verdicts):
            # What could not be written when it was due will not be written now.
            with suppress(OSError):
                file.close()

    def _read_back(self, offset: int) -> Block:
        decoder = msgspec.json.Decoder(Record)
        with (self.folder / HISTORY).open("rb") as file:
            file.seek(offset)
            lines = file.read().splitlines()
        first = self._lines + 1
        records = [(first + index, decoder.decode(line)) for index, line in enumerate(lines)]
        return Block(first=first, last=first + len(lines) - 2, records=records)


def _truncate(path: Path, lines: int) -> int:
    """Cut the history back to its first `lines` lines: what follows belongs to worlds without a verdict."""
    if not path.exists():
        raise InputError(f"{path}:1: is missing, but there are verdicts beside it; start again without --resume")
    with path.open("r+b") as file:
        for count in range(lines):
            if not file.readline().endswith(b"\n"):
                raise InputError(f"{path}:{count + 1}: ends early; start again without --resume")
        file.truncate()
        os.fsync(file.fileno())
    return lines


def _keep_complete_lines(path: Path) -> None:
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if whole != data:
        path.write_bytes(whole)
