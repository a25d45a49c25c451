"""Reads and checks the data of a tools registry: shapes field by field, then completeness and contradictions."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator
from typing import Any

from traces import registry as typed
from traces.digest import Intent, Normalise
from traces.paths import Path, parse_path
from traces.registry import Compensation, Key, Latency, Match, Registry, RegistryError, RegistryFault, Tool

_FIELDS = (
    "version",
    "match",
    "args",
    "from_results",
    "environment",
    "idempotency",
    "retry",
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
    "description",
)
_Where = tuple[str | int, ...]


class _Reader:
    """Reads fields of one mapping after another and keeps what is wrong, so that all of it is told at once."""

    def __init__(self) -> None:
        self.faults: list[RegistryFault] = []

    def fault(self, where: _Where, message: str) -> None:
        self.faults.append(RegistryFault(where, message))

    def mapping(self, value: Any, where: _Where, *, fields: Iterable[str] | None = None) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.fault(where, f"must be a mapping, not {_kind(value)}")
            return {}
        known = tuple(fields) if fields is not None else None
        for name in value:
            if not isinstance(name, str):
                self.fault((*where, str(name)), f"names are text; write '{name}' in quotes")
            elif known is not None and name not in known:
                self.fault((*where, name), f"unknown field{_did_you_mean(name, known)}")
        return {name: item for name, item in value.items() if isinstance(name, str)}

    def choice(self, value: Any, where: _Where, allowed: tuple[str, ...], default: str) -> str:
        if value is None:
            return default
        if value not in allowed or not isinstance(value, str):
            hint = _did_you_mean(str(value), allowed)
            self.fault(where, f"must be one of {', '.join(allowed)}, not {value!r}{hint}")
            return default
        return value

    def text(self, value: Any, where: _Where) -> str | None:
        if value is None or (isinstance(value, str) and value):
            return value
        self.fault(where, f"must be a text, not {_kind(value)}")
        return None

    def flag(self, value: Any, where: _Where, default: bool) -> bool:
        if value is None:
            return default
        if not isinstance(value, bool):
            self.fault(where, f"must be true or false, not {_kind(value)}")
            return default
        return value

    def integer(self, value: Any, where: _Where, default: int, *, least: int = 0) -> int:
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            self.fault(where, f"must be a whole number of at least {least}, not {value!r}")
            return default
        return value

    def seconds(self, value: Any, where: _Where) -> float | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
            self.fault(where, f"must be a number of seconds, not {value!r}")
            return None
        return float(value)

    def names(self, value: Any, where: _Where) -> tuple[str, ...]:
        if value is None:
            return ()
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        self.fault(where, "must be a list of field names, such as [trace_id, ts]")
        return ()

    def path(self, value: Any, where: _Where) -> Path | None:
        if value is None:
            return None
        if not isinstance(value, str):
            self.fault(where, f"must be a path such as `$.order_id`, not {_kind(value)}")
            return None
        try:
            return parse_path(value)
        except ValueError as error:
            self.fault(where, str(error))
            return None


def registry_from(data: Any) -> Registry:
    """The registry that the data of a `tools.yaml` describes; raises `RegistryError` with all faults at once."""
    tools, faults = _read_tools(data)
    if faults:
        raise RegistryError(faults)
    return Registry(tools)


def _read_tools(data: Any) -> tuple[dict[str, Tool], list[RegistryFault]]:
    """The tools that could be read, and everything wrong with the data."""
    reader = _Reader()
    if not isinstance(data, dict) or not data:
        reader.fault((), "a tools registry is a mapping from tool names to their descriptions")
        return {}, reader.faults
    tools: dict[str, Tool] = {}
    for name, entry in reader.mapping(data, ()).items():
        if isinstance(entry, dict):
            tools[name] = _tool(reader, name, entry)
        else:
            reader.fault((name,), f"must be a mapping, not {_kind(entry)}")
    reader.faults.extend(_contradictions(tools, set(data)))
    order = {name: n for n, name in enumerate(data)}
    reader.faults.sort(key=lambda fault: order.get(str(fault.path[0]), -1) if fault.path else -1)
    return tools, reader.faults


def _tool(r: _Reader, name: str, entry: dict[str, Any]) -> Tool:
    at: _Where = (name,)
    r.mapping(entry, at, fields=_FIELDS)
    if entry.get("idempotency") is None:
        r.fault(at, f"`idempotency` is missing: one of {', '.join(typed.IDEMPOTENCY)}")
    idempotency = r.choice(entry.get("idempotency"), (*at, "idempotency"), typed.IDEMPOTENCY, "keyed")
    schema = r.mapping(entry.get("args"), (*at, "args"))
    from_results = r.names(schema.get("from_results"), (*at, "args", "from_results"))
    from_results += r.names(entry.get("from_results"), (*at, "from_results"))
    return Tool(
        name=name,
        version=r.integer(entry.get("version"), (*at, "version"), 1, least=1),
        match=_match(r, name, entry.get("match")),
        args={field: value for field, value in schema.items() if field != "from_results"},
        from_results=from_results,
        environment=r.text(entry.get("environment"), (*at, "environment")),
        idempotency=idempotency,
        retry=r.flag(entry.get("retry"), (*at, "retry"), idempotency != "irreversible"),
        key=_key(r, (*at, "key"), entry.get("key"), keyed=idempotency == "keyed"),
        intent=_intent(r, (*at, "intent"), entry.get("intent")),
        normalise=_normalise(r, (*at, "normalise"), entry.get("normalise")),
        compensation=_compensation(r, (*at, "compensation"), entry.get("compensation")),
        avoid=r.flag(entry.get("avoid"), (*at, "avoid"), False),
        self_repair=r.integer(entry.get("self_repair"), (*at, "self_repair"), 1),
        confirm=r.flag(entry.get("confirm"), (*at, "confirm"), False),
        latency=_latency(r, (*at, "latency"), entry.get("latency")),
        resource_group=r.text(entry.get("resource_group"), (*at, "resource_group")),
        severity=r.choice(
            entry.get("severity"),
            (*at, "severity"),
            typed.SEVERITIES,
            "none" if idempotency == "natural" else "internal",
        ),
        owner=r.text(entry.get("owner"), (*at, "owner")),
        description=r.text(entry.get("description"), (*at, "description")) or "",
    )


def _match(r: _Reader, name: str, value: Any) -> Match:
    at: _Where = (name, "match")
    given = r.mapping(value, at, fields=("method", "path", "mcp"))
    mcp = r.text(given.get("mcp"), (*at, "mcp"))
    path = r.text(given.get("path"), (*at, "path"))
    method = r.text(given.get("method"), (*at, "method"))
    if mcp is not None:
        if path is not None or method is not None:
            r.fault(at, "is either {mcp: NAME} or {method, path}, not both")
        return Match(mcp=mcp)
    return Match(method=method or "POST", path=path or f"/tools/{name}")


def _key(r: _Reader, at: _Where, value: Any, *, keyed: bool) -> Key | None:
    given = r.mapping(value, at, fields=("header", "json"))
    header = r.text(given.get("header"), (*at, "header"))
    path = r.path(given.get("json"), (*at, "json"))
    if value is not None and (header is None) == (path is None):
        r.fault(at, "is either {header: NAME} or {json: PATH}")
    if header is None and path is None:
        return Key(header=typed.DEFAULT_KEY_HEADER) if keyed else None
    return Key(header=header, json=path)


def _intent(r: _Reader, at: _Where, value: Any) -> Intent | None:
    if value is None:
        return None
    given = r.mapping(value, at, fields=("json", "header"))
    header = r.text(given.get("header"), (*at, "header"))
    listed = given.get("json")
    listed = [listed] if isinstance(listed, str) else listed
    if (header is None) == (listed is None):
        r.fault(at, "is either {json: [PATHS]} or {header: NAME}")
    if listed is not None and (not isinstance(listed, list) or not listed):
        r.fault((*at, "json"), "must be a list of paths, such as [$.order_id, $.amount]")
        return None
    paths = [r.path(item, (*at, "json", n)) for n, item in enumerate(listed or [])]
    return Intent(json=tuple(path for path in paths if path is not None), header=header)


def _normalise(r: _Reader, at: _Where, value: Any) -> Normalise:
    if value is None or value == "auto":
        return Normalise()
    given = r.mapping(value, at, fields=("drop", "trim", "casefold"))
    return Normalise(
        drop=frozenset(r.names(given.get("drop"), (*at, "drop"))),
        trim=r.flag(given.get("trim"), (*at, "trim"), False),
        casefold=frozenset(r.names(given.get("casefold"), (*at, "casefold"))),
        auto=False,
    )


def _compensation(r: _Reader, at: _Where, value: Any) -> Compensation | None:
    if value is None:
        return None
    fields = ("tool", "of", "strength", "until_s", "on_failure")
    given = r.mapping(value, at, fields=fields)
    tool = r.text(given.get("tool"), (*at, "tool"))
    of = r.mapping(given.get("of"), (*at, "of"), fields=("arg", "result"))
    for end in ("arg", "result"):
        if given.get("of") is not None and of.get(end) is None:
            r.fault((*at, "of"), f"`{end}` is missing: of names an argument of the undo and a field of the result")
    strength = r.choice(
        given.get("strength"), (*at, "strength"), typed.STRENGTHS, "none" if tool is None else "strong"
    )
    if tool is None and strength != "none":
        r.fault((*at, "tool"), f"a {strength} compensation names the tool that undoes, or says `strength: none`")
    if tool is not None and strength == "none":
        r.fault((*at, "strength"), f"contradiction: {tool} undoes it, yet the strength is none")
    return Compensation(
        tool=tool,
        of_arg=r.path(of.get("arg"), (*at, "of", "arg")),
        of_result=r.path(of.get("result"), (*at, "of", "result")),
        strength=strength,
        until_s=r.seconds(given.get("until_s"), (*at, "until_s")),
        on_failure=r.choice(given.get("on_failure"), (*at, "on_failure"), typed.ON_FAILURE, "handoff"),
    )


def _latency(r: _Reader, at: _Where, value: Any) -> Latency | None:
    if value is None:
        return None
    given = r.mapping(value, at, fields=("p50_s", "p95_s", "p99_s", "samples"))
    times = [r.seconds(given.get(name), (*at, name)) for name in ("p50_s", "p95_s", "p99_s")]
    samples = r.integer(given.get("samples"), (*at, "samples"), 0)
    for name in ("p50_s", "p95_s", "p99_s", "samples"):
        if given.get(name) is None:
            r.fault(at, f"`{name}` is missing")
    if given.get("samples") is not None and samples < typed.SAMPLES_FLOOR:
        r.fault((*at, "samples"), f"{samples} calls cannot show a p99; at least {typed.SAMPLES_FLOOR} are needed")
    p50, p95, p99 = times
    if p50 is None or p95 is None or p99 is None:
        return None
    if not p50 <= p95 <= p99:
        r.fault(at, f"contradiction: p50 {p50:g}, p95 {p95:g} and p99 {p99:g} must not fall")
    return Latency(p50, p95, p99, samples)


def _contradictions(tools: dict[str, Tool], known: set[str]) -> Iterator[RegistryFault]:
    undoers = {tool.compensation.tool for tool in tools.values() if tool.compensation is not None}
    for name, tool in tools.items():
        undo = tool.compensation
        if tool.idempotency == "irreversible" and tool.retry:
            text = "contradiction: an irreversible tool cannot be retried automatically; drop `retry` or say `keyed`"
            yield RegistryFault((name, "retry"), text)
        # An undo needs no undo of its own; whoever runs it hands over what it cannot finish.
        if tool.effectful and undo is None and not tool.avoid and name not in undoers:
            text = "has effects but no `compensation`; name one, or say `avoid: true` if it cannot be undone"
            yield RegistryFault((name,), text)
        if undo is None or undo.tool is None:
            continue
        if not tool.effectful:
            yield RegistryFault((name, "compensation"), "contradiction: a tool of severity none has nothing to undo")
        if undo.tool not in known:
            text = f"unknown tool {undo.tool!r}{_did_you_mean(undo.tool, known)}"
            yield RegistryFault((name, "compensation", "tool"), text)
        elif undo.tool == name:
            yield RegistryFault((name, "compensation", "tool"), "contradiction: a tool cannot undo itself")
        elif undo.tool in tools and not tools[undo.tool].effectful:
            text = f"contradiction: {undo.tool} undoes it, yet has severity none; give {undo.tool} a severity"
            yield RegistryFault((name, "compensation", "tool"), text)


def _kind(value: Any) -> str:
    kinds = {
        dict: "a mapping",
        list: "a list",
        str: "a text",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return "nothing" if value is None else kinds.get(type(value), f"a {type(value).__name__}")


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
