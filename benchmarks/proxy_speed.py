"""How fast the proxy is when no fault is armed: against `mitmdump -q`, and against no proxy at all.

    python benchmarks/proxy_speed.py [--rounds 5] [--seconds 2]

One small upstream process answers every POST with 1 kB of JSON. Its callers keep their connections open and send one
tool call after the other. The contenders take turns, so that a machine that is busy elsewhere slows all of them;
medians over the rounds are told, ratios being taken within each round. The two claims (docs/performance.md): at least
twice the throughput of `mitmdump -q`, at most 0.6 ms of median latency added at one connection. The processor time of
a call is told as well: it says the same about throughput, and depends less on what else the machine does.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import json
import os
import socket
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.processes.control import ChildProcess

Figures = dict[tuple[str, int], list[tuple[float, float, float]]]
"""By contender and connections, for each round: calls a second, median latency in ms, processor us of a call."""

BODY = json.dumps({"order_id": "o-1001", "amount_cents": 1200, "currency": "EUR", "note": "x" * 40}).encode()
ANSWER = json.dumps({"id": "ch_1", "state": "captured", "detail": "y" * 970}).encode()
REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER)
REGISTRY = {
    "charge": {
        "match": {"method": "POST", "path": "/tools/charge"},
        "idempotency": "keyed",
        "intent": {"json": ["$.order_id", "$.amount_cents"]},
        "resource_group": "payments",
        "severity": "money",
        "avoid": True,
    }
}


class Upstream(asyncio.Protocol):
    """Answers each request once its body is there. No parsing beyond what that takes."""

    def __init__(self) -> None:
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            whole = end + 4 + len(BODY)
            if len(self._buffer) < whole:
                return
            self._buffer = self._buffer[whole:]
            self._transport.write(REPLY)  # type: ignore[attr-defined]


async def serve_upstream() -> None:
    """The upstream process: says its port, then serves until its standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Upstream, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


class Caller(asyncio.Protocol):
    """One kept-alive connection that sends a call as soon as the last one is answered."""

    def __init__(self, request: bytes, until: float, done: asyncio.Future[None]) -> None:
        self._request, self._until, self._done = request, until, done
        self._got = 0
        self._whole = 0
        self.latencies: list[float] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._sent_at = time.perf_counter()
        self._transport.write(self._request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        if not self._whole:
            head = data.find(b"\r\n\r\n")
            if not data.startswith(b"HTTP/1.1 200") or head < 0:
                self._done.set_exception(RuntimeError(f"not the answer that was expected: {data[:200]!r}"))
                return
            self._whole = head + 4 + len(ANSWER)
        self._got += len(data)
        if self._got < self._whole:
            return
        now = time.perf_counter()
        self.latencies.append(now - self._sent_at)
        self._got = self._whole = 0
        if now < self._until:
            self._send()
        elif not self._done.done():
            self._transport.close()
            self._done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(RuntimeError(f"the connection ended early: {exc}"))


async def load(port: int, *, connections: int, seconds: float) -> tuple[float, float]:
    """Calls per second, and the median latency in milliseconds."""
    loop = asyncio.get_running_loop()
    head = f"POST /tools/charge HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
    request = f"{head}idempotency-key: k1\r\ncontent-length: {len(BODY)}\r\n\r\n".encode() + BODY
    began = time.perf_counter()
    callers, ends = [], []
    for _ in range(connections):
        done: asyncio.Future[None] = loop.create_future()
        _, caller = await loop.create_connection(
            lambda done=done: Caller(request, began + seconds, done),  # type: ignore[misc]
            "127.0.0.1",
            port,
        )
        callers.append(caller)
        ends.append(done)
    await asyncio.gather(*ends)
    latencies = [latency for caller in callers for latency in caller.latencies]
    return len(latencies) / (time.perf_counter() - began), statistics.median(latencies) * 1000


def processor_s(pid: int | None) -> float:
    """Processor time of a process so far, in seconds; nothing where the system does not tell."""
    exact = Path(f"/proc/{pid}/schedstat")  # in nanoseconds, of the one thread that works; `stat` counts in ticks
    if exact.exists():
        return int(exact.read_text().split()[0]) / 1e9
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return float("nan")
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Mitmdump:
    """`mitmdump -q` as a reverse proxy for the same upstream."""

    @property
    def pid(self) -> int | None:
        return self._process.pid

    async def start(self, upstream: int, folder: str) -> int:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port: int = free.getsockname()[1]
        command = [str(Path(sys.executable).with_name("mitmdump")), "-q", "--set", f"confdir={folder}"]
        mode = f"reverse:http://127.0.0.1:{upstream}@127.0.0.1:{port}"
        self._process = await asyncio.create_subprocess_exec(*command, "--mode", mode, start_new_session=True)
        for _ in range(200):
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=0.1):
                    return port
            except OSError:
                await asyncio.sleep(0.1)
        raise RuntimeError("mitmdump did not start")

    async def stop(self) -> None:
        self._process.terminate()
        await self._process.wait()


class Stormproof:
    """The proxy process of the harness; a fresh run for each round, as in real life."""

    def __init__(self) -> None:
        self._process = ChildProcess("_proxy")
        self._runs = 0

    @property
    def pid(self) -> int | None:
        return self._process.pid

    async def start(self, upstream: int, folder: str) -> int:
        self._upstream = f"http://127.0.0.1:{upstream}"
        await self._process.start("--confdir", folder, log=2)
        return await self.next_run()

    async def next_run(self) -> int:
        if self._runs:
            closed = await self._process.ask("close_run", run_id=f"r{self._runs}", limit_s=5)
            if closed["failure"]:
                raise RuntimeError(closed["failure"])
        self._runs += 1
        upstreams = {"model": self._upstream, "tools": self._upstream}
        run = {"run_id": f"r{self._runs}", "upstreams": upstreams, "registry": REGISTRY, "faults": []}
        return int((await self._process.ask("open_run", run=run))["port"])

    async def stop(self) -> None:
        await self._process.stop()


async def measure(rounds: int, seconds: float) -> int:
    """Run all contenders in turn and print the table. Returns the exit code: 1 where a claim does not hold.

    Each contender has a session of its own, as ours has anyway: Linux shares processors out by session first.
    """
    figures: Figures = {}
    async with AsyncExitStack() as ends:
        folder = ends.enter_context(tempfile.TemporaryDirectory())
        source = await asyncio.create_subprocess_exec(
            *(sys.executable, __file__, "--upstream"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        ends.callback(source.kill)
        upstream = int(await source.stdout.readline())  # type: ignore[union-attr]
        theirs, ours = Mitmdump(), Stormproof()
        ports = {"direct": upstream, "mitmdump -q": await theirs.start(upstream, f"{folder}/theirs")}
        ends.push_async_callback(theirs.stop)
        ports["stormproof"] = await ours.start(upstream, f"{folder}/ours")
        ends.push_async_callback(ours.stop)
        for port in ports.values():
            await load(port, connections=1, seconds=0.5)
        for _ in range(rounds):
            for connections in (1, 16):
                for name in ports:
                    if name == "stormproof":
                        ports[name] = await ours.next_run()
                    pid = {"direct": source.pid, "mitmdump -q": theirs.pid, "stormproof": ours.pid}[name]
                    before = processor_s(pid)
                    rate, latency = await load(ports[name], connections=connections, seconds=seconds)
                    spent = (processor_s(pid) - before) / (rate * seconds) * 1e6
                    figures.setdefault((name, connections), []).append((rate, latency, spent))
    return report(figures, rounds=rounds, seconds=seconds)


def report(figures: Figures, *, rounds: int, seconds: float) -> int:
    """Print medians and whether the claims hold."""
    rate, latency, spent = (
        {key: statistics.median(figure[column] for figure in values) for key, values in figures.items()}
        for column in range(3)
    )
    versions = f"Python {sys.version.split()[0]}, mitmproxy {importlib.metadata.version('mitmproxy')}"
    load = " ".join(f"{average:.1f}" for average in os.getloadavg())
    print(f"{versions}, {os.cpu_count()} cores, load {load}, {rounds} rounds of {seconds:g} s, medians")
    print(f"{'':14}{'1 connection':>36}{'16 connections':>36}")
    for name in ("direct", "mitmdump -q", "stormproof"):
        cells = [f"{rate[name, n]:7.0f}/s{latency[name, n]:9.3f} ms{spent[name, n]:7.0f} us CPU" for n in (1, 16)]
        print(f"{name:14}{cells[0]:>36}{cells[1]:>36}")
    times = {n: in_pairs(figures, n, column=0) for n in (1, 16)}
    added = latency["stormproof", 1] - latency["direct", 1]
    cheaper = {n: 1 / in_pairs(figures, n, column=2) for n in (1, 16)}
    print(f"throughput against mitmdump -q: {times[1]:.2f} x at 1 connection, {times[16]:.2f} x at 16")
    print(f"processor time of a call: {cheaper[1]:.2f} x less at 1 connection, {cheaper[16]:.2f} x less at 16")
    print(f"added median latency at 1 connection: {added:.3f} ms")
    return 0 if min(times.values()) >= 2 and added <= 0.6 else 1


def in_pairs(figures: Figures, connections: int, *, column: int) -> float:
    """Ours over theirs in the same round, the median over the rounds."""
    pairs = zip(figures["stormproof", connections], figures["mitmdump -q", connections], strict=True)
    return statistics.median(ours[column] / theirs[column] for ours, theirs in pairs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--upstream", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.upstream:
        asyncio.run(serve_upstream())
    else:
        sys.exit(asyncio.run(measure(options.rounds, options.seconds)))
