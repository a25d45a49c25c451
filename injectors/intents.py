"""Which requests mean the same: logical calls and their attempts, told from the wire alone.

Tool calls carry nothing that an attempt could be told by, and what an agent does send (keys, intent headers) is a
claim under test. A logical call is therefore a tool, what is meant (the declared intent fields, else the normalised
arguments), and an ordinal among equal ones: a new key takes the next ordinal, up to as many as the model has asked
for so far, and stays at the last beyond that. Two equal gifts are two calls; a third effect is a duplicate.

Pure: no time, no input or output.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from injectors.site import Place

SETTLED = frozenset({"ok", "deduplicated"})
"""Outcomes after which a further call without a key is no repeat."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One tool call in a message of the model: tool, digest of what is meant, arguments."""

    tool: str
    meaning: str
    args: Any = None


@dataclass(slots=True)
class Call:
    """One logical call. `turn` is the number of the model call that asked for it, `None` where none did."""

    tool: str
    number: int
    group: str
    group_number: int
    turn: int | None = None
    args: Any = None
    attempts: int = 0
    under_way: int = 0
    settled: bool = False
    keys: set[str] = field(default_factory=set)

    @property
    def place(self) -> Place:
        """Where its latest attempt stands."""
        return Place(
            channel="tool",
            tool=self.tool,
            call=self.number,
            attempt=self.attempts,
            group=self.group,
            group_call=self.group_number,
        )


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: its logical call, its place, and the call's ordinal among equal calls (from 1)."""

    call: Call
    place: Place
    ordinal: int


class ToolCalls:
    """The logical tool calls of one run. `groups` maps tools to their resource groups.

    `wanted` says, where it is known, how many equal calls (tool, meaning) the task has: a model that asks more often
    asks again for what failed, which is another attempt and no further call.
    """

    def __init__(self, groups: Mapping[str, str], wanted: Mapping[tuple[str, str], int] | None = None) -> None:
        self._groups = groups
        self._wanted = wanted or {}
        self._equal: defaultdict[tuple[str, str], list[Call]] = defaultdict(list)
        self._numbers: Counter[str] = Counter()
        self._group_numbers: Counter[str] = Counter()

    def asked(self, turn: int, asks: Iterable[Ask]) -> None:
        """Take note of what a whole message of the model asks for, in order; `turn` is the model call's number."""
        for ask in asks:
            equal = self._equal[ask.tool, ask.meaning]
            most = self._wanted.get((ask.tool, ask.meaning))
            if most is None or len(equal) < most:
                equal.append(self._new(ask.tool, turn=turn, args=ask.args))

    def attempt(self, tool: str, meaning: str, *, key: str | None = None, args: Any = None) -> Attempt:
        """The attempt that a request is; it is under way until `ended`."""
        equal = self._equal[tool, meaning]
        if not equal and (adopted := self._enriched(tool, args)) is not None:
            equal.append(adopted)
        call = self._choose(equal, key)
        if call is None:
            call = self._new(tool, turn=None, args=args)
            equal.append(call)
        call.attempts += 1
        call.under_way += 1
        if key is not None:
            call.keys.add(key)
        return Attempt(call, call.place, equal.index(call) + 1)

    def ended(self, attempt: Attempt, outcome: str) -> None:
        """Take note of how an attempt ended, as far as the agent could see it."""
        attempt.call.under_way -= 1
        attempt.call.settled = attempt.call.settled or outcome in SETTLED

    @staticmethod
    def _choose(equal: Sequence[Call], key: str | None) -> Call | None:
        for call in equal:
            if key is not None and key in call.keys:
                return call
        begun = [call for call in equal if call.attempts]
        waiting = next((call for call in equal if not call.attempts), None)
        if not begun or waiting is None:
            return waiting or (begun[-1] if begun else None)
        # Without a key a repeat is told from the next equal call by how the last one went.
        failed = key is None and not begun[-1].settled and not begun[-1].under_way
        return begun[-1] if failed else waiting

    def _enriched(self, tool: str, args: Any) -> Call | None:
        """The earliest call the model asked for and nobody has begun whose arguments are all in these: agents add
        fields of their own."""
        if not isinstance(args, Mapping):
            return None
        open_calls = [
            call
            for (name, _), calls in self._equal.items()
            for call in calls
            if name == tool and not call.attempts and isinstance(call.args, Mapping) and call.args
        ]
        fitting = [call for call in open_calls if all(args.get(name) == value for name, value in call.args.items())]
        return min(fitting, key=lambda call: call.number, default=None)

    def _new(self, tool: str, *, turn: int | None, args: Any) -> Call:
        group = self._groups.get(tool, "")
        self._numbers[tool] += 1
        if group:
            self._group_numbers[group] += 1
        return Call(tool, self._numbers[tool], group, self._group_numbers[group], turn, args)


class ModelCalls:
    """The logical model calls of one run: equal bodies are attempts of one call."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._attempts: Counter[int] = Counter()
        self.heard: set[int] = set()
        """Calls whose answer has reached the agent whole; hearing it again asks for nothing new."""

    def attempt(self, body_digest: str) -> Place:
        """The place of a request with this body."""
        number = self._numbers.setdefault(body_digest, len(self._numbers) + 1)
        self._attempts[number] += 1
        return Place(channel="model", call=number, attempt=self._attempts[number])

    @property
    def latest(self) -> int | None:
        """The number of the newest model call, `None` before the first."""
        return len(self._numbers) or None
