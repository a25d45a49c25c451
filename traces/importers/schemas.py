"""Tool schemas from calls alone, for recordings that do not hold the tools' own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

_NAMES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


def schema_of_calls(arguments: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The JSON Schema of all these calls: types as seen, required what every call has."""
    return _schema(arguments) if arguments else {"type": "object", "properties": {}}


def _schema(values: Iterable[Any]) -> dict[str, Any]:
    seen = list(values)
    names = [name for kind, name in _NAMES if any(_is(value, kind) for value in seen)]
    if "integer" in names and "number" in names:
        names.remove("integer")
    if any(value is None for value in seen):
        names.append("null")
    schema: dict[str, Any] = {"type": names[0] if len(names) == 1 else names} if names else {}
    objects = [value for value in seen if isinstance(value, dict)]
    if objects:
        fields = list(dict.fromkeys(name for value in objects for name in value))
        schema["properties"] = {name: _schema(value[name] for value in objects if name in value) for name in fields}
        required = [name for name in fields if all(name in value for value in objects)]
        if required:
            schema["required"] = required
    items = [item for value in seen if isinstance(value, list) for item in value]
    if items:
        schema["items"] = _schema(items)
    return schema


def _is(value: Any, kind: type) -> bool:
    # True is an int in Python and no integer in JSON.
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))
