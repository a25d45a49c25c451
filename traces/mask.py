"""Replaces secrets and personal data in traces by pseudonyms that are nobody's.

The same secret gets the same pseudonym, under one key, wherever it stands; without the key nobody can try whether a
guessed address is behind a pseudonym. Pseudonyms use what is reserved for examples (example.com, 555-01xx) or cannot
be real (card numbers that fail their check digit), so that a masked trace passes `find_secrets`.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from secrets import token_bytes
from typing import TYPE_CHECKING, Any

from traces.providers.sse import events
from traces.providers.turn import ToolCall, raw_call
from traces.secrets import (
    Secret,
    find_secrets,
    is_pseudonym,
    passes_luhn,
    replace_in,
    replace_in_headers,
    replace_in_text,
    streamed_turn,
)
from traces.trace import Exchange, Trace

if TYPE_CHECKING:
    from faker import Faker

__all__ = ["Mask", "Secret", "find_secrets", "mask_trace"]


@cache
def _process_key() -> bytes:
    return token_bytes(32)


@cache
def _faker() -> Faker:
    # Faker is slow to import and only needed where something has to be replaced.
    from faker import Faker

    return Faker("en_US")


class Mask:
    """Gives pseudonyms. `key`: who shares it gets the same pseudonyms; without one, a random key of this process."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key if key is not None else _process_key()
        self._given: dict[tuple[str, str], str] = {}

    def __call__(self, kind: str, text: str) -> str:
        """The pseudonym of a secret of this kind."""
        pseudonym = self._given.get((kind, text))
        if pseudonym is None:
            pseudonym = self._given[(kind, text)] = self._invent(kind, text)
        return pseudonym

    def _invent(self, kind: str, text: str) -> str:
        if is_pseudonym(text):
            return text
        meant = re.sub(r"\D", "", text) if kind in ("phone", "card") else text.casefold() if kind == "email" else text
        sign = hmac.new(self._key, f"{kind}\0{meant}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
        if kind == "email":
            fake = _faker()
            fake.seed_instance(int(sign, 16))
            # Faker alone has too few names for two addresses never to meet.
            return f"{fake.user_name()}.{sign[:8]}@example.com"
        if kind == "phone":
            number = int(sign, 16)
            area = f"{2 + number % 8}{number // 8 % 10}{number // 80 % 10}"
            return f"+1-{area}-555-01{number // 800 % 100:02d}"
        if kind == "card":
            return _card(text, sign)
        return f"masked-{sign[:16]}"

    def exchange(self, exchange: Exchange) -> Exchange:
        """The exchange with every secret replaced; a stream that held one in pieces is written anew."""
        return replace(
            exchange,
            request=self._message(exchange.request),
            response=self._response(exchange),
            extra=replace_in(exchange.extra, self),
        )

    def _message(self, message: dict[str, Any]) -> dict[str, Any]:
        return {
            key: replace_in_headers(value, self)
            if key == "headers" and isinstance(value, dict)
            else replace_in(value, self, name=key)
            for key, value in message.items()
        }

    def _response(self, exchange: Exchange) -> dict[str, Any]:
        turn = streamed_turn(exchange)
        if turn is not None and exchange.provider is not None:
            text = replace_in_text(turn.text, self)
            calls = tuple(self._call(call) for call in turn.tool_calls)
            if text != turn.text or [c.raw for c in calls] != [c.raw for c in turn.tool_calls]:
                said = replace(turn, text=text, tool_calls=calls)
                return {**exchange.response, "events": list(_restreamed(exchange, said))}
        return self._message(exchange.response)

    def _call(self, call: ToolCall) -> ToolCall:
        raw = replace_in(call.raw, self)
        return call if raw == call.raw else raw_call(call.id, call.name, raw)


def _card(text: str, sign: str) -> str:
    """A number of the same layout in the range of documented test cards, whose check digit is wrong."""
    length = len(re.sub(r"\D", "", text))
    digits = ("400000" + str(int(sign, 16)))[: length - 1]
    last = next(digit for digit in "0123456789" if not passes_luhn(digits + digit))
    fresh = iter(digits + last)
    return re.sub(r"\d", lambda _: next(fresh), text)


def _restreamed(exchange: Exchange, said: Any) -> Iterator[dict[str, Any]]:
    """The events of a turn, spread over the time that the recorded stream took."""
    provider = exchange.provider
    recorded = exchange.response["events"]
    if provider is None:
        return
    first: dict[str, Any] = next((entry["data"] for entry in recorded if isinstance(entry.get("data"), dict)), {})
    head = first.get("message") or first
    usage = any(isinstance(entry.get("data"), dict) and entry["data"].get("usage") for entry in recorded)
    body = b"".join(
        provider.write_stream(said, str(head.get("model", "")), str(head.get("id", "")), include_usage=usage)
    )
    fresh = events(body)
    times = [float(entry.get("t", 0.0)) for entry in recorded] or [0.0]
    for n, event in enumerate(fresh):
        t = times[n * (len(times) - 1) // max(len(fresh) - 1, 1)]
        data = event.json()
        yield {"t": t, "event": event.name, "data": event.data if data is None else data}


def mask_trace(trace: Trace, *, key: bytes | None = None) -> Trace:
    """The trace without secrets and personal data, marked as masked. Masking twice changes nothing more."""
    mask = Mask(key)
    return replace(
        trace,
        tenant=replace_in_text(trace.tenant, mask),
        request=replace_in_text(trace.request, mask),
        provenance=replace_in(trace.provenance, mask),
        tools=tuple(replace_in(list(trace.tools), mask)),
        extra=replace_in(trace.extra, mask),
        exchanges=tuple(mask.exchange(exchange) for exchange in trace.exchanges),
        masked=True,
    )
