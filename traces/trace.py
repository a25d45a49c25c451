"""Recorded runs (contract section 7): one header line, then one exchange a line, in JSON Lines.

Times are seconds; in a trace they need no common origin, only one per file. Fields that this version does not know
are kept in `extra` and written back, so that reading and writing a file loses nothing.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, TypeGuard

import msgspec

from traces.history import Limits
from traces.json_bodies import shallow
from traces.providers import PROVIDERS, for_api, turn_of
from traces.providers.turn import Provider, ToolCall, Turn

VERSION = 1
CHANNELS = ("model", "tool", "mcp", "http")
_HEADER = ("trace", "version", "task_type", "tenant", "request", "provenance", "masked", "limits", "tools")
_EXCHANGE = ("channel", "n", "t_start", "t_end", "request", "response", "api")
# Runs, their folders and their files are called by the trace's name.
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", re.ASCII)
_LONGEST_NAME = 150
_LARGEST = 2**53
"""Up to here every reader of JSON sees the same number."""


class TraceError(ValueError):
    """A file that is no usable trace; `faults` are `(line, sentence)`, lines counted from 1."""

    def __init__(self, faults: Iterable[tuple[int, str]]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(f"line {line}: {text}" for line, text in self.faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and its answer. `n` counts the exchanges of the trace from 1, in the order of their starts.

    `channel` model: `request` is the provider's own body, `response` is `{"status", "body"}`, or where streamed
    `{"status", "events": [{"t", "event", "data"}]}` with `t` in seconds after `t_start`. `channel` tool: `request` is
    `{"tool", "arguments", "headers"}`, `response` is `{"status", "body"}`.
    """

    channel: str
    n: int
    t_start: float
    t_end: float
    request: dict[str, Any]
    response: dict[str, Any]
    api: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """The HTTP status of the answer."""
        return int(self.response.get("status", 200))

    @property
    def body(self) -> Any:
        """The answer's body, `None` where it was streamed."""
        return self.response.get("body")

    @property
    def ok(self) -> bool:
        """True where the answer says that it was done."""
        return self.status < 400

    @property
    def tool(self) -> str:
        """The tool that a tool exchange called."""
        return str(self.request.get("tool", ""))

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that a tool exchange called it with."""
        given = self.request.get("arguments")
        return given if isinstance(given, dict) else {}

    @property
    def streamed(self) -> bool:
        """True where the model's answer came as a stream."""
        return "events" in self.response

    @property
    def provider(self) -> Provider | None:
        """The wire knowledge for a model exchange, `None` where its API is not known."""
        return for_api(self.api) if self.api is not None else None

    def turn(self) -> Turn:
        """What the model said; raises `ValueError` where its API is not known."""
        provider = self.provider
        if provider is None:
            raise ValueError(f"exchange {self.n} is no model exchange of a known api ({self.api!r})")
        return turn_of(provider, self.response)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One recorded run. `request` is what the user asked for; `limits` are those of `run_started`; `tools` are
    `{"name", "description", "input_schema"}`; `masked` says that the mask has been over it."""

    name: str
    request: str
    exchanges: tuple[Exchange, ...]
    version: int = VERSION
    task_type: str = "task"
    tenant: str = "default"
    provenance: dict[str, Any] = field(default_factory=dict)
    masked: bool = False
    limits: dict[str, Any] = field(default_factory=dict)
    tools: tuple[dict[str, Any], ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def model_exchanges(self) -> tuple[Exchange, ...]:
        """The exchanges with the model, in order."""
        return tuple(e for e in self.exchanges if e.channel == "model")

    @property
    def tool_exchanges(self) -> tuple[Exchange, ...]:
        """The exchanges with tools, in order."""
        return tuple(e for e in self.exchanges if e.channel == "tool")

    @property
    def api(self) -> str:
        """The API of the first model exchange, `anthropic-messages` where there is none."""
        return next((e.api for e in self.model_exchanges if e.api), "anthropic-messages")

    @property
    def model(self) -> str:
        """The model that the first model exchange asked for."""
        return next((str(e.request.get("model", "")) for e in self.model_exchanges), "")

    @property
    def stream(self) -> bool:
        """True where the first model exchange was streamed."""
        return next((e.streamed for e in self.model_exchanges), False)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """What the model said, turn by turn; refused and failed model calls are no turns."""
        return tuple(e.turn() for e in self.model_exchanges if e.ok and e.provider is not None)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """All tool calls that the model asked for, in order."""
        return tuple(call for turn in self.turns for call in turn.tool_calls)


def read_trace(path: Path | str) -> Trace:
    """Reads a trace file; raises `TraceError` with every fault and its line, `OSError` where it cannot be read.

    It does not look for secrets: `traces.mask.find_secrets` does.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TraceError([(1, f"is no UTF-8 text (byte {error.start})")]) from None
    return parse_trace(text)


def parse_trace(text: str) -> Trace:
    """The trace that a text of JSON Lines is; raises `TraceError`."""
    faults: list[tuple[int, str]] = []
    lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise TraceError([(1, "is empty; a trace begins with its header line")])
    rows: list[tuple[int, dict[str, Any]]] = []
    for n, line in lines:
        try:
            row = shallow(_loads, line)
        except ValueError as error:
            faults.append((n, f"is no JSON that can be read: {error}"))
            continue
        if isinstance(row, dict):
            rows.append((n, row))
        else:
            faults.append((n, "is no JSON object"))
    first = lines[0][0]
    header = rows[0][1] if rows and rows[0][0] == first else {}
    if header or not faults:
        faults.extend((first, fault) for fault in _header_faults(header))
    exchanges: list[Exchange] = []
    for n, row in (pair for pair in rows if pair[0] != first):
        found = list(_exchange_faults(row))
        faults.extend((n, fault) for fault in found)
        if not found:
            known = {key: row[key] for key in _EXCHANGE if key in row}
            extra = {key: value for key, value in row.items() if key not in _EXCHANGE}
            exchanges.append(Exchange(**known, extra=extra))
    if faults:
        raise TraceError(sorted(faults))
    known = {key: header[key] for key in _HEADER if header.get(key) is not None and key != "trace"}
    known["tools"] = tuple(known.get("tools", ()))
    if "limits" in known:
        known["limits"] = {name: _whole(value) for name, value in known["limits"].items()}
    return Trace(
        name=header["trace"],
        exchanges=tuple(exchanges),
        extra={key: value for key, value in header.items() if key not in _HEADER},
        **known,
    )


def _header_faults(header: dict[str, Any]) -> Iterator[str]:
    if not isinstance(header.get("trace"), str) or not header["trace"]:
        yield 'the first line is the header and has the name of the trace, {"trace": "order-small", ..}'
        return
    yield from _name_faults(header["trace"])
    if header.get("version") != VERSION:
        yield f"version is {header.get('version')!r}; this reader knows version {VERSION}"
    shapes: tuple[tuple[str, type, str], ...] = (
        ("request", str, "a text"),
        ("task_type", str, "a text"),
        ("tenant", str, "a text"),
        ("provenance", dict, "an object"),
        ("masked", bool, "true or false"),
        ("limits", dict, "an object"),
        ("tools", list, "a list"),
    )
    for name, shape, words in shapes:
        value = header.get(name)
        if value is None and name == "request":
            yield "`request` is missing: what the user asked for"
        elif value is not None and not isinstance(value, shape):
            yield f"`{name}` must be {words}"
    if isinstance(header.get("limits"), dict):
        yield from _limits_faults(header["limits"])
    for tool in header.get("tools") or [] if isinstance(header.get("tools"), list) else []:
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            yield "each of `tools` is an object with a `name`"


def _name_faults(name: str) -> Iterator[str]:
    if not _NAME.fullmatch(name):
        yield (
            f"the name of a trace is made of letters, digits, `-`, `_` and `.`, and begins with no dot; {name!r} is "
            "not, and runs and their folders are called by it"
        )
    elif len(name) > _LONGEST_NAME:
        yield f"the name of a trace has at most {_LONGEST_NAME} characters; this one has {len(name)}"


def _limits_faults(limits: dict[str, Any]) -> Iterator[str]:
    """Limits that no run could state in its `run_started`; those that this version does not know are let be."""
    for limit in msgspec.structs.fields(Limits):
        value = _whole(limits.get(limit.name))
        try:
            msgspec.convert(value, limit.type)
        except msgspec.ValidationError as error:
            yield f"`limits.{limit.name}`: {error}"
            continue
        for number in value.values() if isinstance(value, dict) else (value,):
            if number is not None and not abs(number) <= _LARGEST:
                yield f"`limits.{limit.name}`: {number} is out of range; without a limit leave it out"


def _whole(value: Any) -> Any:
    """A number without a fraction as an integer: an integer may be written as 1.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _loads(line: str) -> Any:
    return json.loads(line, parse_constant=_no_constant)


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _exchange_faults(row: dict[str, Any]) -> Iterator[str]:
    channel = row.get("channel")
    if channel not in CHANNELS:
        yield f"`channel` is {channel!r}; it is one of {', '.join(CHANNELS)}"
    if not isinstance(row.get("n"), int) or isinstance(row.get("n"), bool):
        yield "`n` must be a whole number"
    start, end = row.get("t_start"), row.get("t_end")
    for name, t in (("t_start", start), ("t_end", end)):
        if not _is_time(t):
            yield f"`{name}` must be a number of seconds"
    if _is_time(start) and _is_time(end) and end < start:
        yield f"`t_end` ({end}) is before `t_start` ({start}); the two seem swapped"
    for name in ("request", "response"):
        if not isinstance(row.get(name), dict):
            yield f"`{name}` must be an object"
    if channel == "model" and not isinstance(row.get("api"), str):
        yield "a model exchange says its `api`, such as anthropic-messages"
    elif channel == "model" and for_api(row["api"]) is None:
        known = ", ".join(provider.api for provider in PROVIDERS)
        yield f"`api` is {row['api'][:60]!r}; the model APIs known here are {known}"
    request = row.get("request")
    if channel == "tool" and isinstance(request, dict) and not isinstance(request.get("tool"), str):
        yield "the request of a tool exchange names its `tool`"
    response = row.get("response")
    status = response.get("status", 200) if isinstance(response, dict) else 200
    if not isinstance(status, int) or isinstance(status, bool) or not 100 <= status <= 599:
        yield "the `status` of a response must be a whole number from 100 to 599, such as 200"
    events = response.get("events") if isinstance(response, dict) else None
    if events is not None and not (isinstance(events, list) and all(isinstance(e, dict) for e in events)):
        yield "`events` must be a list of objects"
    elif not all(_is_time(event.get("t", 0)) for event in events or ()):
        yield "the `t` of each of `events` must be a number of seconds"


def _is_time(value: Any) -> TypeGuard[float]:
    """Whether a value is a number of seconds; the bound keeps out what is infinite, and differences exact."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST


def dump_trace(trace: Trace) -> str:
    """The text of a trace file."""
    header: dict[str, Any] = {
        "trace": trace.name,
        "version": trace.version,
        "task_type": trace.task_type,
        "tenant": trace.tenant,
        "request": trace.request,
        "provenance": trace.provenance,
        "masked": trace.masked,
        "limits": trace.limits,
        "tools": list(trace.tools),
    }
    rows = [header | trace.extra, *(_row(exchange) for exchange in trace.exchanges)]
    return "".join(json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n" for row in rows)


def _row(exchange: Exchange) -> dict[str, Any]:
    row: dict[str, Any] = {"channel": exchange.channel, "n": exchange.n}
    if exchange.api is not None:
        row["api"] = exchange.api
    row |= {"t_start": exchange.t_start, "t_end": exchange.t_end}
    return row | {"request": exchange.request, "response": exchange.response} | exchange.extra


def write_trace(trace: Trace, path: Path | str) -> None:
    """Writes a trace so that at every moment the file is either not there, the old one, or whole.

    Raises `TraceError` for a name that `read_trace` would refuse.
    """
    if faults := [(1, fault) for fault in _name_faults(trace.name)]:
        raise TraceError(faults)
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(dump_trace(trace))
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def numbered(exchanges: Iterable[Exchange]) -> tuple[Exchange, ...]:
    """The exchanges in the order of their starts, numbered from 1."""
    ordered = sorted(exchanges, key=lambda exchange: exchange.t_start)
    return tuple(replace(exchange, n=n) for n, exchange in enumerate(ordered, 1))
