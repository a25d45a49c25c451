"""A trace as the stand-ins need it: what the model said, turn by turn, and what each tool answered to which call."""

from __future__ import annotations

import json
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.standins.conversation import RecordedTurn, failures, is_failure
from traces.digest import digest
from traces.providers.turn import Message, Turn
from traces.registry import Registry
from traces.registry_reading import registry_from
from traces.trace import Exchange, Trace, read_trace

_Key = tuple[str, str]
_Said = tuple[Exchange, tuple[Message, ...]]
_RETRYABLE = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answered: the HTTP status and the JSON body."""

    status: int
    body: Any

    @property
    def ok(self) -> bool:
        """True where the answer says that it was done."""
        return self.status < 400

    @property
    def failed(self) -> bool:
        """True where it reports a failure, by its status or in words."""
        return not self.ok or is_failure(self.body if isinstance(self.body, str) else json.dumps(self.body))


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Recording:
    """One trace under one registry. `answers` holds, for each tool and digest of arguments, the logical calls in the
    order recorded, each with the answers to its attempts."""

    turns: tuple[RecordedTurn, ...]
    registry: Registry
    answers: dict[tuple[str, str], tuple[tuple[Answer, ...], ...]] = field(default_factory=dict)

    def answer(self, tool: str, args_digest: str, *, call: int = 1, attempt: int = 1) -> Answer | None:
        """The recorded answer to an attempt of the n-th equal logical call (both from 1); beyond what was recorded
        the last, `None` where these arguments were never sent."""
        attempts = self.calls(tool, args_digest, call)
        return attempts[min(max(attempt, 1), len(attempts)) - 1] if attempts else None

    def calls(self, tool: str, args_digest: str, call: int) -> tuple[Answer, ...]:
        """The answers to all attempts of the n-th equal logical call; beyond what was recorded, of the last."""
        found = self.answers.get((tool, args_digest), ())
        return found[min(max(call, 1), len(found)) - 1] if found else ()


class Recordings:
    """Recordings read once for all runs that hold one now; nothing is kept for runs that are gone."""

    def __init__(self) -> None:
        self._held: weakref.WeakValueDictionary[tuple[str, int, int, str], Recording] = weakref.WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._held)

    def get(self, path: str, registry: dict[str, Any]) -> Recording:
        """The recording of a trace file under a registry; raises what `read_trace` and `registry_from` raise."""
        seen = Path(path).stat()
        name = (path, seen.st_mtime_ns, seen.st_size, digest(registry))
        found = self._held.get(name)
        if found is None:
            found = self._held[name] = recording_of(read_trace(path), registry_from(registry))
        return found


def recording_of(trace: Trace, registry: Registry) -> Recording:
    """The recording that a trace is. Tools that the registry does not know have no answers: they cannot be called."""
    said = _said(trace)
    asked = Counter(key for exchange, _ in said for key in _keys(exchange.turn(), registry))
    found: dict[_Key, list[Answer]] = {}
    for exchange in trace.tool_exchanges:
        tool = registry.tools.get(exchange.tool)
        if tool is not None:
            key = (tool.name, tool.args_digest(exchange.arguments))
            found.setdefault(key, []).append(Answer(exchange.status, exchange.body))
    answers = {key: _logical_calls(given, asked[key]) for key, given in found.items()}
    recording = Recording((), registry, answers)
    return replace(recording, turns=tuple(_turns(said, recording)))


def _keys(turn: Turn, registry: Registry) -> list[_Key]:
    """Tool and digest of arguments of each call of a turn."""
    tools = registry.tools
    return [
        (call.name, tools[call.name].args_digest(call.arguments) if call.name in tools else "")
        for call in turn.tool_calls
    ]


def _logical_calls(answers: Sequence[Answer], asked: int) -> tuple[tuple[Answer, ...], ...]:
    """Groups the answers to equal requests into logical calls.

    More requests than the model asked for are retries of the recorded agent: they follow an answer that invites one.
    """
    spare = len(answers) - asked if asked else 0
    calls: list[list[Answer]] = []
    for before, answer in zip([None, *answers], answers, strict=False):
        if before is not None and spare > 0 and (before.status >= 500 or before.status in _RETRYABLE):
            calls[-1].append(answer)
            spare -= 1
        else:
            calls.append([answer])
    return tuple(tuple(call) for call in calls)


def _said(trace: Trace) -> list[_Said]:
    """The model's messages and what it was asked, each once: of a conversation that was sent again, the last whole
    answer counts."""
    said: list[_Said] = []
    for exchange in trace.model_exchanges:
        provider = exchange.provider
        if provider is None or not exchange.ok or exchange.turn().stop_reason is None:
            continue
        messages = provider.read_request(exchange.request).messages
        if said and _assistants(said[-1][1]) == _assistants(messages):
            said.pop()
        said.append((exchange, messages))
    return said


def _turns(said: Sequence[_Said], recording: Recording) -> Iterator[RecordedTurn]:
    """The turns, with the calls that failed: by what the tool answered, or by what the model was told."""
    so_far: Counter[_Key] = Counter()
    for n, (exchange, _) in enumerate(said):
        turn = exchange.turn()
        told = _told(turn, said[n + 1][1]) if n + 1 < len(said) else ()
        failed: list[bool] = []
        for place, (tool, args_digest) in enumerate(_keys(turn, recording.registry)):
            so_far[tool, args_digest] += 1
            attempts = recording.calls(tool, args_digest, so_far[tool, args_digest])
            answered = bool(attempts) and attempts[-1].failed
            failed.append(answered or (place < len(told) and told[place]))
        if turn.tool_calls or turn.text.strip():  # an empty message could never be found in a conversation
            yield RecordedTurn(turn, tuple(failed))


def _told(turn: Turn, after: Sequence[Message]) -> tuple[bool, ...]:
    """For each call of a turn whether the model was told, in its next request, that it failed."""
    start = next((at for at in reversed(range(len(after))) if after[at].role == "assistant"), None)
    if start is None or len(after[start].tool_calls) != len(turn.tool_calls):
        return ()
    return failures(after[start], after[start + 1 :])


def _assistants(messages: Sequence[Message]) -> int:
    return sum(message.role == "assistant" for message in messages)
