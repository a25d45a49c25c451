"""Which action a call is, and the idempotency key that goes with it.

A key is made of tenant, intent, tool, normalised arguments and the ordinal among equal actions, never of the attempt.
The encoding is JSON, so that no two different tuples share a spelling, and forward and undoing keys have prefixes of
their own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agents.reference.paths import MISSING, find, put
from agents.reference.tools import Normalise, Tool


def canonical(value: Any) -> str:
    """JSON in one spelling per value: sorted keys, no blanks, integral floats as integers."""
    return json.dumps(_integral(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()


def _integral(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(name): _integral(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_integral(item) for item in value]
    return value


def normalised(value: Any, rule: Normalise, *, name: str = "", path: str = "$") -> Any:
    """The arguments without what the rule calls noise, at any depth."""
    if isinstance(value, Mapping):
        return {
            key: normalised(item, rule, name=key, path=f"{path}.{key}")
            for key, item in value.items()
            if key not in rule.drop and f"{path}.{key}" not in rule.drop
        }
    if isinstance(value, (list, tuple)):
        return [normalised(item, rule, name=name, path=f"{path}[*]") for item in value]
    if isinstance(value, str):
        text = value.strip() if rule.trim else value
        return text.casefold() if name in rule.casefold or path in rule.casefold else text
    return value


def args_digest(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Digest of the normalised arguments (contract section 3)."""
    return digest(normalised(arguments, tool.normalise))


def identity(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """What makes two calls equal: the declared intent fields where there are any, else all normalised arguments."""
    meant = normalised(arguments, tool.normalise)
    if tool.intent_paths:
        found = {path: find(meant, path) for path in tool.intent_paths}
        declared = {path: value for path, value in found.items() if value is not MISSING}
        if declared:
            meant = declared
    return canonical([tool.name, meant])


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier equal action. `free`: it surely left nothing behind, so that a new call may take its place."""

    ordinal: int
    free: bool


def next_ordinal(earlier: Iterable[Earlier]) -> int:
    """The number among equal actions, from 1.

    Asking once more for what surely failed is the same action; asking for what was done, or may have been, is another
    one: two equal gifts are two intents.
    """
    latest: dict[int, bool] = {}
    for action in earlier:
        latest[action.ordinal] = action.free
    return min((number for number, free in latest.items() if free), default=len(latest) + 1)


def forward_key(tool: Tool, arguments: Mapping[str, Any], *, tenant: str, intent: str, ordinal: int) -> str:
    """The key of an action; every attempt of it, in whatever process, carries this one."""
    return "do-" + digest([tenant, intent, tool.name, normalised(arguments, tool.normalise), ordinal])


def compensation_key(forward: str, tool: str) -> str:
    """The key of the undoing of the action with key `forward`."""
    return "undo-" + digest([forward, tool])


def action_intent(intent: str, tool: str, ordinal: int) -> str:
    """The name of an action for people and logs."""
    return f"{intent}/{tool}.{ordinal}"


@dataclass(frozen=True, slots=True)
class Presented:
    """How a call shows its key: headers, body, and the key its state can be asked for by."""

    headers: Mapping[str, str]
    body: Mapping[str, Any]
    key: str | None


def present(tool: Tool, key: str, arguments: Mapping[str, Any]) -> Presented:
    """Put the key where the tool looks for it; a call without effect shows none."""
    if not tool.effectful:
        return Presented({}, arguments, None)
    body = put(arguments, tool.key_path, key) if tool.key_path else arguments
    return Presented({tool.key_header: key} if tool.key_header else {}, body, key)
