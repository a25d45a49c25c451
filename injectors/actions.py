"""What a driver can do. A fault answers a moment with these; it never does anything itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from injectors.moment import Reply

Ending = Literal["fin", "rst"]
"""How a connection ends: orderly, or by a reset."""

CutEnding = Literal["silence", "fin", "rst", "clean"]
"""How a cut body ends: nothing more comes, the connection ends, or the body pretends to be whole."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Let so many seconds pass, then go on."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Respond:
    """Answer in the service's stead; the request is not forwarded."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class Replace:
    """Pass on another answer than the service gave."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class KeepSilent:
    """Say nothing until the agent leaves."""


@dataclass(frozen=True, slots=True)
class Disconnect:
    """End the agent's connection in place of an answer: orderly, or by a true TCP RST. Not a byte is sent."""

    end: Ending


@dataclass(frozen=True, slots=True)
class CutAt:
    """Send the head of `reply` and the first `size` bytes of its body, then end so.

    The head announces the whole body, so that the cut can be noticed; with the ending `clean` it announces just what
    is sent, so that it cannot.
    """

    reply: Reply
    size: int
    end: CutEnding


@dataclass(frozen=True, slots=True)
class KillAgent:
    """Kill the process tree of the agent, and go on only when it is dead."""


Action = Delay | Respond | Replace | KeepSilent | Disconnect | CutAt | KillAgent
