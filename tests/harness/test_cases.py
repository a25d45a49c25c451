"""Whole histories with the verdicts written beside them, from the file to the verdict or to the exit code.

The cases of `tests/data/histories` travel with the repository and break each invariant for each of its reasons once.
A larger set of recorded cases is judged as well where it is found.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.check import check_files
from harness.errors import InputError
from tests.harness.end_to_end.command import stormproof
from tests.invariants.test_against_oracle import VIOLATIONS
from tests.oracle.naive import judge_naively
from traces.history import Record

ROOT = Path(__file__).resolve().parents[2]
OWN = ROOT / "tests" / "data" / "histories"
RECORDED = ROOT.parent / "shared" / "cases" / "histories"


def cases(*, bad: bool, folders: tuple[Path, ...] = (OWN, RECORDED)) -> list[Any]:
    """All cases that are bad input, or all others; where a folder is not there, one that is skipped and says so."""
    found: list[Any] = []
    for folder in folders:
        if not (folder / "expected.json").is_file():
            found.append(pytest.param(None, None, marks=pytest.mark.skip(reason=f"there are no cases in {folder}")))
            continue
        for case in json.loads((folder / "expected.json").read_text(encoding="utf-8")):
            if ("bad_input_line" in case) == bad:
                name = f"{folder.parent.name}-{case['file'].removesuffix('.jsonl')}"
                found.append(pytest.param(folder / case["file"], case, id=name))
    return found


def broken(case: dict[str, Any]) -> Counter[tuple[Any, ...]]:
    """The violations that are written beside a history."""
    return Counter((v["run_id"], v["invariant"], v["reason"], v["broken_at"]) for v in case["violations"])


@pytest.mark.parametrize(("path", "case"), cases(bad=False))
def test_a_history_is_judged_as_is_written_beside_it(path: Path, case: dict[str, Any]) -> None:
    """Exactly the violations that are listed, each broken at its line, and every verdict that is listed."""
    result = check_files([str(path)])
    told = Counter((v.run_id, v.invariant, v.reason, v.evidence[-1]) for v in result.violations)
    assert told == broken(case), case["why"]
    words = {(v.run_id, v.invariant, v.verdict) for v in result.verdicts}
    assert {(v["run_id"], v["invariant"], v["verdict"]) for v in case["verdicts"]} <= words
    assert result.exit_code == (1 if case["violations"] else 0)
    assert not result.errors
    assert not result.warnings


@pytest.mark.parametrize(("path", "case"), cases(bad=True))
def test_bad_input_is_refused_with_its_line(path: Path, case: dict[str, Any]) -> None:
    """A malformed history is not judged: its file and line are named, once."""
    with pytest.raises(InputError) as refused:
        check_files([str(path)])
    (told,) = refused.value.faults
    assert told.startswith(f"{path}:{case['bad_input_line']}: "), case["why"]


@pytest.mark.parametrize(("path", "case"), cases(bad=True))
def test_bad_input_ends_with_exit_code_2(path: Path, case: dict[str, Any], tmp_path: Path) -> None:
    """The command says where the fault is on standard error, and ends with 2."""
    done = stormproof("check", path, cwd=tmp_path)
    assert done.code == 2
    assert f"{path}:{case['bad_input_line']}: " in done.err


@pytest.mark.parametrize(("path", "case"), cases(bad=False, folders=(OWN,)))
def test_the_oracle_agrees(path: Path, case: dict[str, Any]) -> None:
    """The naive reading of the contract gives our own cases the violations that are written beside them."""
    text = path.read_text(encoding="utf-8").splitlines()
    records = [(n, msgspec.json.decode(line, type=Record)) for n, line in enumerate(text, 1) if line.strip()]
    verdicts = [v for v in judge_naively(records) if v.verdict == "violated"]
    assert Counter((v.run_id, v.invariant, v.reason, v.evidence[-1]) for v in verdicts) == broken(case)


def test_every_reason_has_a_case_of_our_own() -> None:
    """A fresh clone proves each reason of each invariant, each by a case that has no other fault."""
    own = json.loads((OWN / "expected.json").read_text(encoding="utf-8"))
    reasons = Counter((v["invariant"], v["reason"]) for case in own for v in case.get("violations", ()))
    assert set(reasons) == {(invariant, reason) for invariant, words in VIOLATIONS.items() for reason in words}
    assert all(len(case.get("violations", ())) <= 1 for case in own)
    assert {case["file"] for case in own} == {path.name for path in OWN.glob("*.jsonl")}
