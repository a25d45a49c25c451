"""Finds what must never be in a trace: keys, tokens, cookies, e-mail addresses, phone and card numbers.

Only shapes that say what they are count. A number of ten digits may be an order, a name that begins with
`credit_card_` is an identifier; business identifiers have to survive, or a recorded run could not be replayed.
Addresses and numbers that are reserved for examples are nobody's: RFC 2606 and 6761 domains, 555-0100 to 555-0199.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from traces.providers.turn import Turn
from traces.trace import Exchange, Trace

SECRET_HEADERS = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "cookie",
        "set-cookie",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "x-auth-token",
        "x-amz-security-token",
        "openai-organization",
        "openai-project",
        "anthropic-organization-id",
    }
)
_SECRET_FIELDS = frozenset(
    {
        "accesstoken",
        "apikey",
        "authtoken",
        "authorization",
        "clientsecret",
        "cookie",
        "cvc",
        "cvv",
        "idtoken",
        "passwd",
        "password",
        "privatekey",
        "refreshtoken",
        "secret",
        "secretkey",
        "sessiontoken",
        "setcookie",
        "xapikey",
    }
)
_KEY = re.compile(
    r"\bsk-[A-Za-z0-9_-]{16,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bgithub_pat_[A-Za-z0-9_]{20,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\bAIza[A-Za-z0-9_-]{30,}"
    r"|\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"
)
_BEARER = re.compile(r"(?<=\bBearer )[A-Za-z0-9._~+/=-]{8,}|(?<=\bBasic )[A-Za-z0-9+/]{12,}={0,2}")
_QUERY = re.compile(
    r"(?<=[?&])(?:access_token|api_key|apikey|auth|key|password|secret|sig|signature|token|x-amz-signature)="
    r"([^&#\s\"'\\]{4,})",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(?<=://)[^\s/@:\"'\\]+:([^\s/@\"'\\]+)(?=@)")
_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]+@[A-Za-z0-9](?:[A-Za-z0-9-]*\.)+[A-Za-z]{2,}(?![A-Za-z0-9-])"
)
_RESERVED_DOMAIN = re.compile(
    r"(?:.*\.)?(?:example\.(?:com|net|org)|[^.]+\.(?:test|example|invalid|localhost))", re.I
)
_PHONE = re.compile(
    r"(?<![\w.+-])(?:\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,4}(?:[ .-]?\d{2,4}){2,4}"
    r"|\(\d{3}\) ?\d{3}[ .-]\d{4}"
    r"|\d{3}[.-]\d{3}[.-]\d{4})(?![\w-]|\.\d)"
)
_FICTIONAL_PHONE = re.compile(r"555\D?01\d\d$")
_CARD = re.compile(r"(?<![\w.#-])[2-6]\d{3}(?:[ -]?\d){9,15}(?![\w-]|\.\d)")
ISSUERS = re.compile(r"4|5[1-5]|2[2-7]|3[47]|3(?:0[0-5]|[68])|6(?:011|4[4-9]|5)|35")


@dataclass(frozen=True, slots=True)
class Secret:
    """One find: its kind (`key`, `header`, `field`, `query`, `email`, `phone`, `card`), where it is, its text.

    `place` names the exchange and the way into it; show the place, never the text.
    """

    kind: str
    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place} holds {'an' if self.kind == 'email' else 'a'} {_WORDS[self.kind]}"


_WORDS = {
    "key": "key or token",
    "header": "header with credentials",
    "field": "field with credentials",
    "query": "token in an address",
    "email": "e-mail address",
    "phone": "phone number",
    "card": "card number",
}
Replace = Callable[[str, str], str]
"""Gets the kind and the text of a secret, gives what stands in its place (a text of its own, or the same)."""


_PSEUDONYM = re.compile(r"masked-[0-9a-f]{16}")


def is_pseudonym(text: str) -> bool:
    """True for what the mask puts in the place of keys and credentials."""
    return _PSEUDONYM.fullmatch(text) is not None


def passes_luhn(digits: str) -> bool:
    """The check digit rule of ISO/IEC 7812-1."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (2 if place % 2 else 1)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


def replace_in_text(text: str, replace: Replace) -> str:
    """The text with each secret in it replaced."""
    if "@" in text:
        text = _USERINFO.sub(_group(replace, "query"), text)
        text = _EMAIL.sub(lambda m: replace("email", m[0]) if _real_email(m[0]) else m[0], text)
    text = _KEY.sub(lambda m: replace("key", m[0]), text)
    text = _BEARER.sub(lambda m: replace("key", m[0]), text)
    if "=" in text:
        text = _QUERY.sub(_group(replace, "query"), text)
    text = _CARD.sub(lambda m: replace("card", m[0]) if _real_card(m[0]) else m[0], text)
    return _PHONE.sub(lambda m: replace("phone", m[0]) if _real_phone(m[0]) else m[0], text)


def _group(replace: Replace, kind: str) -> Callable[[re.Match[str]], str]:
    def whole(found: re.Match[str]) -> str:
        before = found[0][: found.start(1) - found.start()]
        return before + replace(kind, found[1])

    return whole


def _real_email(text: str) -> bool:
    return _RESERVED_DOMAIN.fullmatch(text.rpartition("@")[2]) is None


def _real_card(text: str) -> bool:
    digits = re.sub(r"\D", "", text)
    return 13 <= len(digits) <= 19 and ISSUERS.match(digits) is not None and passes_luhn(digits)


def _real_phone(text: str) -> bool:
    digits = re.sub(r"\D", "", text)
    return 9 <= len(digits) <= 15 and _FICTIONAL_PHONE.search(text) is None


def replace_in(value: Any, replace: Replace, *, name: str | None = None) -> Any:
    """A JSON value with each secret in it replaced, also within texts that are JSON themselves.

    `name`: the field that holds the value; some fields are secret whatever is in them.
    """
    if isinstance(value, dict):
        return {
            key if _clean(key) else replace_in_text(key, replace): replace_in(item, replace, name=key)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [replace_in(item, replace, name=name) for item in value]
    if isinstance(value, str):
        if value and name is not None and _is_secret_field(name):
            return replace("field", value)
        return value if _clean(value) else _replace_nested(value, replace)
    if isinstance(value, int) and not isinstance(value, bool) and _real_card(str(value)):
        return int(re.sub(r"\D", "", replace("card", str(value))))
    return value


@lru_cache(maxsize=16384)
def _clean(text: str) -> bool:
    """True where a text holds no secret. A conversation is sent again with every turn, so most texts come often."""
    found: list[str] = []

    def note(_kind: str, secret: str) -> str:
        found.append(secret)
        return secret

    _replace_nested(text, note)
    return not found


def _replace_nested(text: str, replace: Replace) -> str:
    stripped = text.lstrip()
    if stripped[:1] in ("{", "["):
        try:
            inner = json.loads(text)
        except ValueError:
            return replace_in_text(text, replace)
        masked = replace_in(inner, replace)
        if masked == inner:
            return text
        blanks = ": " in text or ", " in text
        return json.dumps(masked, ensure_ascii=False, separators=None if blanks else (",", ":"))
    return replace_in_text(text, replace)


@lru_cache(maxsize=4096)
def _is_secret_field(name: str) -> bool:
    return re.sub(r"[^a-z]", "", name.lower()) in _SECRET_FIELDS


def replace_in_headers(headers: dict[str, Any], replace: Replace) -> dict[str, Any]:
    """Headers with those that carry credentials replaced as a whole, others looked through."""
    return {
        name: replace("header", str(value))
        if name.lower() in SECRET_HEADERS and value
        else replace_in(value, replace, name=name)
        for name, value in headers.items()
    }


def find_secrets(trace: Trace) -> list[Secret]:
    """Every secret in a trace, in the order of the file; a trace that holds none may be shared."""
    found: list[Secret] = []
    for place, value in _places(trace):

        def note(kind: str, text: str, place: str = place) -> str:
            if not is_pseudonym(text):
                found.append(Secret(kind, place, text))
            return text

        if place.endswith("headers") and isinstance(value, dict):
            replace_in_headers(value, note)
        else:
            replace_in(value, note)
    return found


def _places(trace: Trace) -> Iterator[tuple[str, Any]]:
    yield "the header", [trace.name, trace.tenant, trace.request, trace.provenance, list(trace.tools), trace.extra]
    for exchange in trace.exchanges:
        at = f"exchange {exchange.n}"
        for side, message in (("request", exchange.request), ("response", exchange.response)):
            yield f"{at} {side} headers", message.get("headers")
            yield f"{at} {side}", {key: value for key, value in message.items() if key != "headers"}
        yield f"{at} extra", exchange.extra
        turn = streamed_turn(exchange)
        if turn is not None:
            # A stream may hold a secret in pieces, none of which looks like one.
            yield f"{at} stream", [turn.text, *(call.raw for call in turn.tool_calls)]


def streamed_turn(exchange: Exchange) -> Turn | None:
    """What a streamed model exchange said, `None` for any other exchange."""
    streams = exchange.channel == "model" and exchange.streamed and exchange.provider is not None
    return exchange.turn() if streams else None
