"""One HTTP request over one connection, bounded in three ways: connecting, silence, and the whole exchange.

A socket time-out only bounds silence; an answer that drips for ever is ended by an alarm that shuts the socket down.
"""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit


class Loss(Exception):
    """No whole answer came. `sent`: the request may have left; `begun`: a status came."""

    def __init__(self, kind: str, message: str, *, sent: bool, begun: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.sent = sent
        self.begun = begun


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Sink = Callable[[bytes], bool]
"""Takes the bytes of a successful answer as they come; returning true says that no more is needed."""


def exchange(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes | None = None,
    total_s: float,
    idle_s: float | None = None,
    sink: Sink | None = None,
) -> Reply:
    """Send one request and read its answer within `total_s` seconds, with no silence longer than `idle_s`.

    The body of a 2xx answer goes to `sink` where one is given. Redirects are not followed. Raises `Loss`.
    """
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=min(total_s, idle_s or total_s))
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    alarm = _Alarm(total_s)
    sent = begun = False
    try:
        connection.connect()
        alarm.guard(connection.sock)
        sent = True
        connection.request(method, target or "/", body=body, headers=dict(headers))
        response = connection.getresponse()
        begun = True
        wanted = sink if sink is not None and 200 <= response.status < 300 else None
        data = _read(response, wanted)
        if alarm.rang:
            raise TimeoutError
        names = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, names, data)
    except Exception as fault:
        if not isinstance(fault, (OSError, http.client.HTTPException, ValueError)):
            raise
        if alarm.rang or isinstance(fault, TimeoutError):
            raise Loss("timeout", f"no whole answer within {total_s:g} s", sent=sent, begun=begun) from fault
        raise Loss(_kind(fault, sent), str(fault) or type(fault).__name__, sent=sent, begun=begun) from fault
    finally:
        alarm.off()
        connection.close()


def _read(response: http.client.HTTPResponse, sink: Sink | None) -> bytes:
    """The body. A body shorter than announced raises `IncompleteRead`, which `read1` alone does not promise."""
    expected = response.length
    chunks: list[bytes] = []
    got = 0
    while expected is None or got < expected:
        chunk = response.read1(65536)
        if not chunk:
            break
        got += len(chunk)
        if sink is None:
            chunks.append(chunk)
        elif sink(chunk):
            return b""
    if expected is not None and got < expected:
        raise http.client.IncompleteRead(b"".join(chunks), expected - got)
    return b"".join(chunks)


def _kind(fault: Exception, sent: bool) -> str:
    if not sent:
        return "connect_refused" if isinstance(fault, ConnectionRefusedError) else "unreachable"
    if isinstance(fault, (http.client.IncompleteRead, http.client.RemoteDisconnected)):
        return "connection_cut"
    if isinstance(fault, OSError):
        return "connection_reset"
    return "garbled_answer"


class _Alarm:
    """Shuts a socket down when the time of the whole exchange is over."""

    def __init__(self, total_s: float) -> None:
        self.rang = False
        self._sock: socket.socket | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(total_s, self._ring)
        self._timer.daemon = True
        self._timer.start()

    def guard(self, sock: socket.socket) -> None:
        with self._lock:
            self._sock = sock
        if self.rang:
            raise TimeoutError

    def off(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._sock = None

    def _ring(self) -> None:
        with self._lock:
            self.rang = True
            if self._sock is not None:
                with suppress(OSError):
                    self._sock.shutdown(socket.SHUT_RDWR)
