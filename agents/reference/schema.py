"""The part of JSON Schema that tool arguments use, as a list of plain complaints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

_IS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": lambda value: (
        not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
}

_BOUNDS: Final[Mapping[str, tuple[Callable[[Any, Any], bool], str]]] = {
    "minimum": (lambda value, bound: value >= bound, "below"),
    "maximum": (lambda value, bound: value <= bound, "above"),
    "exclusiveMinimum": (lambda value, bound: value > bound, "not above"),
    "exclusiveMaximum": (lambda value, bound: value < bound, "not below"),
}


def complaints(value: Any, schema: Mapping[str, Any], where: str = "arguments") -> list[str]:
    """What is wrong with `value`; empty where nothing is. Keywords not known here ask for nothing."""
    found: list[str] = []
    types = schema.get("type")
    names: Sequence[str] = [types] if isinstance(types, str) else types or []
    if names and not any(_IS[name](value) for name in names if name in _IS):
        return [f"{where}: must be {' or '.join(names)}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: must be one of {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        found.append(f"{where}: must be {schema['const']!r}")
    if isinstance(value, dict):
        found += _object(value, schema, where)
    elif isinstance(value, list):
        found += _array(value, schema, where)
    elif isinstance(value, str):
        found += _length(len(value), schema, "Length", where)
    elif _IS["number"](value):
        found += [
            f"{where}: {word} {schema[name]}"
            for name, (holds, word) in _BOUNDS.items()
            if _IS["number"](schema.get(name)) and not holds(value, schema[name])
        ]
    return found


def _object(value: Mapping[str, Any], schema: Mapping[str, Any], where: str) -> list[str]:
    properties: Mapping[str, Any] = schema.get("properties") or {}
    found = [f"{where}.{name}: is required" for name in schema.get("required") or () if name not in value]
    for name, item in value.items():
        if name in properties:
            found += complaints(item, properties[name], f"{where}.{name}")
        elif schema.get("additionalProperties") is False:
            found.append(f"{where}.{name}: is not known")
    return found


def _array(value: Sequence[Any], schema: Mapping[str, Any], where: str) -> list[str]:
    found = _length(len(value), schema, "Items", where)
    items = schema.get("items")
    if isinstance(items, Mapping):
        for index, item in enumerate(value):
            found += complaints(item, items, f"{where}[{index}]")
    return found


def _length(size: int, schema: Mapping[str, Any], what: str, where: str) -> list[str]:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    found = [f"{where}: shorter than {least}"] if least is not None and size < least else []
    return found + ([f"{where}: longer than {most}"] if most is not None and size > most else [])
