"""Where a fault strikes: an execution index, never an arrival order or a time.

A `Place` is what happens: attempt `attempt` of the `call`-th logical call of a tool (and so of its resource group),
or of the model, all counted from 1. A `Site` is what a scenario names: the same index, or a range of it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Channel = Literal["model", "tool"]

_FIELDS = ("tool", "group", "model", "call", "attempt")


class SiteError(ValueError):
    """An `at` that names no site; `messages` has one sentence per mistake."""

    def __init__(self, messages: list[str]) -> None:
        self.messages = messages
        super().__init__("; ".join(messages))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One attempt of one logical call of a run."""

    channel: Channel
    call: int
    attempt: int
    tool: str = ""
    group: str = ""
    group_call: int = 0

    def __str__(self) -> str:
        return f"{self.tool or self.channel}#{self.call}/{self.attempt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The first attempt that a fault strikes: of a tool, of a resource group, or of the model.

    `call` is the number of the logical call, `None` for every one. Exactly one of `tool`, `group`, `model` is set.
    """

    tool: str = ""
    group: str = ""
    model: bool = False
    call: int | None = 1
    attempt: int = 1

    @property
    def channel(self) -> Channel:
        """Whether this is a place among model calls or among tool calls."""
        return "model" if self.model else "tool"

    def covers(self, place: Place, times: int | None = 1) -> bool:
        """Whether the place is in the range that starts here and is `times` attempts long (`None`: endless)."""
        if self.model:
            number = place.call if place.channel == "model" else 0
        elif self.tool:
            number = place.call if place.tool == self.tool else 0
        else:
            number = place.group_call if place.group == self.group else 0
        if number == 0 or self.call not in (None, number):
            return False
        return self.attempt <= place.attempt and (times is None or place.attempt < self.attempt + times)

    def to_data(self) -> dict[str, Any]:
        """The site as a scenario file writes it."""
        head: dict[str, Any] = {"model": True} if self.model else {}
        head |= {name: value for name in ("tool", "group") if (value := getattr(self, name))}
        return head | {"call": "all" if self.call is None else self.call, "attempt": self.attempt}

    def __str__(self) -> str:
        name = "model" if self.model else self.tool or f"group {self.group}"
        return f"{name}#{'*' if self.call is None else self.call}/{self.attempt}"


def site_from(at: Any) -> Site:
    """Read the `at` of a fault: `{tool: charge, call: 1, attempt: 1}`, `{group: payments}`, `{model: true}`.

    `{model: 2}` is short for the second call of the model; `call` may be `all`. Raises `SiteError` with all mistakes.
    """
    if not isinstance(at, Mapping):
        raise SiteError([f"`at` has to name a site such as {{tool: charge, call: 1}}, not {at!r}"])
    faults: list[str] = []
    for key in at:
        if key not in _FIELDS:
            near = difflib.get_close_matches(str(key), _FIELDS, n=1)
            meant = f", did you mean `{near[0]}`?" if near else ""
            faults.append(f"`at` has no `{key}`{meant}; it knows {', '.join(_FIELDS)}")
    named = [key for key in ("tool", "group", "model") if at.get(key) not in (None, False)]
    if len(named) != 1:
        faults.append(
            "`at` has to name exactly one of tool, group and model" + (f", not {' and '.join(named)}" * bool(named))
        )
    names = {key: at.get(key) or "" for key in ("tool", "group")}
    for key, name in names.items():
        if not isinstance(name, str):
            faults.append(f"`at: {{{key}}}` has to be a name, not {name!r}")
    call, attempt, model = at.get("call", 1), at.get("attempt", 1), at.get("model")
    if "model" in named and not isinstance(model, bool):
        if "call" in at:
            faults.append("`at` gives the number of the model call twice: write {model: true, call: N} or {model: N}")
        call = model
    if call != "all" and not _is_ordinal(call):
        faults.append(f"the call of a site is a number from 1 on, or `all`, not {call!r}")
    if not _is_ordinal(attempt):
        faults.append(f"the attempt of a site is a number from 1 on, not {attempt!r}")
    if faults:
        raise SiteError(faults)
    return Site(**names, model="model" in named, call=None if call == "all" else call, attempt=attempt)


def _is_ordinal(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
