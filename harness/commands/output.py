"""How commands print: JSON on standard output and nothing else there, or plain lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import msgspec


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")
    sys.stdout.buffer.flush()


def print_lines(lines: Iterable[str]) -> None:
    """Lines on standard output."""
    sys.stdout.writelines(f"{line}\n" for line in lines)
