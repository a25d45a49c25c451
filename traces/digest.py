"""Which calls mean the same thing: canonical JSON, normalised arguments, and the digests over them.

`args_digest` is the SHA-256 of the canonical JSON of the normalised arguments, `intent_digest` the same over the
declared intent fields (contract sections 3 and 5).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from traces.paths import MISSING, Path

_SCALARS = (str, int, bool, type(None))


def canonical(value: Any) -> bytes:
    """JSON in one spelling per value: sorted keys, no blanks, UTF-8, and integral floats written as integers.

    Python's JSON reader lets NaN, infinities and lone surrogates through; they keep a spelling of their own here, so
    that a digest never fails on what an agent sent.
    """
    text = json.dumps(_integral(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _integral(value: Any) -> Any:
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, Mapping):
        return {str(key): _integral(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_integral(item) for item in value]
    raise TypeError(f"{type(value).__name__} is no JSON value")


@dataclass(frozen=True, slots=True)
class Normalise:
    """What does not belong to the meaning of a call.

    `drop` and `casefold` hold field names, which count at any depth, or paths such as `$.meta.ts`, which count there
    alone. `trim` strips blanks around every string. `auto` says that fields which differ between two fault-free runs
    are to be dropped as well: whoever compares those runs adds them with `also_dropping`.
    """

    drop: frozenset[str] = frozenset()
    trim: bool = False
    casefold: frozenset[str] = frozenset()
    auto: bool = True

    def also_dropping(self, fields: Iterable[str]) -> Normalise:
        """The same rule with more volatile fields."""
        return replace(self, drop=self.drop | frozenset(fields))


@dataclass(frozen=True, slots=True)
class Intent:
    """Where a call says which business action it is: argument paths, or a request header."""

    json: tuple[Path, ...] = ()
    header: str | None = None


PLAIN = Normalise()


def normalise(args: Any, rule: Normalise = PLAIN) -> Any:
    """The arguments without what the rule calls noise; the input is left as it is."""
    return _normalised(args, rule, name=None, path="$")


def _normalised(value: Any, rule: Normalise, *, name: str | None, path: str) -> Any:
    if isinstance(value, Mapping):
        kept = {}
        for key, item in value.items():
            where = f"{path}.{key}"
            if key not in rule.drop and where not in rule.drop:
                kept[key] = _normalised(item, rule, name=key, path=where)
        return kept
    if isinstance(value, (list, tuple)):
        return [_normalised(item, rule, name=name, path=f"{path}[*]") for item in value]
    if isinstance(value, str):
        text = value.strip() if rule.trim else value
        return text.casefold() if name in rule.casefold or path in rule.casefold else text
    return value


def args_digest(args: Any, rule: Normalise = PLAIN) -> str:
    """Digest of the normalised arguments."""
    return digest(normalise(args, rule))


def intent_digest(
    args: Any, intent: Intent | None, rule: Normalise = PLAIN, *, headers: Mapping[str, str] | None = None
) -> str | None:
    """Digest of the declared intent fields, or `None` where none is declared or none is present.

    It is taken over an object of the declared fields that the normalised arguments have, named by their paths; fields
    that a call leaves out stay out. `headers` (any case) is read where the intent travels in a header.
    """
    if intent is None:
        return None
    if intent.header is not None:
        wanted = intent.header.casefold()
        given = [text for key, text in (headers or {}).items() if key.casefold() == wanted]
        return digest({wanted: given[0]}) if given and given[0] else None
    meant = normalise(args, rule)
    fields = {path.name: path.find(meant) for path in intent.json}
    present = {name: value for name, value in fields.items() if value is not MISSING}
    return digest(present) if present else None
