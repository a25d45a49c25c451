"""A trace as the stand-ins need it: what the model said, turn by turn, and what each tool answered to which call."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.standins.conversation import RecordedTurn, failures, is_failure
from traces.digest import digest
from traces.providers.turn import Message
from traces.registry import Registry, registry_from
from traces.trace import Exchange, Trace, read_trace

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
        calls = self.answers.get((tool, args_digest))
        if not calls:
            return None
        attempts = calls[min(max(call, 1), len(calls)) - 1]
        return attempts[min(max(attempt, 1), len(attempts)) - 1]


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
    turns = tuple(_turns(trace))
    asked: Counter[tuple[str, str]] = Counter()
    for turn in turns:
        for call in turn.turn.tool_calls:
            if call.name in registry.tools:
                asked[call.name, registry.tools[call.name].args_digest(call.arguments)] += 1
    found: dict[tuple[str, str], list[Answer]] = {}
    for exchange in trace.tool_exchanges:
        tool = registry.tools.get(exchange.tool)
        if tool is not None:
            key = (tool.name, tool.args_digest(exchange.arguments))
            found.setdefault(key, []).append(Answer(exchange.status, exchange.body))
    answers = {key: _logical_calls(given, asked[key]) for key, given in found.items()}
    return Recording(turns, registry, answers)


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


def _turns(trace: Trace) -> list[RecordedTurn]:
    """What the model said, each turn once: of a conversation that was sent again, the last whole answer counts."""
    said: list[tuple[Exchange, tuple[Message, ...]]] = []
    for exchange in trace.model_exchanges:
        provider = exchange.provider
        if provider is None or not exchange.ok or exchange.turn().stop_reason is None:
            continue
        messages = provider.read_request(exchange.request).messages
        if said and _assistants(said[-1][1]) == _assistants(messages):
            said.pop()
        said.append((exchange, messages))
    by_call = _failed_by_arguments(trace)
    turns: list[RecordedTurn] = []
    for n, (exchange, _) in enumerate(said):
        turn = exchange.turn()
        after = said[n + 1][1] if n + 1 < len(said) else ()
        start = next((at for at in reversed(range(len(after))) if after[at].role == "assistant"), None)
        if start is not None and len(after[start].tool_calls) == len(turn.tool_calls):
            failed = failures(after[start], after[start + 1 :])
        else:
            failed = tuple(by_call.get((call.name, digest(call.arguments)), False) for call in turn.tool_calls)
        turns.append(RecordedTurn(turn, failed))
    return turns


def _assistants(messages: Sequence[Message]) -> int:
    return sum(message.role == "assistant" for message in messages)


def _failed_by_arguments(trace: Trace) -> dict[tuple[str, str], bool]:
    """Whether a tool's last answer to these arguments was a failure: for calls whose result the model never saw."""
    return {
        (exchange.tool, digest(exchange.arguments)): not exchange.ok
        or (isinstance(exchange.body, str) and is_failure(exchange.body))
        for exchange in trace.tool_exchanges
    }
