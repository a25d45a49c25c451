"""What the model of a recording says next: decided from the conversation alone, without memory.

The messages of the assistant are laid over the recorded turns in order. To read them rightly, the walk says at every
point what it would have answered there, so that a call that was asked again after a failure is not taken for the next
recorded turn that happens to look the same (two equal gifts). Ids do not count: agents write their own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from traces.digest import canonical
from traces.json_bodies import shallow
from traces.providers.turn import Message, ToolCall, Turn

POLICIES = ("continue", "repair", "give_up")
"""How a model takes it when a call fails that did not fail in the recording: it goes on as recorded, asks for the
same call again, or stops and says so."""
REPAIRS = 3
"""How often a failed call is asked for again under `repair`."""
FINISHED = "There is nothing left for me to do."

_CallKey = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A turn of the recording; `failed` says of each of its calls whether its result was a failure there too."""

    turn: Turn
    failed: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """What to say. `place` names the decision (`turn 3`, `again 3.0 try 2`, `end`) and is part of the ids given to
    its calls, so that asking again never repeats an id."""

    turn: Turn
    place: str


def next_reply(turns: Sequence[RecordedTurn], messages: Sequence[Message], policy: str) -> Reply:
    """The reply to a conversation: the recorded turn after the last one that is found in it, unless a call failed
    that did not fail in the recording; then the policy decides."""
    walk = _Walk(turns, policy)
    for said, results in _turns_of(messages):
        walk.hear(said, results)
    return walk.reply()


def is_failure(content: str, *, is_error: bool = False) -> bool:
    """True where a tool result reports a failure: flagged, an object with an `error`, or a text that begins so."""
    if is_error or content.lstrip().startswith("Error"):
        return True
    if not content.lstrip().startswith("{"):
        return False
    try:
        value = shallow(json.loads, content)
    except ValueError:
        return False
    return isinstance(value, dict) and bool(value.get("error"))


def failures(said: Message, following: Sequence[Message]) -> tuple[bool, ...]:
    """For each call of an assistant message whether its result, in the messages up to the next one of the assistant,
    is a failure. Paired by id, and by place where ids do not fit; a call without a result did not fail."""
    results = [result for message in following for result in message.tool_results]
    verdicts: list[bool] = []
    for place, call in enumerate(said.tool_calls):
        found = next((n for n, result in enumerate(results) if result.id == call.id), None)
        if found is not None:
            result = results.pop(found)
            verdicts.append(is_failure(result.content, is_error=result.is_error))
        elif len(results) == len(said.tool_calls) - place:
            result = results.pop(0)
            verdicts.append(is_failure(result.content, is_error=result.is_error))
        else:
            verdicts.append(False)
    return tuple(verdicts)


def _turns_of(messages: Sequence[Message]) -> Iterator[tuple[Message, tuple[bool, ...]]]:
    """Each assistant message and which of its calls failed."""
    starts = [n for n, message in enumerate(messages) if message.role == "assistant"]
    for start, end in pairwise([*starts, len(messages)]):
        yield messages[start], failures(messages[start], messages[start + 1 : end])


@dataclass(frozen=True, slots=True)
class _Place:
    """One call of the recording: turn and place in the turn, both from 0."""

    turn: int
    call: int


class _Walk:
    """Where in the recording a conversation stands, after each message of the assistant."""

    def __init__(self, turns: Sequence[RecordedTurn], policy: str) -> None:
        self.turns = turns
        self.policy = policy
        self.position = 0
        """The recorded turn to be said next."""
        self.unsaid: list[_Place] = []
        """Calls of the turn before that never came out whole, because the message was cut."""
        self.failed: list[_Place] = []
        """Calls whose last attempt failed, other than in the recording."""
        self.tries: Counter[_Place] = Counter()
        self.stumbles: Counter[int] = Counter()
        """How often the turn came out as something that the recording does not know, and failed."""

    def hear(self, said: Message, failed: tuple[bool, ...]) -> None:
        """Take in one message of the assistant and the fate of its calls."""
        again = self._again()
        if again and _keys(said.tool_calls) == _keys([self._call(place) for place in again]):
            self._judge(self._in_order_said(said, again), failed)
            return
        found = next((n for n in range(self.position, len(self.turns)) if _says(said, self.turns[n].turn)), None)
        if found is not None:
            self.position = found + 1
            self.unsaid = []
            places = [_Place(found, n) for n in range(len(self.turns[found].turn.tool_calls))]
            self._judge(self._in_order_said(said, places), failed)
        elif said.tool_calls:
            self._hear_other(said, failed)
        # A text that the recording does not know (the rest of a cut message, a note) changes nothing.

    def reply(self) -> Reply:
        """What the model says now."""
        again = self._again()
        if again:
            calls = tuple(replace(self._call(place), id="") for place in again)
            names = "+".join(f"{place.turn}.{place.call} try {self.tries[place] + 1}" for place in again)
            return Reply(Turn(tool_calls=calls, stop_reason="tool_use"), f"again {names}")
        if self._stopped():
            return Reply(Turn(text=self._regret()), "stop")
        if self.position < len(self.turns):
            stumbles = self.stumbles[self.position]
            place = f"turn {self.position}" + (f" try {stumbles + 1}" if stumbles else "")
            return Reply(self.turns[self.position].turn, place)
        return Reply(Turn(text=FINISHED), "end")

    def _again(self) -> list[_Place]:
        """The calls to be asked for again now, in their order in the recording."""
        if self.unsaid:
            return self.unsaid
        if self.failed and self.policy == "repair" and not self._stopped():
            return self.failed
        return []

    def _stopped(self) -> bool:
        if self.policy == "give_up":
            return bool(self.failed) or self.stumbles[self.position] > 0
        if self.policy == "repair":
            given_up = any(self.tries[place] >= REPAIRS for place in self.failed)
            return given_up or self.stumbles[self.position] > REPAIRS
        return False

    def _judge(self, places: Sequence[_Place], failed: Sequence[bool]) -> None:
        """The calls at these places were made; keep those that failed although the recording has them succeed."""
        for place in places:
            if place in self.failed:
                self.tries[place] += 1
        self.unsaid = [place for place in self.unsaid if place not in places]
        self.failed = [
            place
            for place, did_fail in zip(places, failed, strict=True)
            if did_fail and not self._failed_in_recording(place)
        ]
        self.failed.sort(key=lambda place: (place.turn, place.call))

    def _hear_other(self, said: Message, failed: tuple[bool, ...]) -> None:
        """Calls that the recording does not know here: the message was changed on its way, or cut.

        If they all went well and are the tools of the next turn, from its first on, the model takes its turn for said
        (it cannot know better), and asks for what was cut off. Else the turn is still to be said.
        """
        recorded = self.turns[self.position].turn.tool_calls if self.position < len(self.turns) else ()
        names = [call.name for call in said.tool_calls]
        if any(failed):
            self.stumbles[self.position] += 1
        elif names == [call.name for call in recorded[: len(names)]]:
            self.unsaid = [_Place(self.position, n) for n in range(len(names), len(recorded))]
            self.failed = []
            self.position += 1

    def _in_order_said(self, said: Message, places: Sequence[_Place]) -> list[_Place]:
        """The places in the order in which the message holds their calls; agents may reorder parallel calls."""
        left: dict[_CallKey, list[_Place]] = {}
        for place in places:
            left.setdefault(_key(self._call(place)), []).append(place)
        return [left[_key(call)].pop(0) for call in said.tool_calls]

    def _call(self, place: _Place) -> ToolCall:
        return self.turns[place.turn].turn.tool_calls[place.call]

    def _failed_in_recording(self, place: _Place) -> bool:
        failed = self.turns[place.turn].failed
        return place.call < len(failed) and failed[place.call]

    def _regret(self) -> str:
        names = list(dict.fromkeys(self._call(place).name for place in self.failed))
        what = " and ".join(names) if names else "a tool I asked for"
        return f"I have to stop here: {what} failed, so the request is not completed."


def _says(said: Message, turn: Turn) -> bool:
    """True where an assistant message is this recorded turn: by its calls, or by its text where it has none."""
    if said.tool_calls or turn.tool_calls:
        return _keys(said.tool_calls) == _keys(turn.tool_calls)
    return bool(said.text.strip()) and said.text.split() == turn.text.split()


def _keys(calls: Sequence[ToolCall]) -> Counter[_CallKey]:
    return Counter(_key(call) for call in calls)


def _key(call: ToolCall) -> _CallKey:
    """Name and arguments of a call; arguments that are no whole object equal nothing but themselves."""
    value: Any = call.arguments if call.whole else {"cut": call.raw, "": None}
    return call.name, canonical(value)
