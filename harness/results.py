"""The result directory as it grows: each world whole or not at all, history before verdicts (contract section 1)."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import FileIO
from itertools import takewhile
from pathlib import Path

import msgspec

from harness.errors import HarnessError, InputError
from harness.session import Session, read_session, require_same, write_session
from invariants.judge import Judge
from invariants.verdict import Verdict
from reports.render import WRITTEN, write_whole
from reports.results import HISTORY, VERDICTS, ResultsError, RunResult, read_results
from traces.history import Record


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

    def __init__(
        self, folder: Path, *, resume: bool, session: Session, worlds: Iterable[Collection[str]] = ()
    ) -> None:
        """Open the folder. `worlds`: the ids of the runs of each world that is planned.

        Raises `InputError` where there is nothing to go on from: results of another session, or damaged ones.
        """
        self.folder = folder
        self.done: list[RunResult] = []
        """Results of an earlier session that count for this one."""
        self.written: list[RunResult] = []
        self._failed: str | None = None
        folder.mkdir(parents=True, exist_ok=True)
        if resume and (folder / VERDICTS).exists():
            self.done = _finished_results(folder, worlds)
        if self.done:
            earlier = read_session(folder)
            require_same(folder, earlier, session)
            session = session.joined(earlier)
            # Each world ends with one more line than its runs name: `world_finished`.
            self._lines = max((result.lines[1] + 1 for result in self.done if result.lines), default=0)
            write_whole(folder / VERDICTS, _as_lines(self.done))
            _truncate(folder / HISTORY, self._lines)
        else:
            # What an earlier session left must not be taken for this one's, should this one be killed.
            self._lines = 0
            for name in (HISTORY, VERDICTS, *WRITTEN):
                (folder / name).unlink(missing_ok=True)
        write_session(folder, session)
        # Unbuffered: what fails to reach the disk is not tried again behind our back.
        self._history: FileIO = (folder / HISTORY).open("ab", buffering=0)
        self._verdicts: FileIO = (folder / VERDICTS).open("ab", buffering=0)

    def write_world(self, world: str, records: Sequence[Record]) -> Block:
        """Append the records of one world, closed by `world_finished`, and judge them from what is on disk."""
        end = max((record.t for record in records), default=time.time())
        closing = Record(type="world_finished", t=end, run_id="", source="harness", world=world)
        offset = self._append(self._history, _as_lines((*records, closing)))
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

    def write_results(self, results: Sequence[RunResult]) -> None:
        """Append the judged runs of one world, all of them or none."""
        self._append(self._verdicts, _as_lines(results))
        self.written += results

    def _append(self, file: FileIO, data: bytes) -> int:
        """Append, and return the offset of what was appended. After a failure nothing is written any more."""
        offset = os.fstat(file.fileno()).st_size
        try:
            view = memoryview(data)
            while view and self._failed is None:
                view = view[file.write(view) :]
        except OSError as error:
            self._failed = error.strerror or str(error)
            with suppress(OSError):
                file.truncate(offset)
        if self._failed is not None:
            raise HarnessError(
                f"{self.folder} cannot be written: {self._failed}; every run that had ended is kept, and "
                "--resume goes on from there"
            )
        return offset

    def close(self) -> None:
        """Close the files."""
        for file in (self._history, self._verdicts):
            file.close()

    def _read_back(self, offset: int) -> Block:
        decoder = msgspec.json.Decoder(Record)
        with (self.folder / HISTORY).open("rb") as file:
            file.seek(offset)
            lines = file.read().splitlines()
        first = self._lines + 1
        records = [(first + index, decoder.decode(line)) for index, line in enumerate(lines)]
        return Block(first=first, last=first + len(lines) - 2, records=records)


def _finished_results(folder: Path, worlds: Iterable[Collection[str]]) -> list[RunResult]:
    """The results up to the first world of which some are missing, or in which the harness failed.

    Its block is in the history as a whole, so that it is played again with everything behind it. A writer that was
    killed in the middle of a world leaves nothing behind it.
    """
    try:
        results = read_results(folder).runs
    except ResultsError as error:
        raise InputError(f"{error}; start again without --resume") from None
    ended = {result.run_id for result in results}
    failed = {result.world for result in results if result.harness_error is not None}
    partial = {run for world in worlds if not ended.issuperset(world) for run in world}
    partial |= {result.run_id for result in results if result.world in failed}
    return list(takewhile(lambda result: result.run_id not in partial, results))


def _truncate(path: Path, lines: int) -> None:
    """Cut the history back to its first `lines` lines: what follows belongs to worlds without a verdict."""
    if not path.exists():
        raise InputError(f"{path}:1: is missing, but there are verdicts beside it; start again without --resume")
    with path.open("r+b") as file:
        for count in range(lines):
            if not file.readline().endswith(b"\n"):
                raise InputError(f"{path}:{count + 1}: ends early; start again without --resume")
        file.truncate()
        os.fsync(file.fileno())


def _as_lines(items: Iterable[Record] | Iterable[RunResult]) -> bytes:
    encoder = msgspec.json.Encoder()
    return b"".join(encoder.encode(item) + b"\n" for item in items)
