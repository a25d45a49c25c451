"""The small part of JSON paths that a tools registry uses: `$.order.id`, `$.items[0].sku`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

MISSING: Final = object()
_PART: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


def _parts(path: str) -> list[str | int]:
    found = _PART.findall(path.removeprefix("$"))
    return [int(index) if index else name for name, index in found]


def find(value: Any, path: str) -> Any:
    """What stands at `path`, or `MISSING`."""
    for part in _parts(path):
        if isinstance(part, int):
            if not isinstance(value, Sequence) or isinstance(value, str) or part >= len(value):
                return MISSING
            value = value[part]
        else:
            if not isinstance(value, Mapping) or part not in value:
                return MISSING
            value = value[part]
    return value


def put(value: Mapping[str, Any], path: str, item: Any) -> dict[str, Any]:
    """A copy of the object `value` with `item` at `path`; objects on the way are made.

    Raises `ValueError` for a path that names no field, or a place in a list.
    """
    parts = _parts(path)
    if not parts or not all(isinstance(part, str) for part in parts):
        raise ValueError(f"{path!r} names no field of an object")
    head, rest = str(parts[0]), parts[1:]
    copy = dict(value)
    if rest:
        inner = copy.get(head)
        copy[head] = put(inner if isinstance(inner, Mapping) else {}, ".".join(map(str, rest)), item)
    else:
        copy[head] = item
    return copy
