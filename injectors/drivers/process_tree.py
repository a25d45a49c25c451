"""Seeing and ending a tree of processes, whatever its members did to get away.

Leaving the group, a session of one's own, a double fork, an empty environment: none of it changes who adopts a
process whose parent is gone. On Linux that is the nearest living ancestor which declared itself a *subreaper*
(prctl(2), `PR_SET_CHILD_SUBREAPER`), so a launcher that did so finds all of them below itself. Elsewhere the run's
mark in the environment is the next best thing; it misses whoever cleared it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37
_PROC = Path("/proc")
_COMMAND_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Process:
    """One row of the process table."""

    pid: int
    parent: int
    alive: bool
    """False for a zombie: it has ended, only nobody has asked for its exit status yet."""


Table = Mapping[int, Process]


class StubbornProcessError(Exception):
    """Processes that outlived SIGKILL (or that we may not signal); the message names them."""


# ------------------------------------------------------------------------------------------- prctl


@functools.cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None


def _prctl(option: int, value: Any) -> bool:
    try:
        return int(_libc().prctl(option, value, 0, 0, 0)) == 0
    except (OSError, AttributeError):
        return False


def become_subreaper() -> bool:
    """Make this process the one that adopts its orphaned descendants; False where the platform cannot."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def can_be_subreaper() -> bool:
    """Whether `become_subreaper` would work here; changes nothing."""
    return _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(ctypes.c_int()))


def die_with_parent(number: signal.Signals) -> bool:
    """Have the kernel send `number` to this process when its parent ends; False where it cannot.

    The caller has to look at `os.getppid()` afterwards: the parent may have ended just before.
    """
    return _prctl(_PR_SET_PDEATHSIG, int(number))


# --------------------------------------------------------------------------------------- the table


def process_table() -> Table:
    """All processes of this machine, from `/proc` or, where there is none, from `ps`."""
    if _has_proc():
        return _table_of_proc()
    listing = _ps("-axo", "pid=,ppid=,stat=")
    return {row.pid: row for row in map(_row_of_ps, listing.splitlines()) if row}


def _has_proc() -> bool:
    return (_PROC / "self" / "stat").exists()


def _table_of_proc() -> Table:
    table = {}
    for name in os.listdir(_PROC):  # noqa: PTH208 - ten times the speed of Path.iterdir, and run often
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                # The command stands in brackets and may hold blanks and brackets itself: read after the last one.
                state, parent = file.read().rpartition(b")")[2].split(None, 2)[:2]
        except (OSError, ValueError):
            continue  # it has ended meanwhile
        pid = int(name)
        table[pid] = Process(pid, int(parent), state not in b"ZX" or _other_threads(pid))
    return table


def _other_threads(pid: int) -> bool:
    """Whether a process whose first thread has ended goes on in others: it looks like a zombie and is none."""
    try:
        return len(os.listdir(f"/proc/{pid}/task")) > 1  # noqa: PTH208
    except OSError:
        return False


def _row_of_ps(line: str) -> Process | None:
    fields = line.split()
    if len(fields) < 3 or not (fields[0].isdigit() and fields[1].isdigit()):
        return None
    return Process(int(fields[0]), int(fields[1]), not fields[2].startswith("Z"))


def _ps(*arguments: str) -> str:
    return subprocess.run(["ps", *arguments], capture_output=True, text=True, errors="replace").stdout


def marked(mark: str) -> set[int]:
    """The processes that carry `NAME=value` in the environment they were started with and that we may read."""
    if _has_proc():
        wanted = os.fsencode(mark)
        return {pid for pid in map(int, filter(str.isdigit, os.listdir(_PROC))) if wanted in _environment(pid)}  # noqa: PTH208
    listing = _ps("-axEww", "-o", "pid=,command=")
    return {
        int(pid)
        for pid, _, words in (line.strip().partition(" ") for line in listing.splitlines())
        if pid.isdigit() and mark in words.split()
    }


def _environment(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def command_of(pid: int) -> str:
    """The command line of a process, cut to 200 characters; empty when it has ended."""
    if not _has_proc():
        return _ps("-o", "command=", "-p", str(pid)).strip()[:_COMMAND_LENGTH]
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        text = b" ".join(words) or (_PROC / str(pid) / "comm").read_bytes().strip()
    except OSError:
        return ""
    return text.decode("utf-8", "replace")[:_COMMAND_LENGTH]


# ---------------------------------------------------------------------------------------- the tree


def descendants(table: Table, roots: Iterable[int], *, spare: Iterable[int] = ()) -> set[int]:
    """The pids below `roots`, roots left out; a pid of `spare` and all below it are left out too."""
    children: dict[int, list[int]] = {}
    for row in table.values():
        children.setdefault(row.parent, []).append(row.pid)
    seen = {*spare, *roots}
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            if pid not in seen:
                seen.add(pid)
                found.add(pid)
                waiting.append(pid)
    return found


def living_below(root: int, *, mark: str | None = None, spare: Iterable[int] = ()) -> set[int]:
    """The living processes below `root` and, where `mark` is given, those that carry it, with all below them."""
    table = process_table()
    astray = {pid for pid in marked(mark) if pid in table and pid != root} if mark else set()
    found = astray | descendants(table, {root, *astray}, spare=spare)
    return {pid for pid in found if table[pid].alive}


def end_all(members: Callable[[], set[int]], *, limit_s: float = 5.0) -> set[int]:
    """Kill the processes that `members` finds, and those it finds then, until it finds none.

    All are stopped before the first is killed: a parent that is stopped can neither start another child nor see
    that one has died. Returns the pids killed; the exit status of our own children is `members`' to collect.
    Raises `StubbornProcessError` if some are alive after `limit_s` seconds.
    """
    deadline = time.monotonic() + limit_s
    killed: set[int] = set()
    pause_s = 0.0002
    while living := members():
        stopped: set[int] = set()
        while fresh := living - stopped:
            send(fresh, signal.SIGSTOP)
            stopped |= fresh
            living = members()
        send(stopped, signal.SIGKILL)
        killed |= stopped
        if time.monotonic() > deadline:
            if not (rest := members()):
                break
            names = ", ".join(f"{pid} ({command_of(pid)})" for pid in sorted(rest))
            raise StubbornProcessError(f"still alive {limit_s:g} s after SIGKILL: {names}")
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.02)
    return killed


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each of `pids`; those that are gone or not ours to signal are passed over."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue
