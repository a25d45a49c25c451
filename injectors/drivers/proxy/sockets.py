"""What goes to the agent past mitmproxy: raw bytes, an orderly end, a true reset.

`flow.kill()` is no reset but a FIN, so that resets are made on the socket itself.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from http.client import responses
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

from mitmproxy.connection import Connection
from mitmproxy.http import HTTPFlow, Response
from mitmproxy.net.http.http1 import assemble_response
from mitmproxy.proxy.server import ConnectionHandler

from injectors.actions import CutEnding
from injectors.core import Reply

_NO_LINGER = struct.pack("ii", 1, 0)
_FRAMING = frozenset({"content-length", "transfer-encoding", "connection", "keep-alive"})


class ClientGoneError(Exception):
    """The agent has closed its connection."""


def writer_of(handler: ConnectionHandler | None, connection: Connection) -> asyncio.StreamWriter:
    """The writer to a connection. Raises `ClientGoneError` where that is closed."""
    io = handler.transports.get(connection) if handler is not None else None
    if io is None or not isinstance(io.writer, asyncio.StreamWriter) or io.writer.is_closing():
        raise ClientGoneError
    return io.writer


def watch(writer: asyncio.StreamWriter, sending: Callable[[], None]) -> None:
    """Have `sending` called just before anything is written."""
    untyped: Any = writer
    write = writer.write

    def watched(data: bytes) -> None:
        sending()
        write(data)

    untyped.write = watched


def reset(writer: asyncio.StreamWriter) -> None:
    """Send a TCP RST in place of what is still to be written."""
    writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, _NO_LINGER)
    writer.transport.abort()


def kill(flow: HTTPFlow) -> None:
    """Have mitmproxy send nothing (more) for a flow and close the agent's connection."""
    untyped: Any = flow
    if flow.killable:
        untyped.kill()


def raw_answer(answer: Response) -> bytes:
    """The bytes that mitmproxy would send for a whole answer."""
    untyped: Any = assemble_response
    return bytes(untyped(answer))


async def deliver(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write and wait until the kernel has it all. Raises `ClientGoneError` if the agent leaves meanwhile."""
    writer.write(data)
    await writer.drain()
    while writer.transport.get_write_buffer_size():
        if writer.is_closing():
            raise ClientGoneError
        await asyncio.sleep(0.001)
    if writer.is_closing():
        raise ClientGoneError


def cut_bytes(reply: Reply, size: int, end: CutEnding) -> bytes:
    """The bytes of a cut answer. The head announces the whole body, but with the ending `clean` what is sent."""
    kept = [f"{name}: {value}" for name, value in reply.headers if name not in _FRAMING]
    part = reply.body[:size]
    if reply.streamed:
        kept.append("transfer-encoding: chunked")
        part = b"%x\r\n%b\r\n" % (len(part), part) if part else b""
        part += b"0\r\n\r\n" if end == "clean" else b""
    else:
        kept.append(f"content-length: {size if end == 'clean' else len(reply.body)}")
    if end == "clean":
        kept.append("connection: close")
    head = "\r\n".join([f"HTTP/1.1 {reply.status} {responses.get(reply.status, '')}", *kept])
    return head.encode("latin-1") + b"\r\n\r\n" + part
