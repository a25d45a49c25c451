"""The process driver: one supervisor per run starts the agent, kills it, and leaves nothing of it alive.

The supervisor is forked from the launcher (`harness/processes/launcher.py`), a small process with one thread, so a
start costs two forks and no interpreter. It adopts every orphan of its run and sits in a session of its own, the
agent in another. If the launcher ends, for whatever reason, the kernel and the closed socket both tell the
supervisor, which then ends its tree and itself.

Requests and answers are JSON lines over one socket: `start`, `kill` and `sweep` of the launcher's protocol.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from injectors.drivers.process_tree import (
    StubbornProcessError,
    become_subreaper,
    command_of,
    die_with_parent,
    end_all,
    living_below,
    send,
)

Message = dict[str, Any]

_GRACE_S = 2.0
"""How long a signal other than SIGKILL is given to work before SIGKILL follows."""


class StartError(Exception):
    """The agent could not be started; the message says why, in words for whoever wrote its command."""


@dataclass(frozen=True, slots=True)
class Command:
    """What to start. `env` is the whole environment; output is appended to the two files."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    stdout: str
    stderr: str


def spawn(command: Command) -> int:
    """Start a process in a session of its own, with closed input, and return its pid once it really runs.

    It is killed by the kernel if the caller ends. Raises `StartError`.
    """
    if not command.argv or not command.argv[0]:
        raise StartError("the command is empty")
    report, told = os.pipe()
    try:
        with _output(command.stdout) as out, _output(command.stderr) as err, _null_input() as null:
            pid = os.fork()
            if pid == 0:
                _become(command, (null, out, err), told)
        os.close(told)
        told = -1
        if text := _read_all(report):
            os.waitpid(pid, 0)
            raise StartError(text.decode())
    finally:
        os.close(report)
        if told >= 0:
            os.close(told)
    return pid


@contextlib.contextmanager
def _output(path: str) -> Iterator[int]:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StartError(f"cannot write {path}: {error.strerror}") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _null_input() -> Iterator[int]:
    descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read_all(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, 65536):
        parts.append(part)
    return b"".join(parts)


def _become(command: Command, streams: tuple[int, int, int], told: int) -> NoReturn:
    """In the forked child: turn into the command, or say through `told` why that cannot be."""
    parent = os.getppid()
    text = "the process that was to become the command failed"
    try:
        os.setsid()
        die_with_parent(signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(127)
        for target, source in enumerate(streams):
            os.dup2(source, target)
        for number in signal.valid_signals():  # an ignored signal would stay ignored in the agent
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.chdir(command.cwd)
        os.execvpe(command.argv[0], list(command.argv), dict(command.env))
    except OSError as error:
        text = _why_not(command, error)
    except ValueError as error:
        text = f"cannot start {command.argv[0]!r}: {error}"
    finally:
        os.write(told, text.encode("utf-8", "replace"))
        os._exit(127)


def _why_not(command: Command, error: OSError) -> str:
    name = command.argv[0]
    if not Path(command.cwd).is_dir():
        return f"no such folder to start in: {command.cwd}"
    if error.errno == errno.ENOENT:
        if "/" in name and Path(command.cwd, name).exists():
            return f"cannot start {name}: the interpreter named in its first line (#!) does not exist"
        where = f"in {command.cwd}" if "/" in name else "on PATH"
        return f"no such command: {name!r} was not found {where}"
    if error.errno == errno.ENOEXEC:
        return f"cannot start {name}: it is no program and has no first line (#!) that names an interpreter"
    return f"cannot start {name}: {error.strerror}"


# ------------------------------------------------------------------------------------- the supervisor


class Supervisor:
    """Starts and ends the processes of one run, one request after the other, until the run is swept."""

    def __init__(self, run_id: str, line: socket.socket, *, subreaper: bool, mark: str | None) -> None:
        self._run_id = run_id
        self._line = line
        self._agent: int | None = None
        self._generation = 0
        self._over = False
        self._subreaper = subreaper
        self._mark = None if subreaper else mark

    def run(self, first: Message) -> None:
        """Answer `first`, then whatever comes, until a sweep, the launcher's end or a failed first start."""
        wake = self._watch_signals()
        requests = _Lines(self._line)
        with selectors.DefaultSelector() as selector:
            selector.register(self._line, selectors.EVENT_READ)
            selector.register(wake, selectors.EVENT_READ)
            self._answer(first)
            while not self._over:
                for key, _ in selector.select():
                    if key.fileobj == wake:
                        if signal.SIGTERM in os.read(wake, 4096):
                            self._over = True
                    elif (messages := requests.read()) is None:
                        self._over = True
                    else:
                        for message in messages:
                            self._answer(message)
                self._reap()
        self._end()

    def _watch_signals(self) -> int:
        """The end of a pipe that gets a byte for each SIGCHLD, and for the SIGTERM of a launcher that died."""
        wake, woken = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(woken, False)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        return wake

    def _answer(self, message: Message) -> None:
        try:
            answer = {"id": message.get("id"), "ok": True, **self._do(message)}
        except (StartError, StubbornProcessError, OSError) as error:
            answer = {"id": message.get("id"), "error": str(error)}
            self._over = self._over or self._generation == 0
        self._say(answer)

    def _do(self, message: Message) -> Message:
        match message["op"]:
            case "start":
                return self._start(message)
            case "kill":
                return self._kill(signal.Signals[message.get("signal") or "SIGKILL"], message.get("grace_s"))
            case _:
                return self._sweep()

    def _start(self, message: Message) -> Message:
        if self._agent is not None:
            raise StartError(f"generation {self._generation} of run {self._run_id} is still running")
        command = Command(
            argv=message["argv"],
            env=message["env"],
            cwd=message["cwd"],
            stdout=message["stdout"],
            stderr=message["stderr"],
        )
        before = time.time()
        self._agent = spawn(command)
        self._generation = message["generation"]
        return {"pid": self._agent, "t": before}

    def _kill(self, number: signal.Signals, grace_s: float | None) -> Message:
        before = time.time()
        if number is not signal.SIGKILL:
            send(self._find(), number)
            deadline = time.monotonic() + (_GRACE_S if grace_s is None else grace_s)
            while self._find() and time.monotonic() < deadline:
                time.sleep(0.005)
        self._end()
        return {"t": before}

    def _sweep(self) -> Message:
        orphans = [{"pid": pid, "cmd": command_of(pid)} for pid in sorted(self._find())]
        self._end()
        self._over = True
        return {"orphans": orphans}

    def _find(self) -> set[int]:
        """The living processes of the run. A subreaper without children has no descendants: no need to look."""
        self._reap()
        if self._subreaper and not _has_children():
            return set()
        return living_below(os.getpid(), mark=self._mark)

    def _end(self) -> None:
        end_all(self._find)
        self._reap()

    def _reap(self) -> None:
        """Collect the exit status of all that ended, and tell of the agent's own."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._agent:
                self._agent = None
                self._say(
                    {
                        "event": "exited",
                        "run_id": self._run_id,
                        "generation": self._generation,
                        "pid": pid,
                        "t": time.time(),
                        "exit_code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
                        "signal": signal_name(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else None,
                        "cpu_s": round(usage.ru_utime + usage.ru_stime, 6),
                    }
                )

    def _say(self, message: Message) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # nobody is left to hear it
            self._line.sendall(json.dumps(message).encode() + b"\n")


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


class _Lines:
    """Whole JSON lines out of a socket."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._rest = b""

    def read(self) -> list[Message] | None:
        """The messages that one read completed; None at the end."""
        try:
            part = self._line.recv(1 << 20)
        except ConnectionResetError:
            part = b""
        if not part:
            return None
        *whole, self._rest = (self._rest + part).split(b"\n")
        return [json.loads(text) for text in whole]


def signal_name(number: int) -> str:
    """`SIGKILL` for 9; a real-time signal has no name in Python and is called by its number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def fork_supervisor(first: Message, *, mark: str | None, subreaper: bool = True) -> tuple[int, socket.socket]:
    """Fork the supervisor of the run that `first` (a `start`) belongs to; returns its pid and the socket to it.

    The caller must have one thread and no event loop. `mark` (`NAME=value` of the agent's environment) finds the
    run's processes where nobody can be a subreaper; `subreaper=False` does without one.
    """
    ours, theirs = socket.socketpair()
    parent = os.getpid()
    pid = os.fork()
    if pid:
        theirs.close()
        return pid, ours
    code = 1
    try:
        _settle_in(theirs.fileno())
        die_with_parent(signal.SIGTERM)
        if os.getppid() == parent:
            reaper = subreaper and become_subreaper()
            Supervisor(str(first["run_id"]), theirs, subreaper=reaper, mark=mark).run(first)
        code = 0
    except BaseException:  # noqa: BLE001 - nothing may travel up into the launcher's own frames
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _settle_in(kept: int) -> None:
    """Leave the launcher's session and let go of its descriptors: an open copy would hide that it has ended."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))
