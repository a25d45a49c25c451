"""Checks the arguments of a call against the JSON Schema of its tool, as a service checks its input.

It knows the keywords that tool schemas use; a keyword that it does not know refuses nothing, as the specification
asks of validators (JSON Schema 2020-12, core, section 4.3.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def faults(value: Any, schema: Any) -> list[str]:
    """What is wrong with the value, one sentence each and in the order of the schema; empty where nothing is."""
    return list(_faults(value, schema, "", schema))


def _faults(value: Any, schema: Any, at: str, root: Any) -> Iterator[str]:
    if schema is False:
        yield f"{_named(at)} is not allowed"
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        yield from _faults(value, _referred(schema["$ref"], root), at, root)
    kinds = schema.get("type")
    if kinds is not None:
        allowed = [kinds] if isinstance(kinds, str) else list(kinds)
        if value is None and schema.get("nullable") is True:
            return
        if not any(_is(value, kind) for kind in allowed):
            yield f"{_named(at)} must be of type {' or '.join(allowed)}"
            return
    if "enum" in schema and not any(_same(value, option) for option in schema["enum"]):
        yield f"{_named(at)} must be one of {', '.join(map(repr, schema['enum']))}"
    if "const" in schema and not _same(value, schema["const"]):
        yield f"{_named(at)} must be {schema['const']!r}"
    if isinstance(value, dict):
        yield from _object(value, schema, at, root)
    elif isinstance(value, list):
        yield from _array(value, schema, at, root)
    elif isinstance(value, str):
        yield from _text(value, schema, at)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _number(value, schema, at)
    yield from _combined(value, schema, at, root)


def _object(value: dict[str, Any], schema: dict[str, Any], at: str, root: Any) -> Iterator[str]:
    known = schema.get("properties") or {}
    for name in schema.get("required") or []:
        if name not in value:
            yield f"{_named(_join(at, name))} is missing"
    others = schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in known:
            yield from _faults(item, known[name], _join(at, name), root)
        elif others is False:
            yield f"{_named(_join(at, name))} is not known"
        else:
            yield from _faults(item, others, _join(at, name), root)


def _array(value: list[Any], schema: dict[str, Any], at: str, root: Any) -> Iterator[str]:
    if len(value) < schema.get("minItems", 0):
        yield f"{_named(at)} must have at least {schema['minItems']} items"
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        yield f"{_named(at)} must have at most {schema['maxItems']} items"
    for n, item in enumerate(value):
        yield from _faults(item, schema.get("items", True), f"{at}[{n}]", root)


def _text(value: str, schema: dict[str, Any], at: str) -> Iterator[str]:
    if len(value) < schema.get("minLength", 0):
        yield f"{_named(at)} must have at least {schema['minLength']} characters"
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        yield f"{_named(at)} must have at most {schema['maxLength']} characters"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{_named(at)} must match {schema['pattern']}"


def _number(value: float, schema: dict[str, Any], at: str) -> Iterator[str]:
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{_named(at)} must be at least {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        yield f"{_named(at)} must be at most {schema['maximum']}"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        yield f"{_named(at)} must be more than {schema['exclusiveMinimum']}"
    if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
        yield f"{_named(at)} must be less than {schema['exclusiveMaximum']}"


def _combined(value: Any, schema: dict[str, Any], at: str, root: Any) -> Iterator[str]:
    for part in schema.get("allOf") or []:
        yield from _faults(value, part, at, root)
    for word in ("anyOf", "oneOf"):
        options = schema.get(word)
        if not options:
            continue
        fitting = sum(not any(_faults(value, option, at, root)) for option in options)
        if fitting == 0:
            yield f"{_named(at)} fits none of the allowed forms"
        elif word == "oneOf" and fitting > 1:
            yield f"{_named(at)} must fit exactly one of the allowed forms"


def _referred(reference: Any, root: Any) -> Any:
    """The part of the schema that a local reference such as `#/$defs/item` names; what is elsewhere allows all."""
    found = root
    for step in str(reference).removeprefix("#").strip("/").split("/"):
        found = found.get(step, True) if isinstance(found, dict) and step else found
    return found if str(reference).startswith("#/") else True


def _is(value: Any, kind: str) -> bool:
    if kind == "integer":
        return isinstance(value, (int, float)) and not isinstance(value, bool) and float(value).is_integer()
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES.get(kind, (object,)))


def _same(value: Any, other: Any) -> bool:
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def _join(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _named(at: str) -> str:
    return f"`{at}`" if at else "the value"
