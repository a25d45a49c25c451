"""One HTTP exchange, at the level of bytes."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from agents.reference.transport import Loss, Reply, exchange


@contextmanager
def served(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that takes one connection, reads one request and lets `answer` do the rest."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            data = b""
            while b"\r\n\r\n" not in data:
                data += connection.recv(65536)
            try:
                answer(connection)
            except OSError:
                return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/x?q=1"
    finally:
        listener.close()
        thread.join(5)


def get(url: str, **named: float) -> Reply:
    """A GET with a second in all."""
    return exchange("GET", url, headers={}, total_s=named.pop("total_s", 2.0), **named)  # type: ignore[arg-type]


def lost(answer: Callable[[socket.socket], None], **named: float) -> Loss:
    """The loss that an answer leads to."""
    with served(answer) as url, pytest.raises(Loss) as caught:
        get(url, **named)
    return caught.value


def test_a_whole_answer() -> None:
    """Status, headers in lower case, and exactly the body that was announced."""
    with served(lambda c: c.sendall(b"HTTP/1.1 429 \r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\nokEXTRA")) as url:
        reply = get(url)
    assert (reply.status, reply.headers["retry-after"], reply.body) == (429, "3", b"ok")


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
    ],
)
def test_a_body_cut_short_is_a_loss(head: bytes) -> None:
    """Announced by length or chunked: a proper close before the end is no whole answer."""
    loss = lost(lambda c: c.sendall(head))
    assert (loss.kind, loss.sent, loss.begun) == ("connection_cut", True, True)


def test_no_answer_at_all() -> None:
    """The server reads the request and closes: sent, no status, unknown what it did."""
    loss = lost(lambda c: None)
    assert (loss.kind, loss.sent, loss.begun) == ("connection_cut", True, False)


def test_a_reset() -> None:
    """A true RST in place of the answer."""

    def reset(connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    loss = lost(reset)
    assert loss.sent is True
    assert loss.kind == "connection_reset"


def test_nobody_listens() -> None:
    """A refused connection is the one loss where nothing can have happened."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Loss) as caught:
        get(f"http://127.0.0.1:{port}/")
    assert (caught.value.kind, caught.value.sent) == ("connect_refused", False)


def test_silence() -> None:
    """No byte within the idle limit: a time-out, long before the limit of the whole."""
    start = time.monotonic()
    loss = lost(lambda c: time.sleep(1.0), total_s=5.0, idle_s=0.1)
    assert loss.kind == "timeout"
    assert time.monotonic() - start < 3.0


def test_a_drip_does_not_stretch_the_whole() -> None:
    """A byte now and then never lets the silence limit strike: the limit of the whole does."""

    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(100):
            connection.sendall(b"x")
            time.sleep(0.05)

    start = time.monotonic()
    loss = lost(drip, total_s=0.4, idle_s=0.3)
    assert (loss.kind, loss.begun) == ("timeout", True)
    assert time.monotonic() - start < 3.0


def test_dripping_headers_do_not_either() -> None:
    """The same where the drip is in the headers."""

    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        for n in range(100):
            connection.sendall(f"x-{n}: y\r\n".encode())
            time.sleep(0.05)

    assert lost(drip, total_s=0.4, idle_s=0.3).kind == "timeout"


def test_garbage_is_a_loss() -> None:
    """What is no HTTP is no answer."""
    assert lost(lambda c: c.sendall(b"hello\r\n\r\n")).kind == "garbled_answer"


def test_a_sink_that_has_enough_ends_the_reading() -> None:
    """A stream is left after its terminal event, although the server keeps the connection open."""
    got: list[bytes] = []

    def sink(chunk: bytes) -> bool:
        got.append(chunk)
        return b"END" in b"".join(got)

    def stream(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\nEND\r\n")
        time.sleep(1.0)

    with served(stream) as url:
        start = time.monotonic()
        reply = exchange("GET", url, headers={}, total_s=5.0, sink=sink)
        taken = time.monotonic() - start
    assert (reply.status, b"".join(got)) == (200, b"abcEND")
    assert taken < 0.5


def test_an_error_status_is_read_past_the_sink() -> None:
    """The body of an error answer is kept, not fed to the reader of a stream."""
    with served(lambda c: c.sendall(b"HTTP/1.1 529 x\r\nContent-Length: 2\r\n\r\n{}")) as url:
        reply = exchange("GET", url, headers={}, total_s=2.0, sink=lambda chunk: True)
    assert (reply.status, reply.body) == (529, b"{}")
