"""Bad input gets a plain sentence saying what and where, the exit code of the contract, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from harness.settings import APPLICATION
from tests.harness.end_to_end.command import STORMPROOF, alive, results, stormproof

GOOD = """\
number: 150
version: 1
title: The charge hangs
faults:
  - kind: hang
    at: {tool: charge}
"""


def scenario(folder: Path, text: str, name: str = "150-t.yaml") -> Path:
    """A folder with one scenario file."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (("title: The charge hangs", "title: [The charge hangs"), 4, "is not valid YAML"),
        (("version: 1", "version: 1\nversion: 2"), 3, "a second time"),
        (("kind: hang", "kind: hnag"), 5, "did you mean `hang`?"),
        (("{tool: charge}", "{tool: chrage}"), 5, "did you mean `charge`?"),
        (("{tool: charge}", "{tool: charge, call: 7}"), 1, "calls that `hang` at charge#7/1 could strike"),
        (("{tool: charge}", "{tol: charge}"), 5, "did you mean `tool`?"),
    ],
    ids=["broken", "duplicate-key", "unknown-kind", "misspelt-tool", "impossible-site", "misspelt-site"],
)
def test_scenario_files(tmp_path: Path, change: tuple[str, str], line: int, words: str) -> None:
    """A scenario that cannot be is refused with file, line and what would be right, before anything is started."""
    folder = scenario(tmp_path / "scenarios", GOOD.replace(*change))
    done = stormproof("run", "--scenarios", folder, "--scenario", 150, "--out", "r", cwd=tmp_path)
    assert done.code == 2
    assert f"scenarios/150-t.yaml:{line}: " in done.err
    assert words in done.err
    assert not (tmp_path / "r").exists()


def test_everything_at_once(tmp_path: Path) -> None:
    """Mistakes in several files are all named in one go, with `--json` as well."""
    folder = scenario(tmp_path / "scenarios", GOOD)
    scenario(folder, GOOD.replace("hang", "hnag", 1), "150-again.yaml")
    scenario(folder, GOOD.replace("number: 150", "number: 151"), "152-other.yaml")
    done = stormproof("run", "--scenarios", folder, "--agent", "refrence", "--json", cwd=tmp_path)
    assert done.code == 2
    assert done.json["exit_code"] == 2
    told = "\n".join(done.json["errors"])
    for words in ("did you mean `reference`?", "152-other.yaml:1: `number` is 151, but the file name says 152"):
        assert words in told
    assert done.err.strip() == told


def trace_copy(folder: Path, **header: object) -> Path:
    """A folder with one bundled trace whose header is changed."""
    folder.mkdir()
    lines = (APPLICATION / "traces" / "recorded" / "order-small.jsonl").read_text().splitlines(keepends=True)
    lines[0] = json.dumps({**json.loads(lines[0]), **header}) + "\n"
    (folder / "order-small.jsonl").write_text("".join(lines))
    return folder


def test_traces(tmp_path: Path) -> None:
    """Traces that are unmasked, hold a secret, are no traces or are not there are refused."""
    unmasked = trace_copy(tmp_path / "a", masked=False)
    secret = trace_copy(tmp_path / "b", request="mail me at jane.roe@gmail.com")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "x.jsonl").write_text('{"trace": "x", "version": 1, "request": "r"}\n{"channel": "modle"}\n')
    for folder, words in (
        (unmasked, "order-small.jsonl:1: is not masked; run `stormproof mask"),
        (secret, "order-small.jsonl:1: says it is masked, but"),
        (tmp_path / "c", "x.jsonl:2: `channel` is 'modle'"),
        (tmp_path / "nowhere", "nowhere:1: there is no such trace, folder or pattern"),
    ):
        done = stormproof("run", "--traces", folder, "--scenario", 104, cwd=tmp_path)
        assert done.code == 2
        assert words in done.err


def test_real_systems_are_not_struck(tmp_path: Path) -> None:
    """An effectful tool that is neither stand-in nor sandbox is refused."""
    tools = tmp_path / "tools.yaml"
    shipped = (APPLICATION / "traces" / "recorded" / "tools.yaml").read_text()
    tools.write_text(shipped.replace("environment: stand-in", "environment: production", 5))
    done = stormproof("run", "--tools", tools, "--scenario", 104, cwd=tmp_path)
    assert done.code == 2
    assert "faults only ever meet `environment: stand-in`" in done.err


def agent(folder: Path, body: str, **fields: object) -> Path:
    """An `agent.yaml` whose agent is a Python program of that body."""
    (folder / "agent.py").write_text(textwrap.dedent(body))
    spec = {"name": "mine", "command": [sys.executable, "agent.py"], "timeout_s": 20, **fields}
    path = folder / "agent.yaml"
    path.write_text(json.dumps(spec))
    return path


def test_an_agent_that_cannot_be_started(tmp_path: Path) -> None:
    """A command that does not exist is an error of the set-up: exit 3, naming it."""
    spec = agent(tmp_path, "", command=["no-such-program"])
    done = stormproof("run", "--agent", spec, "--scenario", 104, "--trace", "order-small", "--out", "r", cwd=tmp_path)
    assert done.code == 3
    assert "no-such-program" in done.out


def test_an_agent_that_never_talks_to_the_proxy(tmp_path: Path) -> None:
    """No traffic is never a pass: undecided, exit 4."""
    spec = agent(tmp_path, "print('all good')")
    done = stormproof("run", "--agent", spec, "--scenario", 104, "--trace", "order-small", "--out", "r", cwd=tmp_path)
    assert done.code == 4
    assert "no traffic of the agent was seen" in done.out


def test_an_agent_that_prints_rubbish(tmp_path: Path) -> None:
    """Rubbish on both outputs and in the event file is set aside; the run is judged all the same."""
    spec = agent(
        tmp_path,
        r"""
        import os, sys, urllib.request, json
        sys.stdout.buffer.write(b"\xff\xfe{{{ not json\n" * 5000)
        sys.stderr.buffer.write(b"\x00\x1b[2J" * 5000)
        open(os.environ["STORMPROOF_EVENTS"], "ab").write(b'\x00\xff{"type":\n[1,2]\n{"type":"effect","t":1}\n{}\n')
        task = json.load(open(os.environ["STORMPROOF_TASK"]))
        body = {"model": task["model"], "max_tokens": 100, "messages": [{"role": "user", "content": task["request"]}]}
        request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode(),
                                         {"content-type": "application/json"})
        urllib.request.urlopen(request).read()
        """,
    )
    done = stormproof("run", "--agent", spec, "--scenario", 100, "--trace", "order-small", "--out", "r", cwd=tmp_path)
    assert done.code == 0, done.out + done.err
    (result,) = results(tmp_path / "r").values()
    assert "unreadable-events" in {finding["code"] for finding in result["findings"]}
    assert stormproof("check", "r/history.jsonl", cwd=tmp_path).code == 0


def test_an_agent_that_crashes(tmp_path: Path) -> None:
    """An agent that dies of its own exception breaks an invariant; nothing of it stays alive."""
    spec = agent(
        tmp_path,
        """
        import subprocess, sys
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
        raise RuntimeError("boom")
        """,
    )
    done = stormproof("run", "--agent", spec, "--scenario", 100, "--trace", "order-small", "--out", "r", cwd=tmp_path)
    assert done.code == 1
    assert "no-escaped-exception" in done.out
    assert 'its last words: "RuntimeError: boom"' in " ".join(done.out.split())
    (result,) = results(tmp_path / "r").values()
    assert "orphan-process" in {finding["code"] for finding in result["findings"]}
    assert not alive(str(tmp_path))


def test_floors_of_bundled_scenarios_are_for_our_agents(tmp_path: Path) -> None:
    """A floor of ours only warns of somebody else's agent; in a scenario of one's own it gates."""
    spec = agent(
        tmp_path,
        """
        import json, os, urllib.request
        task = json.load(open(os.environ["STORMPROOF_TASK"]))
        def post(url, body, **headers):
            headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"} | headers
            return json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)))
        said = [{"role": "user", "content": task["request"]}]
        while True:
            body = {"model": task["model"], "max_tokens": 1000, "messages": said, "tools": task["tools"]}
            turn = post(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body)["content"]
            said.append({"role": "assistant", "content": turn})
            results = []
            for use in (block for block in turn if block["type"] == "tool_use"):
                url = os.environ["STORMPROOF_TOOLS_URL"] + "/" + use["name"]
                key = {"Idempotency-Key": json.dumps([os.environ["STORMPROOF_INTENT_ID"], use["name"], use["input"]])}
                try:
                    answer = post(url, use["input"], **key)
                except OSError:
                    answer = post(url, use["input"], **key)
                results.append({"type": "tool_result", "tool_use_id": use["id"], "content": json.dumps(answer)})
            if not results:
                break
            said.append({"role": "user", "content": results})
        """,
    )
    shipped = APPLICATION / "scenarios" / "104-charge-reply-lost.yaml"
    words = ["run", "--agent", spec, "--scenario", 104, "--trace", "order-small", "--out", "r", "--json"]
    done = stormproof(*words, cwd=tmp_path)
    assert (done.code, done.json["violations"]) == (0, []), done.json["undecided"]
    assert any("outcome_query" in warning["why"] for warning in done.json["warnings"])
    own = tmp_path / "scenarios"
    own.mkdir()
    shutil.copy(shipped, own)
    assert stormproof(*words, "--scenarios", own, cwd=tmp_path).code == 4


def limited() -> None:
    """No file may grow beyond 130 kB in this process and its children."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (130_000, 130_000))


def test_files_that_may_not_grow(tmp_path: Path) -> None:
    """A history that cannot be written any further is told as that, and what had ended is kept."""
    command = [*STORMPROOF, "run", "--scenario", "100", "--parallel", "1", "--out", str(tmp_path / "r"), "-q"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, preexec_fn=limited, timeout=120
    )
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert "cannot be written" in done.stderr or "disk I/O error" in done.stdout
    assert results(tmp_path / "r")
    assert not alive(str(tmp_path))


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="mounting a small disk needs root")
def test_a_full_disk(tmp_path: Path) -> None:
    """A full disk is told as that, and what had ended is kept."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=700k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        command = [*STORMPROOF, "run", "--set", "ci", "--parallel", "1", "--out", str(disk / "r"), "-q"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200)
        assert done.returncode == 3, done.stderr
        assert "Traceback" not in done.stderr
        assert "No space left" in done.stderr or "the disk is full" in done.stderr
        assert not alive(str(disk))
    finally:
        subprocess.run(["umount", str(disk)], check=False)
