"""Writes a tools registry as YAML that people like to read: a block per tool, one line per field."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_PLAIN = re.compile(r"[A-Za-z$][A-Za-z0-9_.$/-]*(?: [A-Za-z0-9_.-]+)*")
# Words that YAML readers of one age or another take for something else than text.
_NOT_TEXT = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_ORDER = (
    "description",
    "version",
    "match",
    "args",
    "environment",
    "idempotency",
    "key",
    "intent",
    "normalise",
    "compensation",
    "avoid",
    "self_repair",
    "confirm",
    "latency",
    "resource_group",
    "severity",
    "owner",
)


def registry_text(tools: Mapping[str, Mapping[str, Any]], *, head: str) -> str:
    """The text of a `tools.yaml`; `head` is a comment of one or more lines."""
    lines = [f"# {line}".rstrip() for line in head.strip().split("\n")]
    for name, entry in tools.items():
        lines += ["", f"{name}:"]
        match = {"match": {"method": "POST", "path": f"/tools/{name}"}}
        fields = match | dict(entry)
        lines += [f"  {field}: {_flow(fields[field])}" for field in _ORDER if field in fields]
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return value
    return json.dumps(value, ensure_ascii=False)
