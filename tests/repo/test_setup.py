"""Setting the project up: plain sentences where something is missing, no work where nothing changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repo.sources import REPOSITORY

ENVIRONMENT = REPOSITORY / ".ci" / "environment"

FAKE_PYTHON = """#!/bin/sh
# Stands in for an interpreter. It answers what the script asks, and notes what it is told to do.
case "$*" in
  -c*version_info\\ \\<*) exit {too_old} ;;
  -c*print*) echo "Python 3.9" ;;
  "-m venv --without-pip "*) [ {bare_venv} = yes ] || exit 1; mkdir -p "$4/bin"; cp "$0" "$4/bin/python" ;;
  "-m venv "*) [ {venv} = yes ] || exit 1; mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
  "-m pip --version") case "$0" in */bin/python) [ {venv} = yes ] ;; *) [ {pip} = yes ] ;; esac ;;
  "-m pip "*) echo "$*" >> {notes} ;;
esac
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Where the stand-in for an interpreter notes the installations it is asked for."""
    return tmp_path / "notes"


def set_up(folder: Path, python: str, *extra: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a folder, with only the system's basic commands on the path."""
    command = [str(ENVIRONMENT), str(folder / "env"), python, *extra]
    return subprocess.run(command, cwd=folder, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True)


def fake_python(folder: Path, notes: Path, *, old: bool = False, venv: bool, bare_venv: bool, pip: bool) -> str:
    """Write a stand-in for an interpreter that lacks what is False."""
    word = {True: "yes", False: "no"}
    path = folder / "python3"
    path.write_text(
        FAKE_PYTHON.format(too_old=int(old), venv=word[venv], bare_venv=word[bare_venv], pip=word[pip], notes=notes)
    )
    path.chmod(0o755)
    return str(path)


def test_missing_python_is_said_in_a_sentence(tmp_path: Path) -> None:
    """No such interpreter: one sentence that names the version needed and the way to choose another."""
    done = set_up(tmp_path, "python3.99")
    assert done.returncode == 1
    assert done.stderr == (
        "stormproof needs Python 3.11 or newer, but there is no command python3.99 (make PYTHON=... names another).\n"
    )


def test_old_python_is_said_in_a_sentence(tmp_path: Path, notes: Path) -> None:
    """An interpreter that is too old is named with its version, and nothing is made."""
    done = set_up(tmp_path, fake_python(tmp_path, notes, old=True, venv=True, bare_venv=True, pip=True))
    assert done.returncode == 1
    assert "is Python 3.9 (make PYTHON=python3.12 names another)" in done.stderr
    assert not (tmp_path / "env").exists()


def test_missing_venv_is_said_in_a_sentence(tmp_path: Path, notes: Path) -> None:
    """Without the module venv there is one sentence with the package to install, and nothing half made stays."""
    done = set_up(tmp_path, fake_python(tmp_path, notes, venv=False, bare_venv=False, pip=True))
    assert done.returncode == 1
    assert "its module venv is missing (Debian, Ubuntu: apt install python3-venv)" in done.stderr
    assert not (tmp_path / "env").exists()


def test_missing_pip_is_said_in_a_sentence(tmp_path: Path, notes: Path) -> None:
    """An environment without pip on a machine without pip: one sentence that says so."""
    done = set_up(tmp_path, fake_python(tmp_path, notes, venv=False, bare_venv=True, pip=False))
    assert done.returncode == 1
    assert "There is no pip, neither in" in done.stderr


def test_pip_reaches_into_an_environment_without_pip(tmp_path: Path, notes: Path) -> None:
    """Where venv cannot put pip into the environment, the machine's own pip installs from outside."""
    done = set_up(tmp_path, fake_python(tmp_path, notes, venv=False, bare_venv=True, pip=True), "dev")
    assert done.returncode == 0, done.stderr
    assert f"--python {tmp_path}/env/bin/python" in notes.read_text()
    assert notes.read_text().rstrip().endswith("--editable .[dev]")


def test_stamps_tell_make_what_is_there(tmp_path: Path, notes: Path) -> None:
    """Setting up with the extra leaves both stamps, so that neither target sets up again."""
    python = fake_python(tmp_path, notes, venv=True, bare_venv=True, pip=True)
    assert set_up(tmp_path, python, "dev").returncode == 0
    assert {path.name for path in (tmp_path / "env").iterdir()} >= {".installed", ".installed-dev"}


def test_second_make_does_not_set_up_again(tmp_path: Path) -> None:
    """With a stamp newer than what it is made from, `make test` goes straight to pytest, `make run` to the run."""
    for name in (".installed", ".installed-dev"):
        (tmp_path / name).touch()
    for target, command in (("test", "bin/pytest"), ("run", "bin/stormproof run --set ci")):
        done = subprocess.run(
            ["make", "--dry-run", target, f"VENV={tmp_path}", "ARGS="],
            cwd=REPOSITORY,
            env=_plain(),
            capture_output=True,
            text=True,
        )
        assert done.stdout.strip() == f"{tmp_path}/{command}"


def test_make_alone_tells_the_targets() -> None:
    """`make` without a target prints each of them with a line of explanation, and does nothing."""
    done = subprocess.run(["make"], cwd=REPOSITORY, env=_plain(), capture_output=True, text=True)
    for target in ("run", "test", "test-matrix", "lint", "bench", "clean"):
        assert f"  make {target} " in done.stdout


def test_ci_calls_make_test_and_nothing_weaker() -> None:
    """`.ci/run` is executable, stops at the first error, and its one command is the whole of `make test`."""
    script = REPOSITORY / ".ci" / "run"
    assert os.access(script, os.X_OK)
    commands = [line for line in script.read_text().splitlines() if line and not line.startswith("#")]
    assert commands[0] == "set -euo pipefail"
    assert commands[-1] == "exec make --silent --no-print-directory test"
    assert len(commands) == 3


def _plain() -> dict[str, str]:
    """The environment without what an outer make (which may be running these tests) handed down."""
    kept = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return {**kept, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
