"""The result directory as it grows: nothing that had ended is lost, nothing is taken for what it is not."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from harness.errors import HarnessError, InputError
from harness.results import ResultWriter
from harness.session import SESSION, Session
from reports.results import HISTORY, VERDICTS
from tests.reports.builders import result
from traces.history import Record

MINE = Session(agent="mine", start="s", tools="t", scenarios={"204": "a"}, traces={"order-small": "b"})


def records(*runs: str) -> list[Record]:
    """Two lines for each run."""
    kinds = ("run_started", "run_finished")
    return [Record(type=kind, t=float(n), run_id=run) for n, run in enumerate(runs) for kind in kinds]


def opened(folder: Path, *, resume: bool = True, session: Session = MINE, worlds: Sequence[str] = ()) -> ResultWriter:
    """A writer; each world is the ids of its runs, separated by blanks."""
    return ResultWriter(folder, resume=resume, session=session, worlds=[set(world.split()) for world in worlds])


def write(writer: ResultWriter, *worlds: str) -> None:
    """Write worlds with all their results."""
    for world in worlds:
        block = writer.write_world(world, records(*world.split()))
        writer.write_results([result(run, lines=(block.first, block.last)) for run in world.split()])


def ids(results: Iterable[object]) -> list[str]:
    """Run ids of results."""
    return [getattr(item, "run_id", "") for item in results]


def runs_in(path: Path) -> list[str]:
    """The runs of a file in the order of their first lines, ends of worlds left out."""
    lines = [json.loads(line)["run_id"] for line in path.read_bytes().splitlines()]
    return [run for run in dict.fromkeys(lines) if run]


@pytest.mark.parametrize(
    ("tail", "kept"),
    [(b"", ["r1", "r2"]), (b"\n", ["r1", "r2"]), (b'\n{"run_id": "r3", "num', ["r1", "r2"]), (None, ["r1"])],
    ids=["no-end", "whole", "torn", "cut"],
)
def test_what_counts_as_done_stays_in_the_file(tmp_path: Path, tail: bytes | None, kept: list[str]) -> None:
    """However a killed writer left the last line: a run that is not played again is still there at the end."""
    writer = opened(tmp_path)
    write(writer, "r1", "r2")
    writer.close()
    data = (tmp_path / VERDICTS).read_bytes()
    (tmp_path / VERDICTS).write_bytes(data[:-9] if tail is None else data.removesuffix(b"\n") + tail)
    again = opened(tmp_path, worlds=["r1", "r2", "r3"])
    assert ids(again.done) == kept
    missing = [run for run in ("r1", "r2", "r3") if run not in kept]
    write(again, *missing)
    again.close()
    assert runs_in(tmp_path / VERDICTS) == runs_in(tmp_path / HISTORY) == ["r1", "r2", "r3"]
    assert [line["lines"] for line in map(json.loads, (tmp_path / VERDICTS).read_bytes().splitlines())] == [
        [1, 2],
        [4, 5],
        [7, 8],
    ]


def test_a_world_of_which_results_are_missing_is_played_again_alone(tmp_path: Path) -> None:
    """Its block is cut from the history, so that no run is there twice; whole worlds before it stay."""
    writer = opened(tmp_path)
    write(writer, "r1", "a b c")
    writer.close()
    lines = (tmp_path / VERDICTS).read_bytes().splitlines(keepends=True)
    (tmp_path / VERDICTS).write_bytes(b"".join(lines[:3]))
    again = opened(tmp_path, worlds=["r1", "a b c"])
    assert ids(again.done) == ["r1"]
    assert runs_in(tmp_path / HISTORY) == ["r1"]
    write(again, "a b c")
    again.close()
    assert (tmp_path / HISTORY).read_bytes().count(b'"run_started"') == 4
    assert runs_in(tmp_path / VERDICTS) == ["r1", "a", "b", "c"]


def test_the_results_of_a_world_are_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can be killed between two of them."""
    writer = opened(tmp_path)
    appended: list[bytes] = []
    keep = ResultWriter._append

    def noted(self: ResultWriter, file: object, data: bytes) -> int:
        appended.append(data)
        return keep(self, file, data)  # type: ignore[arg-type]

    monkeypatch.setattr(ResultWriter, "_append", noted)
    write(writer, "a b c")
    writer.close()
    assert [data.count(b"\n") for data in appended] == [7, 3]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"agent": "yours"}, "are of the agent `mine`, not of `yours`"),
        ({"start": "x"}, "the agent `mine` has changed since"),
        ({"tools": "x"}, "the tools registry has changed since"),
        ({"scenarios": {"204": "x"}}, "scenario 204 has changed since"),
        ({"traces": {"order-small": "x"}}, "trace order-small has changed since"),
    ],
)
def test_going_on_with_another_session_is_refused(tmp_path: Path, other: dict[str, object], words: str) -> None:
    """What differs is named, and the results that are there stay as they are."""
    writer = opened(tmp_path)
    write(writer, "r1")
    writer.close()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    changed = Session(**{**{name: getattr(MINE, name) for name in MINE.__struct_fields__}, **other})
    with pytest.raises(InputError, match=words):
        opened(tmp_path, session=changed)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    opened(tmp_path, session=changed, resume=False).close()
    assert (tmp_path / VERDICTS).read_bytes() == b""


def test_more_scenarios_and_traces_are_no_other_session(tmp_path: Path) -> None:
    """A wider choice goes on with what is there, and what an earlier part rested on is still known after it."""
    writer = opened(tmp_path)
    write(writer, "r1")
    writer.close()
    opened(tmp_path, session=Session(agent="mine", start="s", tools="t", scenarios={"301": "c"}, traces={})).close()
    with pytest.raises(InputError, match="scenario 204 has changed"):
        opened(
            tmp_path, session=Session(agent="mine", start="s", tools="t", scenarios={"204": "x"}, traces={})
        ).close()


@pytest.mark.parametrize("name", [SESSION, HISTORY, VERDICTS])
def test_a_damaged_folder_is_bad_input(tmp_path: Path, name: str) -> None:
    """Going on from it is refused in words, with the file."""
    writer = opened(tmp_path)
    write(writer, "r1")
    writer.close()
    (tmp_path / name).write_bytes(b"{}\n")
    with pytest.raises(InputError, match=rf"{name}:\d+: .*start again without --resume"):
        opened(tmp_path)


def test_after_a_failed_write_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a block is taken back, and what comes later does not end up behind a gap."""
    writer = opened(tmp_path)
    write(writer, "r1")
    before = (tmp_path / HISTORY).read_bytes()

    class Full:
        """A file on a disk that fills up in the middle of a write."""

        def __init__(self, file: object) -> None:
            self.file = file

        def __getattr__(self, name: str) -> object:
            return getattr(self.file, name)

        def write(self, data: bytes) -> int:
            """Half of it, then nothing."""
            if len(data) < 20:
                raise OSError(28, os.strerror(28))
            return os.write(self.file.fileno(), data[: len(data) // 2])  # type: ignore[attr-defined]

    monkeypatch.setattr(writer, "_history", Full(writer._history))
    with pytest.raises(HarnessError, match="cannot be written: No space left"):
        writer.write_world("r2", records("r2"))
    with pytest.raises(HarnessError, match="cannot be written: No space left"):
        writer.write_results([result("r2")])
    writer.close()
    assert (tmp_path / HISTORY).read_bytes() == before
    assert runs_in(tmp_path / VERDICTS) == ["r1"]


def test_what_the_harness_failed_in_is_played_again(tmp_path: Path) -> None:
    """Going on repairs runs that ended in an error of ours, and plays what was written behind them again."""
    writer = opened(tmp_path)
    write(writer, "r1")
    block = writer.write_world("r2", records("r2"))
    writer.write_results([result("r2", world="r2", lines=(block.first, block.last), harness_error="lost the proxy")])
    write(writer, "r3")
    writer.close()
    again = opened(tmp_path, worlds=["r1", "r2", "r3"])
    assert ids(again.done) == ["r1"]
    write(again, "r2", "r3")
    again.close()
    assert runs_in(tmp_path / VERDICTS) == runs_in(tmp_path / HISTORY) == ["r1", "r2", "r3"]
