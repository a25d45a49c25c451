"""The few JSONPath forms that a registry may use: `$.a`, `$.a.b`, `$.items[0].sku`, `$.items[*].sku`.

A registry names business fields this way (contract section 5: `key`, `intent`, `of`). Full JSONPath would allow
filters and recursion, with which two readers could come to different digests for one call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\[(\d+)\]|\[(\*)\]|\['([^']+)'\]|\[\"([^\"]+)\"\]")


class Missing:
    """The type of `MISSING`: the path leads nowhere, which is not the same as leading to null."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


@dataclass(frozen=True, slots=True)
class Path:
    """A parsed path; `steps` are field names, list positions, or `None` for "every item"."""

    text: str
    steps: tuple[str | int | None, ...]

    @property
    def name(self) -> str:
        """The path without its leading `$.`: how the field is called in messages and digests."""
        return self.text.removeprefix("$").removeprefix(".")

    @property
    def field(self) -> str | None:
        """The argument's name where the path is one plain step, else `None`."""
        only = self.steps[0] if len(self.steps) == 1 else None
        return only if isinstance(only, str) else None

    def find(self, value: Any) -> Any:
        """The value at this path, a list where the path has `[*]`, or `MISSING`.

        Items of a `[*]` that lack the rest of the path are left out; if none has it, the path is missing.
        """
        found = list(_walk(value, self.steps))
        if None in self.steps:
            return found if found else MISSING
        return found[0] if found else MISSING


def parse_path(text: str) -> Path:
    """Reads a path; raises `ValueError` with a sentence that says what would be right."""
    if not text.startswith("$"):
        raise ValueError(f"a path starts with `$`, such as `$.order_id`, not {text!r}")
    steps: list[str | int | None] = []
    at = 1
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            raise ValueError(f"cannot read {text[at:]!r} in path {text!r}; use forms such as `$.a.b[0]` or `$.a[*]`")
        name, index, every, quoted, doubly_quoted = step.groups()
        steps.append(None if every else int(index) if index is not None else name or quoted or doubly_quoted)
        at = step.end()
    if not steps:
        raise ValueError("the path `$` names the whole value; name a field, such as `$.order_id`")
    return Path(text, tuple(steps))


def _walk(value: Any, steps: tuple[str | int | None, ...]) -> Iterator[Any]:
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    if step is None:
        if isinstance(value, list):
            for item in value:
                yield from _walk(item, rest)
    elif isinstance(step, str):
        if isinstance(value, dict) and step in value:
            yield from _walk(value[step], rest)
    elif isinstance(value, list) and step < len(value):
        yield from _walk(value[step], rest)
