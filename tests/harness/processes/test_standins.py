"""The process of the stand-ins: its line protocol, the drain, and what is left when it ends."""

from __future__ import annotations

import resource
import socket
import sqlite3
import struct
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from harness.processes.control import own_command
from tests.harness.standins.bench import Process, standins
from tests.harness.standins.shop import CHARGE, HTTP, REGISTRY


def shot(port: int, run: str, wire: str, *, leave_after_s: float, reset: bool) -> None:
    """A charge without key whose client sends all of it and leaves, by FIN or RST, without reading an answer."""
    body = b'{"order_id": "o1", "amount": 1200}'
    head = (
        f"POST /tools/charge HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        f"x-stormproof-run: {run}\r\nx-stormproof-wire: {wire}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(head.encode() + body)
        time.sleep(leave_after_s)
        if reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """One process for all tests that leave it whole."""
    with standins(tmp_path_factory.mktemp("standins")) as started:
        yield started


@pytest.fixture
def process(shared: Process) -> Iterator[Process]:
    """The shared process, with its worlds closed after each test."""
    yield shared
    for world in ("w", "x"):
        shared.ask("close_world", world=world)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Process]:
    """A process that the test may ruin."""
    with standins(tmp_path / "state") as started:
        yield started


@pytest.mark.parametrize(("reset", "leave_after_s"), [(False, 0.0), (False, 0.001), (True, 0.002)])
def test_clients_that_leave_early_lose_no_effect(process: Process, reset: bool, leave_after_s: float) -> None:
    """Everything sent by clients that leave at once is executed, and the drain knows of all of it."""
    process.open()
    sent = [f"w{n}" for n in range(150)]
    with ThreadPoolExecutor(8) as pool:
        for wire in sent:
            pool.submit(shot, process.tools_port, "r1", wire, leave_after_s=leave_after_s, reset=reset)
    effects = process.effects("r1", sent)
    assert sorted(effect["wire"] for effect in effects) == sorted(sent)
    assert {effect["outcome"] for effect in effects} == {"applied"}


def test_drain_waits_for_work_whose_client_is_gone(process: Process) -> None:
    """A slow tool whose client left goes on, and the drain ends right after it, with its effect."""
    process.open(latency_s={"charge": 0.4})
    start = time.monotonic()
    shot(process.tools_port, "r1", "w1", leave_after_s=0.05, reset=False)
    assert [effect["wire"] for effect in process.effects("r1", ["w1"])] == ["w1"]
    assert 0.35 <= time.monotonic() - start < 3.0


def test_drain_names_what_is_not_done_at_its_limit(process: Process) -> None:
    """What never arrived and what still works are unfinished; the effects so far are told all the same."""
    process.open(latency_s={"email": 30.0})
    process.call("charge", CHARGE.args, key="k", wire="w1")
    with pytest.raises(httpx.ReadTimeout):
        HTTP.post(
            f"{process.tools}/email",
            json={},
            headers={"x-stormproof-run": "r1", "x-stormproof-wire": "w2"},
            timeout=0.2,
        )
    answer = process.ask("drain", run_id="r1", sent=["w1", "w2", "w3"], limit_s=0.1)
    assert answer["unfinished"] == ["w2", "w3"]
    assert [effect["wire"] for effect in answer["effects"]] == ["w1"]


def test_long_drain_does_not_hold_up_the_process(process: Process) -> None:
    """While one run drains, another is opened and served."""
    process.open()
    process.send("drain", run_id="r1", sent=["never"], limit_s=0.5)
    process.open("r2")
    assert process.call("charge", CHARGE.args, run="r2", key="k").status_code == 200
    assert process.receive()["unfinished"] == ["never"]


def test_model_calls_and_refusals_count_as_done(process: Process) -> None:
    """Every forwarded id is waited for, whatever came of it: model calls, unknown tools, status queries."""
    process.open()
    headers = {"x-stormproof-run": "r1"}
    HTTP.post(f"{process.model}/v1/messages", json={}, headers=headers | {"x-stormproof-wire": "w1"})
    HTTP.post(f"{process.tools}/nothing", json={}, headers=headers | {"x-stormproof-wire": "w2"})
    HTTP.get(f"{process.tools}/charge/status?key=k", headers=headers | {"x-stormproof-wire": "w3"})
    assert process.effects("r1", ["w1", "w2", "w3"]) == []


def test_times_lie_between_request_and_answer(process: Process) -> None:
    """An effect is stamped after its request was sent and before its answer is on the wire."""
    process.open()
    spans = []
    for n in range(30):
        before = time.time()
        process.call("charge", CHARGE.args, key=f"k{n % 20}", wire=f"w{n}")
        spans.append((before, time.time()))
    effects = process.effects("r1")
    assert all(start <= effect["t"] <= end for effect, (start, end) in zip(effects, spans, strict=True))


def test_runs_of_one_world_share_their_keys(process: Process) -> None:
    """Two runs of a world meet in the ledger; a run of another world does not see them."""
    for run_id, world in (("r1", "w"), ("r2", "w"), ("r3", "x")):
        process.open(run_id, world=world)
        process.call("charge", CHARGE.args, run=run_id, key="k")
    outcomes = [process.effects(run_id)[0]["outcome"] for run_id in ("r1", "r2", "r3")]
    assert outcomes == ["applied", "deduplicated", "applied"]


def test_closed_world_is_forgotten(process: Process) -> None:
    """Its runs are unknown, its keys free; other worlds keep theirs."""
    process.open("r1", world="w")
    process.open("r2", world="x")
    for run_id in ("r1", "r2"):
        process.call("charge", CHARGE.args, run=run_id, key="k")
    process.ask("close_world", world="w")
    assert process.call("charge", CHARGE.args, run="r1", key="k").status_code == 404
    assert "no open run" in process.ask("drain", run_id="r1", sent=[], limit_s=0)["error"]
    assert len(process.effects("r2")) == 1
    process.open("r1", world="w")
    assert process.effects("r1") == []
    assert "idempotent-replayed" not in process.call("charge", CHARGE.args, run="r1", key="k").headers


def test_restarted_process_remembers(tmp_path: Path) -> None:
    """The ledger is in the state folder: after a kill, keys, effects and numbers are what they were."""
    with standins(tmp_path / "state") as process:
        process.open()
        process.call("charge", CHARGE.args, key="k", wire="w1")
    with standins(tmp_path / "state") as process:
        process.open()
        again = process.call("charge", CHARGE.args, key="k", wire="w2")
        assert again.headers["idempotent-replayed"] == "true"
        assert process.call("charge", CHARGE.args, key="k2").json()["charge_id"] == "ch_1-2"
        assert [effect["outcome"] for effect in process.effects("r1", ["w2"])] == [
            *("applied", "deduplicated", "applied"),
        ]


def test_end_of_input_ends_the_process(own: Process) -> None:
    """A killed harness leaves no process behind, not even one that is at work."""
    own.open(latency_s={"charge": 60.0})
    shot(own.tools_port, "r1", "w1", leave_after_s=0.05, reset=False)
    start = time.monotonic()
    assert own.close_input() == 0
    assert time.monotonic() - start < 5.0


def test_bad_orders_are_answered_in_words(process: Process, tmp_path: Path) -> None:
    """An unknown policy, a registry or a trace that cannot be read: an error each, and the process goes on."""
    given = {"run_id": "r", "world": "w", "intent_id": "i", "tenant": "t", "registry": REGISTRY, "policy": "continue"}
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{}\n")
    missing = tmp_path / "missing.jsonl"
    assert "'perhaps'" in process.ask("open_run", **(given | {"policy": "perhaps", "trace": str(broken)}))["error"]
    assert "TraceError" in process.ask("open_run", **given, trace=str(broken))["error"]
    assert "missing.jsonl" in process.ask("open_run", **given, trace=str(missing))["error"]
    process.open("good")
    wrong = given | {"registry": {"charge": {"idempotency": "perhaps"}}}
    assert "charge" in process.ask("open_run", **wrong, trace=str(process.state / "good.jsonl"))["error"]
    assert process.call("charge", CHARGE.args, run="good", key="k").status_code == 200


def test_ledger_that_cannot_be_had_is_told(tmp_path: Path) -> None:
    """Exit code 3 and a sentence with the folder, no traceback and no ready line."""
    (tmp_path / "file").write_text("")
    command = own_command("_standins", "--state", str(tmp_path / "file"))
    ended = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30, check=False)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert str(tmp_path / "file") in ended.stderr
    assert "Traceback" not in ended.stderr


def test_failure_of_the_ledger_fails_the_drain(own: Process) -> None:
    """Where an effect could not be written, the call gets a 500 and the drain an error: never a quiet pass."""
    own.open()
    with sqlite3.connect(own.state / "effects.sqlite3") as other:
        other.execute("DROP TABLE answers")
    assert own.call("charge", CHARGE.args, key="k", wire="w1").status_code == 500
    assert "no such table" in own.ask("drain", run_id="r1", sent=["w1"], limit_s=1.0)["error"]


def test_finished_worlds_leave_no_memory(own: Process) -> None:
    """Many worlds, each opened, used and closed, cost no more memory than a few."""

    def worlds(count: int) -> int:
        for n in range(count):
            own.open("r", world=f"w{n}")
            own.call("charge", CHARGE.args, run="r", wire=f"w{n}")
            own.effects("r", [f"w{n}"])
            own.ask("close_world", world=f"w{n}")
        pages = int(Path(f"/proc/{own.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize()

    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc")
    before = worlds(60)
    assert worlds(240) - before < 1024 * 1024
