"""The launcher process: starts the agents under test and ends them, one supervisor per run.

It speaks the line protocol of `harness.processes.control`, but without an event loop and without the modules that
one brings along: it forks a supervisor for each run, and what is small and has one thread forks cheaply and safely.
All it does itself is to pass lines on.

- `start` {run_id, generation, argv, env, cwd, stdout, stderr} -> {pid, t}: `env` is the whole environment, output is
  appended to the two files, `t` is taken just before the start
- `kill` {run_id, signal, grace_s} -> {t}: SIGKILL for the whole tree of the run; another signal is followed by
  SIGKILL after `grace_s` seconds (2 by default). The answer comes when all are dead, `t` is the time just before the
  first signal
- `sweep` {run_id} -> {orphans: [{pid, cmd}]}: whatever is still alive is named and killed; the run is over
- event `exited` {run_id, generation, pid, t, exit_code, signal, cpu_s}: after the agent's exit status was collected;
  with `lost: true`, and nothing known of how it ended, where its supervisor was killed at `t` and the agent therefore
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from injectors.drivers.process import fork_supervisor
from injectors.drivers.process_tree import become_subreaper, end_all, living_below

Message = dict[str, Any]

RUN_MARK = "STORMPROOF_RUN_ID"
"""The variable that the harness sets for every agent (contract section 6): marks the processes of a run."""


@dataclass(slots=True)
class _Run:
    """One supervisor, and what is known of its run."""

    run_id: str
    pid: int
    line: socket.socket
    rest: bytes = b""
    waiting: set[int] = field(default_factory=set)
    """The requests it has not answered."""
    agent: tuple[int, int] | None = None
    """Generation and pid of the agent, while it runs."""
    generation: int = 0
    started: bool = False
    """Whether an agent was ever started; a supervisor whose first start fails leaves at once."""


class Launcher:
    """Takes requests from one descriptor, has them done by supervisors, and writes answers to another."""

    def __init__(self, requests: int, answers: int) -> None:
        self._requests = requests
        self._answers = answers
        self._rest = b""
        self._runs: dict[str, _Run] = {}
        self._selector = selectors.DefaultSelector()
        self._alive: dict[int, _Run] = {}
        """Supervisors by pid; one that is leaving after a sweep is here, and no longer in `_runs`."""

    def serve(self) -> None:
        """Work until the requests end or `stop` is asked for; then end every run, and only then return."""
        self._say({"event": "ready", "pid": os.getpid(), "subreaper": become_subreaper()})
        self._selector.register(self._requests, selectors.EVENT_READ)
        gc.collect()
        gc.freeze()  # a collection in a forked supervisor would copy all these pages
        stop = None
        while stop is None:
            for key, _ in self._selector.select():
                if key.data is not None:
                    self._hear(key.data)
                elif (stop := self._take()) is not None:
                    break
        self._finish()
        if "id" in stop:
            self._say({"id": stop["id"], "ok": True})

    # ------------------------------------------------------------------------------- the harness's side

    def _take(self) -> Message | None:
        """Read and pass on requests. Returns the `stop` request, or an empty one where standard input ended."""
        part = os.read(self._requests, 1 << 20)
        if not part:
            return {}
        *whole, self._rest = (self._rest + part).split(b"\n")
        for text in whole:
            message: Message = json.loads(text)
            if message.get("op") == "stop":
                return message
            self._dispatch(message)
        return None

    def _dispatch(self, message: Message) -> None:
        op, number, run_id = message.get("op"), message.get("id"), str(message.get("run_id"))
        run = self._runs.get(run_id)
        match op:
            case "start" if run is None:
                self._begin(run_id, message)
            case "start" | "kill" if run is not None:
                self._pass_on(run, message)
            case "kill":
                self._say({"id": number, "error": f"no process of run {run_id} was started here"})
            case "sweep" if run is not None:
                del self._runs[run_id]  # a later start of the same run gets a supervisor of its own
                self._pass_on(run, message)
            case "sweep":
                self._say({"id": number, "ok": True, "orphans": []})
            case _:
                self._say({"id": number, "error": f"unknown operation {op!r}"})

    def _begin(self, run_id: str, message: Message) -> None:
        mark = message.get("env", {}).get(RUN_MARK)
        try:
            pid, line = fork_supervisor(message, mark=f"{RUN_MARK}={mark}" if mark else None)
        except OSError as error:
            self._say({"id": message.get("id"), "error": f"cannot fork: {error.strerror}"})
            return
        run = _Run(run_id, pid, line, generation=message["generation"])
        run.waiting.add(message["id"])
        self._runs[run_id] = self._alive[pid] = run
        self._selector.register(line, selectors.EVENT_READ, run)

    def _pass_on(self, run: _Run, message: Message) -> None:
        run.waiting.add(message["id"])
        if message["op"] == "start":
            run.generation = message["generation"]
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # `_hear` will find it gone and say so
            run.line.sendall(json.dumps(message).encode() + b"\n")

    def _say(self, message: Message) -> None:
        self._write(json.dumps(message).encode() + b"\n")

    def _write(self, lines: bytes) -> None:
        try:
            while lines:
                lines = lines[os.write(self._answers, lines) :]
        except BrokenPipeError:
            pass  # the harness is gone; the end of standard input follows

    # ---------------------------------------------------------------------------- the supervisors' side

    def _hear(self, run: _Run) -> None:
        """Pass on what a supervisor says, keeping count of what it still owes."""
        try:
            part = run.line.recv(1 << 20)
        except ConnectionResetError:
            part = b""
        if not part:
            self._bury(run)
            return
        *whole, run.rest = (run.rest + part).split(b"\n")
        for text in whole:
            message: Message = json.loads(text)
            if message.get("event") == "exited":
                run.agent = None
            else:
                run.waiting.discard(message["id"])
                if "pid" in message:
                    run.agent, run.started = (run.generation, message["pid"]), True
                elif "error" in message and not run.started and self._runs.get(run.run_id) is run:
                    del self._runs[run.run_id]
            self._write(text + b"\n")

    def _bury(self, run: _Run) -> None:
        """A supervisor has ended: as it should, or killed by somebody, and then this process stands in for it."""
        noticed = time.time()
        self._selector.unregister(run.line)
        run.line.close()
        _, status = os.waitpid(run.pid, 0)
        del self._alive[run.pid]
        if self._runs.get(run.run_id) is run:
            del self._runs[run.run_id]
        if status != 0:
            self._end_adopted()
        if run.agent is not None:
            generation, pid = run.agent
            exited = {"event": "exited", "run_id": run.run_id, "generation": generation, "pid": pid}
            self._say({**exited, "t": noticed, "exit_code": None, "signal": None, "lost": True})
        for number in run.waiting:
            self._say({"id": number, "error": f"the supervisor of run {run.run_id} ended; see the launcher's log"})

    def _end_adopted(self) -> None:
        """End what came to this process because a supervisor died; the other supervisors and theirs stay."""
        end_all(functools.partial(living_below, os.getpid(), spare=frozenset(self._alive)))
        self._reap_adopted()

    def _reap_adopted(self) -> None:
        """Collect exit statuses, but leave a supervisor's to `_bury`."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None or ended.si_pid in self._alive:
                return
            os.waitpid(ended.si_pid, 0)

    def _finish(self) -> None:
        """End all supervisors: each sees its socket close, ends its tree and then itself."""
        self._selector.unregister(self._requests)
        for run in self._alive.values():
            run.line.shutdown(socket.SHUT_WR)
        while self._alive:
            for key, _ in self._selector.select():
                self._hear(key.data)


def main(argv: list[str]) -> int:
    """Run the launcher on standard input and output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the harness's to handle; it closes our input
    answers = os.dup(1)
    os.dup2(2, 1)
    Launcher(0, answers).serve()
    sys.stderr.flush()
    return 0
