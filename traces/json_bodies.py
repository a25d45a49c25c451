"""JSON that somebody else wrote, read so that it cannot break its reader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

DEEPEST = 100
"""Levels of nesting that are read. Whoever walks the value later (digests, schemas) does so by recursion as well,
with less of the stack left; no tool and no model nests nearly as deep."""

B = TypeVar("B", str, bytes)


def shallow(decode: Callable[[B], Any], body: B) -> Any:
    """What `decode` makes of a text. Raises `ValueError` where it does, and for more than `DEEPEST` levels."""
    try:
        value = decode(body)
    except RecursionError:
        raise ValueError(f"nested more than {DEEPEST} levels deep") from None
    if _openings(body) > DEEPEST and _deeper(value):
        raise ValueError(f"nested more than {DEEPEST} levels deep")
    return value


def _openings(body: str | bytes) -> int:
    """How many arrays and objects there are at most."""
    return body.count("[") + body.count("{") if isinstance(body, str) else body.count(b"[") + body.count(b"{")


def _deeper(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [item for holder in level for item in _items(holder)]
        if not level:
            return False
    return True


def _items(holder: Any) -> list[Any]:
    if isinstance(holder, dict):
        return list(holder.values())
    return holder if isinstance(holder, list) else []
