"""`stormproof run`, from the request to the exit code, with the runs themselves left out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from harness.commands import run as command
from harness.commands.run import RunRequest, execute, prepare
from harness.errors import HarnessError, InputError
from harness.options import RunOptions
from harness.planning import Plan, Selection
from harness.results import ResultWriter
from harness.runner import Announce, Tally
from reports.results import VERDICTS, RunResult
from tests.reports.builders import held, result, violated

Failure = Callable[[], Exception]


def one_run_then(failure: Exception | None, judged: RunResult) -> Any:
    """In place of the real thing: the first run ends with that result, then the harness fails."""

    async def run_all(plan: Plan, _: RunOptions, announce: Announce, *, writer: ResultWriter) -> Tally:
        await asyncio.sleep(0)
        writer.write_world("w", [])
        writer.write_results([judged])
        announce(judged)
        if failure is not None:
            raise failure
        return Tally(results=[judged])

    return run_all


def request(out: Path) -> RunRequest:
    """Two runs of the bundled scenarios."""
    return RunRequest(
        selection=Selection(numbers=("104",), traces=("order-small", "order-gift-twins")), out=out, quiet=True
    )


BROKEN = result("104-order-small", number=104, verdicts=[violated(), *held("single-effect")])
FINE = result("104-order-small", number=104)


@pytest.mark.parametrize(
    "failure",
    [HarnessError("r cannot be written"), OSError(28, "No space left on device"), TypeError("unforeseen")],
    ids=["write", "disk", "mistake"],
)
@pytest.mark.parametrize(("judged", "code"), [(BROKEN, 1), (FINE, 3)], ids=["violated", "held"])
def test_a_late_failure_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, failure: Exception, judged: RunResult, code: int
) -> None:
    """Every report is written, tells the failure and the runs that are missing, and a violation stays exit 1."""
    monkeypatch.setattr(command, "run_all", one_run_then(failure, judged))
    summary = execute(request(tmp_path / "r"))
    assert summary.exit_code == code
    assert [error.run_id for error in summary.errors] == [None]
    assert [doubt.why for doubt in summary.undecided if doubt.what == "session"] == [
        "1 of 2 runs were not played: the harness failed"
    ]
    assert json.loads((tmp_path / "r" / "summary.json").read_text())["exit_code"] == code
    cases = ElementTree.fromstring((tmp_path / "r" / "junit.xml").read_bytes())
    assert (len(list(cases.iter("failure"))), len(list(cases.iter("error")))) == (1 if code == 1 else 0, 2)


@pytest.mark.parametrize(("judged", "code"), [(BROKEN, 1), (FINE, 3)], ids=["violated", "held"])
def test_reports_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judged: RunResult, code: int
) -> None:
    """The exit code is that of the runs and the failure, and no older report stays to contradict it."""

    def full(*_: object, **__: object) -> None:
        (tmp_path / "r" / "junit.xml").write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(command, "run_all", one_run_then(None, judged))
    monkeypatch.setattr(command, "render_all", full)
    summary = execute(request(tmp_path / "r"))
    assert summary.exit_code == code
    assert "the reports could not be written: the disk is full" in summary.errors[0].message
    assert len(summary.violations) == (code == 1)
    assert {path.name for path in (tmp_path / "r").iterdir()} == {"history.jsonl", VERDICTS, "session.json"}


IDLE = """\
number: 150
version: 1
title: The ninth refund hangs
sets: [mine]
faults:
  - kind: hang
    at: {tool: refund, call: 9}
"""


def test_a_set_of_scenarios_that_find_no_place(tmp_path: Path) -> None:
    """It is not said to be unknown: what is said is why its scenarios can strike nothing."""
    (tmp_path / "150-t.yaml").write_text(IDLE)
    with pytest.raises(InputError) as refused:
        prepare(RunRequest(selection=Selection(sets=("mine",)), scenarios=(tmp_path,), out=tmp_path / "r"))
    (told,) = refused.value.faults
    assert told.startswith("--set mine: not one of its scenarios can strike in these traces; the first of 1: ")
    assert "scenario 150 can strike in no trace: " in told


def test_a_set_that_is_unknown(tmp_path: Path) -> None:
    """A misspelt name is told as one, also where the set that is meant could strike nothing."""
    (tmp_path / "150-t.yaml").write_text(IDLE)
    with pytest.raises(InputError, match="--set mien: no scenario is in a set of that name; did you mean `mine`"):
        prepare(RunRequest(selection=Selection(sets=("mien",)), scenarios=(tmp_path,), out=tmp_path / "r"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        (b"\xff", "no UTF-8"),
        (b"104-order-small nobody", "is called `nobody`"),
    ],
)
def test_lists_of_runs_that_cannot_be_followed(tmp_path: Path, content: bytes | None, words: str) -> None:
    """`--only` with a file that is not there or no text, or with ids of no run, is refused."""
    path = tmp_path / "ids"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match="--only") as refused:
        prepare(replace(request(tmp_path / "r"), only=path))
    assert words in str(refused.value)


@pytest.mark.parametrize("text", ["²/³", "0/1", "2/1", "1", "١/٢", "1/" + "9" * 5000])
def test_shards_that_are_none(text: str) -> None:
    """A shard is two plain numbers, the first not above the second."""
    with pytest.raises(InputError, match="--shard"):
        command.shard_from(text)


def test_an_empty_agent(tmp_path: Path) -> None:
    """`--agent ''` is a mistake and not the default agent."""
    with pytest.raises(InputError, match="--agent ''"):
        prepare(replace(request(tmp_path / "r"), agent=""))
