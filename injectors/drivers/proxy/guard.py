"""Every hook is guarded: its own error kills the flow and fails the run.

mitmproxy only logs what an addon raises and lets the flow pass untouched; a fault would quietly not happen, and the
run would look like a pass.
"""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar


class Guardian(Protocol):
    """Who is told of errors in hooks."""

    def failed(self, subject: Any, why: str) -> None:
        """A hook has raised while it dealt with `subject` (a flow, or the data of a connection): nothing of it may go
        on, nor wait for what will not come."""

    def waiting(self, subject: Any, by: int) -> None:
        """One hook more (or less) is waiting for something on behalf of `subject`."""


G = TypeVar("G", bound=Guardian)
S = TypeVar("S")


def guarded(hook: Callable[[G, S], Awaitable[None] | None]) -> Callable[[G, S], Awaitable[None] | None]:
    """Wrap a hook. It may return at once, which is cheap, or return something to await."""
    name = hook.__name__

    @functools.wraps(hook)
    def call(self: G, subject: S) -> Awaitable[None] | None:
        try:
            rest = hook(self, subject)
        except Exception as error:  # noqa: BLE001 - whatever it is, the run must not go on as if nothing were
            self.failed(subject, told(name, error))
            return None
        return _finish(self, subject, name, rest) if inspect.isawaitable(rest) else None

    return call


async def _finish(guardian: Guardian, subject: Any, name: str, rest: Awaitable[None]) -> None:
    guardian.waiting(subject, +1)
    try:
        await rest
    except Exception as error:  # noqa: BLE001 - as above
        guardian.failed(subject, told(name, error))
    finally:
        guardian.waiting(subject, -1)


def told(where: str, error: Exception) -> str:
    """The error in one sentence, with the place that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""
    return f"the proxy's {where} hook raised {type(error).__name__}: {error}{place}"
