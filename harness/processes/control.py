"""The line protocol between the harness and its child processes.

A request is `{"id": 1, "op": "open_run", ...}` on the child's standard input, its answer `{"id": 1, "ok": true, ...}`
or `{"id": 1, "error": "what is wrong"}` on its standard output; what nobody asked for is `{"event": "..."}`. The
child's standard error is its log. A closed standard input ends the child at once: a killed harness leaves nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from harness.errors import HarnessError

Message = dict[str, Any]
Handler = Callable[[Message], Awaitable[Message]]

LINE_LIMIT = 256 * 1024 * 1024
"""Bytes; a run's records travel as one line, and a hundred-thousand-line tool result must fit."""

NAMES: Mapping[str, str] = {
    "_proxy": "the proxy",
    "_standins": "the process of the stand-ins",
    "_launcher": "the launcher",
}
"""What a process is called in messages: its command word means nothing to who reads them."""

_encoder = msgspec.json.Encoder()


# ---------------------------------------------------------------------------------------- the child's side


def emit(message: Message) -> None:
    """Write one line to the harness. One `write` call, so that lines of several tasks never mix."""
    sys.stdout.buffer.write(_encoder.encode(message) + b"\n")
    sys.stdout.buffer.flush()


async def serve(handlers: Mapping[str, Handler], *, ready: Message) -> None:
    """Say `ready`, then answer requests until standard input ends or somebody asks to `stop`.

    Each request runs as a task of its own, so that a long one (a drain) does not hold up the next.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LINE_LIMIT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    emit({"event": "ready", "pid": os.getpid(), **ready})
    tasks: set[asyncio.Task[None]] = set()
    while line := await reader.readline():
        message: Message = msgspec.json.decode(line)
        if message.get("op") == "stop":
            emit({"id": message["id"], "ok": True})
            break
        task = asyncio.create_task(_answer(handlers, message))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    for task in tasks:
        task.cancel()


async def _answer(handlers: Mapping[str, Handler], message: Message) -> None:
    number, op = message.get("id"), str(message.get("op"))
    handler = handlers.get(op)
    if handler is None:
        emit({"id": number, "error": f"unknown operation {op!r}"})
        return
    try:
        answer = await handler(message)
    except Exception as error:  # noqa: BLE001 - whatever went wrong, the harness has to hear of it
        emit({"id": number, "error": f"{type(error).__name__}: {error}"})
    else:
        emit({"id": number, "ok": True, **answer})


# -------------------------------------------------------------------------------------- the harness's side


class ChildProcess:
    """One child process and the requests under way to it."""

    def __init__(self, word: str, *, on_event: Callable[[Message], None] | None = None) -> None:
        """`on_event` gets what nobody asked for, and `{"event": "lost", ..}` if the process ends of itself."""
        self.word = word
        self.name = NAMES.get(word, f"the process {word}")
        self.ready: Message = {}
        self._on_event = on_event or (lambda _event: None)
        self._stopping = False
        self._ended = False
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._number = 0
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The process id, `None` before `start`."""
        return self._process.pid if self._process else None

    async def start(self, *arguments: str, log: int, limit_s: float = 20.0) -> Message:
        """Start the process and wait for its ready line; `log` is the file descriptor for its errors.

        Raises `HarnessError` if it ends or stays silent for `limit_s` seconds.
        """
        self._process = await asyncio.create_subprocess_exec(
            *own_command(self.word, *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            limit=LINE_LIMIT,
            start_new_session=True,
        )
        is_ready: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[0] = is_ready
        self._reading = asyncio.create_task(self._read())
        try:
            self.ready = await asyncio.wait_for(is_ready, limit_s)
        except TimeoutError:
            raise HarnessError(f"{self.name} did not get ready within {limit_s:g} s") from None
        return self.ready

    async def ask(self, op: str, /, *, within_s: float = 60.0, **fields: Any) -> Message:
        """Send one request and return its answer. Raises `HarnessError` on an error, a silence, an end.

        `within_s` bounds the wait in seconds; the other fields travel with the request.
        """
        process = self._process
        if process is None or process.stdin is None or self._ended:
            raise HarnessError(f"{self.name} is not running")
        self._number += 1
        number = self._number
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            process.stdin.write(_encoder.encode({"id": number, "op": op, **fields}) + b"\n")
            await process.stdin.drain()
            message = await asyncio.wait_for(answer, within_s)
        except TimeoutError:
            raise HarnessError(f"{self.name} did not answer {op!r} within {within_s:g} s") from None
        except (BrokenPipeError, ConnectionResetError):
            raise HarnessError(f"{self.name} has ended") from None
        finally:
            self._waiting.pop(number, None)
        if "error" in message:
            raise HarnessError(f"{self.name}: {message['error']}")
        return message

    async def stop(self, *, limit_s: float = 5.0) -> None:
        """Ask the process to end, and end it by force if it does not within `limit_s` seconds."""
        process = self._process
        self._stopping = True
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(HarnessError):
                await self.ask("stop", within_s=limit_s)
            try:
                await asyncio.wait_for(process.wait(), limit_s)
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if self._reading:
            self._reading.cancel()

    async def _read(self) -> None:
        process = self._process
        if process is None or process.stdout is None:
            return
        while line := await process.stdout.readline():
            try:
                message: Message = msgspec.json.decode(line)
            except msgspec.DecodeError:
                continue  # a library printed to standard output; its words are no message of ours
            if message.get("event") == "ready":
                self._settle(0, message)
            elif "event" in message:
                self._on_event(message)
            else:
                self._settle(message.get("id"), message)
        # From here on nobody answers: what waits is told so, what comes later is refused.
        self._ended = True
        for number in list(self._waiting):
            self._settle(number, {"error": "the process has ended; see its log"})
        if not self._stopping:
            self._on_event({"event": "lost", "process": self.name})

    def _settle(self, number: int | None, message: Message) -> None:
        waiting = self._waiting.get(-1 if number is None else number)
        if waiting and not waiting.done():
            if number == 0 and "error" in message:
                waiting.set_exception(HarnessError(f"{self.name} ended before it was ready"))
            else:
                waiting.set_result(message)


def own_command(*words: str) -> list[str]:
    """The command line of one of our own processes. `-P` keeps the working folder off its module path."""
    return [sys.executable, "-P", "-m", "stormproof", *words]
