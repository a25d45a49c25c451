"""The process driver: whatever an agent's children do to get away, none outlives the run."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from injectors.drivers.process import Command, StartError, fork_supervisor, signal_name, spawn
from injectors.drivers.process_tree import (
    Process,
    StubbornProcessError,
    command_of,
    descendants,
    end_all,
    living_below,
    marked,
    process_table,
)
from tests.harness.processes.launcher_client import alive, pids_in, wait_until

MARK = "STORMPROOF_RUN_ID=mark-of-this-run"
NAME, VALUE = MARK.split("=")

AGENT = """
import ctypes, os, sys, time
def tell():
    descriptor = os.open("pids", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{os.getpid()}\\n".encode())
    os.close(descriptor)
def stay():
    tell()
    time.sleep(60)
def bare():
    os.execve(sys.executable, [sys.executable, "-IS", "-c", SLEEP], {})
SLEEP = "import os, time; print(os.getpid(), file=open('pids', 'a')); time.sleep(60)"
def twice(then):
    os.setsid()
    if os.fork() == 0:
        then()
    os._exit(0)
def session(then):
    os.setsid()
    then()
def disguise():
    ctypes.CDLL(None).prctl(15, b") Z 1 (", 0, 0, 0)
    session(stay)
def deaf():
    import signal
    for number in range(1, 32):
        if number not in (9, 17, 19):
            signal.signal(number, signal.SIG_IGN)
    session(stay)
KINDS = {
    "same-group": stay,
    "own-session": lambda: session(stay),
    "double-fork": lambda: twice(stay),
    "own-session-bare": lambda: session(bare),
    "double-fork-bare": lambda: twice(bare),
    "disguised-name": disguise,
    "deaf-to-signals": deaf,
}
if os.fork() == 0:
    KINDS[sys.argv[1]]()
time.sleep(60)
"""
"""Python: starts one child of the kind named by its argument, which tells its pid, and waits."""

KINDS = [
    "same-group",
    "own-session",
    "double-fork",
    "own-session-bare",
    "double-fork-bare",
    "disguised-name",
    "deaf-to-signals",
]
CARRIES_THE_MARK = ["same-group", "own-session", "double-fork", "disguised-name", "deaf-to-signals"]


class Line:
    """The launcher's end of a supervisor's socket."""

    def __init__(self, folder: Path, *argv: str, subreaper: bool = True) -> None:
        start = {"op": "start", "run_id": "r", "generation": 1, "id": 1, "argv": list(argv), "cwd": str(folder)}
        start |= {"env": {"PATH": os.environ["PATH"], NAME: VALUE}}
        start |= {"stdout": str(folder / "out"), "stderr": str(folder / "err")}
        self.pid, self.socket = fork_supervisor(start, mark=MARK, subreaper=subreaper)
        self.socket.settimeout(10)
        self._file = self.socket.makefile("rb")

    def hear(self) -> dict[str, Any]:
        """The next message of the supervisor."""
        message: dict[str, Any] = json.loads(self._file.readline())
        return message

    def ask(self, op: str, **fields: Any) -> None:
        """Send a request."""
        self.socket.sendall(json.dumps({"op": op, "id": 2, "run_id": "r", **fields}).encode() + b"\n")

    def close(self) -> int:
        """Hang up, as a launcher that ends does, and return the supervisor's exit status."""
        self._file.close()
        self.socket.close()
        return os.waitpid(self.pid, 0)[1]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with the agent in it; whatever told its pid there is ended afterwards."""
    (tmp_path / "agent.py").write_text(AGENT)
    yield tmp_path
    if (tmp_path / "pids").exists():
        for pid in alive([int(word) for word in (tmp_path / "pids").read_text().split()]):
            os.kill(pid, signal.SIGKILL)


# ------------------------------------------------------------------------------------- the supervisor


@pytest.mark.parametrize("kind", KINDS)
def test_kill_reaches_every_kind_of_child(folder: Path, kind: str) -> None:
    """Own session, double fork, an empty environment, a name made to mislead: all die with the agent."""
    line = Line(folder, sys.executable, "-IS", "agent.py", kind)
    agent = line.hear()["pid"]
    [child] = pids_in(folder / "pids", 1)
    assert alive([agent, child]) == [agent, child]
    line.ask("kill", signal="SIGKILL")
    assert line.hear()["signal"] == "SIGKILL"
    assert line.hear()["ok"]
    assert alive([agent, child]) == []
    assert line.close() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_hanging_up_ends_the_tree(folder: Path, kind: str) -> None:
    """A supervisor whose launcher is gone kills what it started, then ends."""
    line = Line(folder, sys.executable, "-IS", "agent.py", kind)
    agent = line.hear()["pid"]
    [child] = pids_in(folder / "pids", 1)
    assert line.close() == 0
    assert alive([agent, child]) == []


@pytest.mark.parametrize("kind", CARRIES_THE_MARK)
def test_mark_finds_children_without_a_subreaper(folder: Path, kind: str) -> None:
    """Where nobody can adopt orphans, the run's mark in their environment still finds these kinds."""
    line = Line(folder, sys.executable, "-IS", "agent.py", kind, subreaper=False)
    agent = line.hear()["pid"]
    [child] = pids_in(folder / "pids", 1)
    line.ask("kill", signal="SIGKILL")
    assert line.hear()["event"] == "exited"
    assert line.hear()["ok"]
    wait_until(lambda: alive([agent, child]) == [], limit_s=1)
    assert line.close() == 0


def test_killed_supervisor_takes_the_agent_along(folder: Path) -> None:
    """SIGKILL for a supervisor: the kernel kills its agent, so that at least the agent never runs on unwatched."""
    line = Line(folder, "sleep", "60")
    agent = line.hear()["pid"]
    os.kill(line.pid, signal.SIGKILL)
    wait_until(lambda: alive([agent]) == [], limit_s=1)
    line.close()


def test_forkers_do_not_outrun_the_kill(folder: Path) -> None:
    """A tree that forks without pause, in sessions of their own, is ended all the same."""
    hydra = "for i in 1 2 3 4 5 6; do (while :; do setsid sleep 5 & sleep 0.001; done) & done; wait"
    line = Line(folder, "sh", "-c", hydra)
    line.hear()
    time.sleep(0.15)
    line.ask("kill", signal="SIGKILL")
    assert line.hear()["event"] == "exited"
    assert line.hear()["ok"]
    assert marked(MARK) == set()
    assert line.close() == 0


# ------------------------------------------------------------------------------------------ spawning


def test_spawn_returns_once_the_command_runs(folder: Path) -> None:
    """After `spawn` the process is the command already, no longer a copy of its parent."""
    pid = spawn(_command(folder, "sleep", "60"))
    assert command_of(pid) == "sleep 60"
    os.kill(pid, signal.SIGKILL)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL


def test_spawn_that_fails_leaks_nothing(folder: Path) -> None:
    """Failed starts leave neither an open descriptor nor a zombie."""
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(20):
        with pytest.raises(StartError, match="was not found on PATH"):
            spawn(_command(folder, "no-such-agent"))
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    own = [row for row in process_table().values() if row.parent == os.getpid()]
    assert all(row.alive for row in own)


def _command(folder: Path, *argv: str) -> Command:
    out = str(folder / "out")
    return Command(argv=argv, env={"PATH": os.environ["PATH"]}, cwd=str(folder), stdout=out, stderr=out)


def test_signal_names() -> None:
    """A signal is called by its name, a real-time one by its number."""
    assert signal_name(9) == "SIGKILL"
    assert signal_name(37) == "signal 37"


# ------------------------------------------------------------------------------------------ the tree


def test_descendants_of_a_table() -> None:
    """Children of children are found, the root is left out, a spared branch stays out with all below it."""
    rows = [(1, 0), (10, 1), (11, 10), (12, 11), (20, 1), (21, 20), (30, 12)]
    table = {pid: Process(pid, parent, True) for pid, parent in rows}
    assert descendants(table, [10]) == {11, 12, 30}
    assert descendants(table, [1], spare=[11]) == {10, 20, 21}
    assert descendants(table, [99]) == set()


def test_zombies_are_not_alive() -> None:
    """A process that has ended and was not waited for is in the table, but not among the living."""
    child = subprocess.Popen(["true"])
    wait_until(lambda: not process_table()[child.pid].alive)
    assert child.pid not in living_below(os.getpid())
    child.wait()


def test_thread_that_goes_on_is_alive() -> None:
    """A process whose first thread has ended looks like a zombie, yet is alive while another thread runs."""
    code = "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); "
    child = subprocess.Popen([sys.executable, "-IS", "-c", code + "ctypes.CDLL(None).pthread_exit(None)"])
    stat = Path(f"/proc/{child.pid}/stat")
    wait_until(lambda: ") Z " in stat.read_text())
    assert process_table()[child.pid].alive
    child.kill()
    child.wait()


def test_what_cannot_be_killed_is_named() -> None:
    """A process that stays alive past the limit is an error that names it, not an endless loop."""
    with pytest.raises(StubbornProcessError, match=r"still alive 0\.05 s after SIGKILL: 2147483000"):
        end_all(lambda: {2147483000}, limit_s=0.05)


def test_table_from_ps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no /proc the rows of `ps` say the same; lines that are no rows are passed over."""
    listing = "    1     0 Ss\n  712     1 Z+\n garbage\n  713   712 S+\n"
    monkeypatch.setattr("injectors.drivers.process_tree._has_proc", lambda: False)
    monkeypatch.setattr("injectors.drivers.process_tree._ps", lambda *_: listing)
    assert process_table() == {1: Process(1, 0, True), 712: Process(712, 1, False), 713: Process(713, 712, True)}


def test_marks_from_ps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no /proc the mark is found as a whole word among the environment that `ps` shows."""
    listing = f"  5 sh -c x A=b {MARK} C=d\n  6 sh {MARK}2\n  7 {NAME}=other\n"
    monkeypatch.setattr("injectors.drivers.process_tree._has_proc", lambda: False)
    monkeypatch.setattr("injectors.drivers.process_tree._ps", lambda *_: listing)
    assert marked(MARK) == {5}


def test_supervisor_drops_foreign_descriptors(folder: Path) -> None:
    """A supervisor holds none of its launcher's descriptors, so that the end of the launcher is seen at once."""
    ours, theirs = socket.socketpair()
    line = Line(folder, "sleep", "60")
    line.hear()
    theirs.close()
    ours.settimeout(2)
    assert ours.recv(1) == b""
    ours.close()
    line.close()
