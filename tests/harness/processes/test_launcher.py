"""The launcher process: agents start as asked and end without remains, whoever dies first."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from signal import valid_signals

import pytest

from tests.harness.processes.launcher_client import (
    FAMILY,
    REPOSITORY,
    LauncherClient,
    alive,
    kill,
    parent_of,
    pids_in,
    wait_until,
)


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[LauncherClient]:
    """A launcher whose agents run in the test's own folder."""
    with LauncherClient(tmp_path) as client:
        yield client


# ------------------------------------------------------------------------------------------ starting


def test_environment_is_exactly_the_given_one(launcher: LauncherClient, tmp_path: Path) -> None:
    """The agent sees the variables it was given and not one of the harness's."""
    given = {"ONLY": "this", "STORMPROOF_RUN_ID": "r"}
    launcher.start("r", "/usr/bin/env", env=given)
    launcher.exited("r")
    assert dict(line.split("=", 1) for line in (tmp_path / "r.out").read_text().splitlines()) == given


def test_agent_leads_a_session_with_closed_input(launcher: LauncherClient, tmp_path: Path) -> None:
    """The agent leads a session of its own and reads end-of-file from its standard input at once."""
    code = "import os,sys; print(os.getsid(0) == os.getpid(), repr(sys.stdin.read()))"
    launcher.start("r", sys.executable, "-ISc", code)
    assert launcher.exited("r")["exit_code"] == 0
    assert (tmp_path / "r.out").read_text() == "True ''\n"


def test_ignored_signals_are_not_passed_on(launcher: LauncherClient, tmp_path: Path) -> None:
    """Python ignores SIGPIPE and the launcher SIGINT, yet the agent begins with every signal at its default."""
    launcher.start("r", "grep", "SigIgn", "/proc/self/status")
    launcher.exited("r")
    ignored = int((tmp_path / "r.out").read_text().split()[1], 16)
    assert [number for number in valid_signals() if ignored >> (number - 1) & 1] == []


def test_times_enclose_the_process(launcher: LauncherClient) -> None:
    """The start is stamped before the process exists, its exit after it was waited for."""
    before = time.time()
    started = launcher.start("r", "sleep", "0.05")
    exited = launcher.exited("r")
    assert before <= started["t"] <= exited["t"] - 0.05
    assert exited["pid"] == started["pid"]
    assert exited["t"] <= time.time()


@pytest.mark.parametrize(
    ("script", "exit_code", "signal"),
    [("exit 0", 0, None), ("exit 41", 41, None), ("kill -SEGV $$", None, "SIGSEGV"), ("kill -9 $$", None, "SIGKILL")],
)
def test_exit_is_told_truly(launcher: LauncherClient, script: str, exit_code: int | None, signal: str | None) -> None:
    """An exit has either the code that the agent gave or the name of the signal that ended it."""
    launcher.start("r", "sh", "-c", script)
    exited = launcher.exited("r")
    assert (exited["exit_code"], exited["signal"]) == (exit_code, signal)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["no-such-agent"], "no such command: 'no-such-agent' was not found on PATH"),
        (["./missing.py"], "no such command: './missing.py' was not found in "),
        (["./plain.txt"], "cannot start ./plain.txt: Permission denied"),
        (["./foreign.py"], "the interpreter named in its first line (#!) does not exist"),
        (["./shapeless"], "it is no program and has no first line (#!)"),
        (["a\0b"], "cannot start 'a\\x00b': execve: embedded null character"),
        ([], "the command is empty"),
    ],
)
def test_command_that_cannot_start_says_why(
    launcher: LauncherClient, tmp_path: Path, argv: list[str], words: str
) -> None:
    """Each way in which a command can fail to start gets its own plain sentence, and leaves no supervisor."""
    (tmp_path / "plain.txt").write_text("text")
    for name, text in (("foreign.py", "#!/no/such/python\n"), ("shapeless", "text")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    assert words in launcher.start("r", *argv)["error"]
    wait_until(lambda: not _children(launcher.process.pid))


def test_folder_and_output_that_are_not_there(launcher: LauncherClient, tmp_path: Path) -> None:
    """A missing folder, to start in or to write to, is named; the run can be started properly afterwards."""
    nowhere = str(tmp_path / "nowhere")
    assert launcher.start("r", "true", cwd=nowhere)["error"] == f"no such folder to start in: {nowhere}"
    assert launcher.start("r", "true", stdout=f"{nowhere}/out")["error"].startswith(f"cannot write {nowhere}/out")
    assert launcher.start("r", "true")["ok"]
    assert launcher.exited("r")["exit_code"] == 0


def test_second_generation(launcher: LauncherClient, tmp_path: Path) -> None:
    """After a kill the run starts again and appends its output; two generations at once are refused."""
    launcher.start("r", "sh", "-c", "echo one; exec sleep 60")
    wait_until(lambda: (tmp_path / "r.out").read_text() == "one\n")
    assert "generation 1 of run r is still running" in launcher.start("r", "true", generation=2)["error"]
    launcher.ask("kill", run_id="r", signal="SIGKILL")
    launcher.start("r", "sh", "-c", "echo two; exit 3", generation=2)
    assert launcher.exited("r", 1)["signal"] == "SIGKILL"
    assert launcher.exited("r", 2)["exit_code"] == 3
    assert (tmp_path / "r.out").read_text() == "one\ntwo\n"


def test_flood_of_output_holds_up_nobody(launcher: LauncherClient, tmp_path: Path) -> None:
    """An agent that writes without end fills its own file; requests of another run are answered meanwhile."""
    launcher.start("flood", "sh", "-c", "yes | head -c 200000000; echo done >&2")
    before = time.monotonic()
    launcher.start("calm", "true")
    launcher.exited("calm")
    assert time.monotonic() - before < 5
    launcher.ask("kill", run_id="flood")
    assert (tmp_path / "flood.out").stat().st_size > 0


# -------------------------------------------------------------------------------------------- ending


def test_kill_returns_when_all_are_dead(launcher: LauncherClient, tmp_path: Path) -> None:
    """When `kill` is answered, the exit has been told and no member of the family is alive, not even a daemon."""
    before = time.time()
    launcher.start("r", "sh", "-c", FAMILY + "exec sleep 60")
    family = pids_in(tmp_path / "pids", 4)
    assert alive(family) == family
    answer = launcher.ask("kill", run_id="r", signal="SIGKILL")
    assert alive(family) == []
    assert [event["signal"] for event in launcher.events if event["event"] == "exited"] == ["SIGKILL"]
    assert before <= answer["t"] <= launcher.exited("r")["t"]


def test_gentle_signal_comes_before_the_kill(launcher: LauncherClient, tmp_path: Path) -> None:
    """SIGTERM lets the agent end in its own way; who ignores it is killed when the grace is over."""
    polite = "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.01; done"
    launcher.start("polite", "sh", "-c", polite)
    launcher.start("deaf", "sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.01; done")
    for name in ("polite", "deaf"):
        wait_until(lambda: "up" in (tmp_path / f"{name}.out").read_text())  # noqa: B023 - used at once
        launcher.ask("kill", run_id=name, signal="SIGTERM", grace_s=0.3)
    assert launcher.exited("polite")["exit_code"] == 7
    assert launcher.exited("deaf")["signal"] == "SIGKILL"


def test_sweep_names_what_the_agent_left(launcher: LauncherClient, tmp_path: Path) -> None:
    """Orphans alive after the agent's exit are named with their command line and killed; a clean run has none."""
    agent = launcher.start("r", "sh", "-c", FAMILY + "exit 0")["pid"]
    launcher.exited("r")
    left = set(pids_in(tmp_path / "pids", 4)) - {agent}
    found = launcher.ask("sweep", run_id="r")["orphans"]
    assert {orphan["pid"] for orphan in found} == left
    assert all("sleep 60" in orphan["cmd"] for orphan in found)
    assert alive(list(left)) == []
    launcher.start("clean", "true")
    launcher.exited("clean")
    assert launcher.ask("sweep", run_id="clean")["orphans"] == []


def test_requests_for_unknown_runs(launcher: LauncherClient) -> None:
    """Killing a run that was never started is an error, sweeping it finds nothing, an unknown word is refused."""
    assert "no process of run ghost" in launcher.ask("kill", run_id="ghost")["error"]
    assert launcher.ask("sweep", run_id="ghost")["orphans"] == []
    assert "unknown operation 'dance'" in launcher.ask("dance")["error"]


def test_fifty_kills_leave_nothing(launcher: LauncherClient, tmp_path: Path) -> None:
    """Fifty families, twelve at a time, each killed: no process is left, and no supervisor once they are swept."""
    for number in range(50):
        folder = tmp_path / str(number)
        folder.mkdir()
        launcher.start(f"r{number}", "sh", "-c", FAMILY + "exec sleep 60", cwd=str(folder))
        if number >= 12:
            _kill_and_sweep(launcher, number - 12)
    for number in range(38, 50):
        _kill_and_sweep(launcher, number)
    told = [int(word) for path in tmp_path.glob("*/pids") for word in path.read_text().split()]
    assert len(told) >= 50
    assert alive(told) == []
    wait_until(lambda: not _children(launcher.process.pid))


def _kill_and_sweep(launcher: LauncherClient, number: int) -> None:
    launcher.ask("kill", run_id=f"r{number}", signal="SIGKILL")
    assert launcher.ask("sweep", run_id=f"r{number}")["orphans"] == []


# ----------------------------------------------------------------------------------- when others die


def test_stop_is_answered_when_nothing_is_left(launcher: LauncherClient, tmp_path: Path) -> None:
    """`stop` ends every run first and answers then."""
    launcher.start("r", "sh", "-c", FAMILY + "exec sleep 60")
    family = pids_in(tmp_path / "pids", 4)
    assert launcher.ask("stop")["ok"]
    assert alive(family) == []
    assert launcher.process.wait(5) == 0


def test_killed_harness_leaves_nothing(tmp_path: Path) -> None:
    """SIGKILL for the process that started the launcher: within a second nothing of the run is alive."""
    program = f"""
import sys, time
from pathlib import Path
sys.path.insert(0, {str(REPOSITORY)!r})
from tests.harness.processes.launcher_client import FAMILY, LauncherClient
client = LauncherClient(Path({str(tmp_path)!r}))
client.start("r", "sh", "-c", FAMILY + "exec sleep 60")
print(client.process.pid, flush=True)
time.sleep(60)
"""
    harness = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    with harness:
        pids = [int(harness.stdout.readline())] if harness.stdout else []
        pids += pids_in(tmp_path / "pids", 4)
        assert alive(pids) == pids
        kill(harness.pid)
    wait_until(lambda: alive(pids) == [], limit_s=1)


def test_killed_launcher_leaves_nothing(launcher: LauncherClient, tmp_path: Path) -> None:
    """SIGKILL for the launcher itself: its supervisors notice and end their families within a second."""
    supervisor = parent_of(launcher.start("r", "sh", "-c", FAMILY + "exec sleep 60")["pid"])
    family = pids_in(tmp_path / "pids", 4)
    kill(launcher.process.pid)
    wait_until(lambda: alive([*family, supervisor]) == [], limit_s=1)


def test_killed_supervisor_is_told_and_cleaned_up(launcher: LauncherClient, tmp_path: Path) -> None:
    """SIGKILL for one run's supervisor: its family goes, the loss is told, and another run goes on undisturbed."""
    other = launcher.start("other", "sleep", "60")["pid"]
    agent = launcher.start("r", "sh", "-c", FAMILY + "exec sleep 60")["pid"]
    family = pids_in(tmp_path / "pids", 4)
    kill(parent_of(agent))
    told = launcher.exited("r")
    assert (told["lost"], told["exit_code"], told["signal"]) == (True, None, None)
    assert alive(family) == []
    assert alive([other]) == [other]
    assert launcher.start("r", "true", generation=2)["ok"]


def test_lines_stay_whole(launcher: LauncherClient) -> None:
    """Requests that arrive in pieces, and many in one piece, are each answered once."""
    stdin = launcher.process.stdin
    assert stdin is not None
    lines = b"".join(json.dumps({"id": n, "op": "sweep", "run_id": "x"}).encode() + b"\n" for n in range(900, 1000))
    stdin.write(lines[:37])
    time.sleep(0.02)
    stdin.write(lines[37:])
    assert launcher.ask("sweep", run_id="x") == {"id": 1, "ok": True, "orphans": []}


def _children(pid: int) -> list[int]:
    from injectors.drivers.process_tree import descendants, process_table

    table = process_table()
    return [child for child in descendants(table, [pid]) if table[child].alive]
