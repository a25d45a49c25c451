"""Text of a tool call's arguments, seen as tokens: where it may be cut, how it is split, what a cut text looks like.

The hazard that this serves was measured: a stream that ends cleanly after `"amount": 12` of `1200` is read by several
clients as a whole call, and 12 are charged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_ESCAPE_TAIL = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?$")
PIECE = 7
"""Characters in a piece of argument text, about what providers send."""


def cut_points(raw: str, inside: str) -> list[int]:
    """Offsets in the text, one for each number or string value that can be cut, in order.

    `"number"`: what stands before the offset is a shorter number of another value. `"string"`: at least one character
    of the value stands before the offset and one behind it.
    """
    if inside not in ("number", "string"):
        raise ValueError(f'a cut is inside a "number" or a "string", not {inside!r}')
    points: list[int] = []
    for start, token, is_key in _tokens(raw):
        if token.startswith('"'):
            point = _string_cut(token) if inside == "string" and not is_key else None
        else:
            point = _number_cut(token) if inside == "number" else None
        if point is not None:
            points.append(start + point)
    return points


def inside_token(raw: str, offset: int, inside: str) -> bool:
    """True where a text that ends at this offset ends within a number (as another number) or a string value."""
    for start, token, is_key in _tokens(raw):
        if start < offset < start + len(token):
            if token.startswith('"'):
                return inside == "string" and not is_key and offset > start + 1
            return inside == "number" and _is_other_number(token, offset - start)
    return False


def pieces(raw: str, size: int = PIECE) -> list[str]:
    """Splits the text as a stream does, with a border inside every number and string value that can be cut."""
    # One border in a number and no other: a cut there leaves the same number however long the text before it is.
    numbers = ((at, token) for at, token, _ in _tokens(raw) if not token.startswith('"'))
    within = {offset for at, token in numbers for offset in range(at + 1, at + len(token))}
    borders = {*range(size, len(raw), size)} - within
    borders |= {*cut_points(raw, "number"), *cut_points(raw, "string")}
    ordered = [0, *sorted(borders), len(raw)]
    return [raw[start:end] for start, end in pairwise(ordered) if start < end]


def partial_object(raw: str) -> dict[str, Any]:
    """What a lenient reader makes of a cut JSON object: open strings and brackets closed, dangling keys left out."""
    text = raw
    while text:
        try:
            value = json.loads(_closed(text))
        except RecursionError:
            return {}
        except ValueError:
            text = text[:-1]
            continue
        return value if isinstance(value, dict) else {}
    return {}


def _tokens(raw: str) -> Iterator[tuple[int, str, bool]]:
    for found in _TOKEN.finditer(raw):
        is_key = found.group(1) is not None
        token = found.group(0)
        yield found.start(), token[: -len(found.group(1))] if is_key else token, is_key


def _number_cut(token: str) -> int | None:
    half = len(token) / 2
    fits = [end for end in range(1, len(token)) if _is_other_number(token, end)]
    return min(fits, key=lambda end: (abs(end - half), end), default=None)


def _is_other_number(token: str, end: int) -> bool:
    return bool(_NUMBER.fullmatch(token, 0, end)) and float(token[:end]) != float(token)


def _string_cut(token: str) -> int | None:
    inner = len(token) - 2
    middle = 1 + inner // 2
    # Never inside an escape: a stream of a provider does not split one, and a reader would fail for another reason.
    while middle > 1 and _ESCAPE_TAIL.search(token, 0, middle):
        middle -= 1
    return middle if 1 < middle < len(token) - 1 else None


def _closed(text: str) -> str:
    closers: list[str] = []
    in_string = escaped = False
    for char in text:
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char in "{[":
            closers.append("}" if char == "{" else "]")
        elif char in "}]" and closers:
            closers.pop()
    quote = '"' if in_string else ""
    return text + quote + "".join(reversed(closers))
