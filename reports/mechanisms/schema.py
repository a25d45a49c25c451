"""The part of JSON Schema that tool arguments use, to tell whether a model's call could have been meant.

Deliberately small: an unknown keyword constrains nothing, so that a call is never called bad for a rule that
was not understood.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "boolean": bool,
    "object": dict,
    "array": list,
    "null": type(None),
    "number": (int, float),
    "integer": (int, float),
}


def mismatch(value: Any, schema: Mapping[str, Any], *, path: str = "$") -> str | None:
    """The first place where a value does not fit the schema, such as `$.amount: wants integer`, or `None`."""
    wanted = schema.get("type")
    names = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, list) else []
    if names and not any(_fits(value, name) for name in names):
        return f"{path}: wants {' or '.join(map(str, names))}"
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        return f"{path}: not one of the {len(choices)} allowed values"
    if isinstance(value, dict):
        return _in_object(value, schema, path)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, Mapping):
        for at, item in enumerate(value):
            if fault := mismatch(item, items, path=f"{path}[{at}]"):
                return fault
    return _out_of_bounds(value, schema, path)


def _in_object(value: dict[str, Any], schema: Mapping[str, Any], path: str) -> str | None:
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        if name not in value:
            return f"{path}.{name}: missing"
    for name, item in value.items():
        rule = properties.get(name)
        if isinstance(rule, Mapping):
            if fault := mismatch(item, rule, path=f"{path}.{name}"):
                return fault
        elif name not in properties and schema.get("additionalProperties") is False:
            return f"{path}.{name}: unknown"
    return None


def _out_of_bounds(value: Any, schema: Mapping[str, Any], path: str) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    low, high = schema.get("minimum"), schema.get("maximum")
    if isinstance(low, int | float) and value < low:
        return f"{path}: less than {low}"
    if isinstance(high, int | float) and value > high:
        return f"{path}: more than {high}"
    return None


def _fits(value: Any, name: str) -> bool:
    kind = _TYPES.get(name)
    if kind is None:
        return True
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, kind)
