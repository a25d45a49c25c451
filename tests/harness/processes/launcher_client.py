"""A blocking client of the launcher process, and agents for it to start."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from harness.processes.control import own_command
from injectors.drivers.process_tree import process_table

REPOSITORY = Path(__file__).resolve().parents[3]

FAMILY = """
(sleep 60 & echo $! >> pids)
setsid sh -c 'echo $$ >> pids; exec sleep 60' &
(setsid env -i /bin/sh -c 'echo $$ >> pids; exec /bin/sleep 60' &)
echo $$ >> pids
"""
"""Shell: a child, one in a session of its own, one that is double-forked without any environment; 4 pids told."""


class LauncherClient:
    """The launcher as a child process; `with` ends it, whatever a test left running."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "launcher.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                own_command("_launcher"),
                cwd=REPOSITORY,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                bufsize=0,
            )
        self.events: list[dict[str, Any]] = []
        self._rest = b""
        self._number = 0
        self.ready = self._until(lambda message: message.get("event") == "ready", limit_s=20)

    def __enter__(self) -> LauncherClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.stdin and self.process.stdout:
            self.process.stdin.close()
            self.process.wait(10)
            self.process.stdout.close()

    def send(self, op: str, **fields: Any) -> int:
        """Send a request and return its number, without waiting."""
        self._number += 1
        line = json.dumps({"id": self._number, "op": op, **fields}).encode() + b"\n"
        if self.process.stdin:
            self.process.stdin.write(line)
        return self._number

    def ask(self, op: str, *, limit_s: float = 10.0, **fields: Any) -> dict[str, Any]:
        """Send a request and return its answer, which may be an error."""
        number = self.send(op, **fields)
        return self._until(lambda message: message.get("id") == number, limit_s=limit_s)

    def start(self, run_id: str, *argv: str, generation: int = 1, **fields: Any) -> dict[str, Any]:
        """Start an agent in the test's folder with a bare environment of PATH and the run's mark."""
        message = {
            "run_id": run_id,
            "generation": generation,
            "argv": list(argv),
            "env": {"PATH": os.environ["PATH"], "STORMPROOF_RUN_ID": run_id},
            "cwd": str(self.folder),
            "stdout": str(self.folder / f"{run_id}.out"),
            "stderr": str(self.folder / f"{run_id}.err"),
            **fields,
        }
        return self.ask("start", **message)

    def exited(self, run_id: str, generation: int = 1, *, limit_s: float = 10.0) -> dict[str, Any]:
        """The exit event of one generation, waited for if it has not come yet."""

        def is_it(message: dict[str, Any]) -> bool:
            told = (message.get("event"), message.get("run_id"), message.get("generation"))
            return told == ("exited", run_id, generation)

        return next(filter(is_it, self.events), None) or self._until(is_it, limit_s=limit_s)

    def _until(self, is_it: Callable[[dict[str, Any]], bool], *, limit_s: float) -> dict[str, Any]:
        deadline = time.monotonic() + limit_s
        stream = self.process.stdout
        while stream and (left := deadline - time.monotonic()) > 0:
            while b"\n" in self._rest:
                text, _, self._rest = self._rest.partition(b"\n")
                message: dict[str, Any] = json.loads(text)
                if "event" in message:
                    self.events.append(message)
                if is_it(message):
                    return message
            if select.select([stream], [], [], left)[0]:
                part = os.read(stream.fileno(), 1 << 20)
                if not part:
                    raise AssertionError(f"the launcher ended: {self.log.read_text()}")
                self._rest += part
        raise AssertionError(f"no such message within {limit_s} s; the log says: {self.log.read_text()}")


def pids_in(path: Path, count: int, *, limit_s: float = 10.0) -> list[int]:
    """The pids that an agent wrote to a file, once there are `count` of them."""
    wait_until(lambda: path.exists() and path.read_text().count("\n") >= count, limit_s=limit_s)
    return [int(word) for word in path.read_text().split()]


def alive(pids: list[int]) -> list[int]:
    """Those of `pids` that still run (a zombie does not)."""
    table = process_table()
    return [pid for pid in pids if pid in table and table[pid].alive]


def wait_until(true: Callable[[], bool], *, limit_s: float = 10.0) -> None:
    """Wait for a condition; fails the test when it does not come true in time."""
    deadline = time.monotonic() + limit_s
    while not true():
        if time.monotonic() > deadline:
            raise AssertionError(f"did not come true within {limit_s} s")
        time.sleep(0.005)


def parent_of(pid: int) -> int:
    """The pid of a process's parent."""
    return process_table()[pid].parent


def kill(pid: int) -> None:
    """SIGKILL, for a process that the test itself started."""
    os.kill(pid, signal.SIGKILL)
