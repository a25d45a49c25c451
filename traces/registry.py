"""The tools registry, typed (contract section 5): what each tool does to the world and how it is undone.

This module reads the data of a `tools.yaml`, not the file: reading with line marks is the loader's work, which finds
the line of a fault by its `path`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from traces.digest import Intent, Normalise, args_digest, intent_digest
from traces.paths import MISSING, Path

IDEMPOTENCY = ("natural", "keyed", "irreversible")
SEVERITIES = ("none", "internal", "visible", "money")
STRENGTHS = ("strong", "weak", "none")
ON_FAILURE = ("handoff", "retry")
SANDBOXED = ("stand-in", "sandbox")
DEFAULT_KEY_HEADER = "Idempotency-Key"
SAMPLES_FLOOR = 100
"""Fewer calls than this cannot show a 99th percentile."""


@dataclass(frozen=True, slots=True)
class RegistryFault:
    """One thing wrong: where (tool, field, ...) and a sentence that says what would be right."""

    path: tuple[str | int, ...]
    message: str

    def __str__(self) -> str:
        return f"{'.'.join(str(step) for step in self.path)}: {self.message}" if self.path else self.message


class RegistryError(ValueError):
    """A registry that cannot be used; `faults` are all that was found, in file order."""

    def __init__(self, faults: Iterable[RegistryFault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


@dataclass(frozen=True, slots=True)
class Match:
    """How the wire sees a call: an HTTP method and path, or the name of an MCP tool."""

    method: str | None = None
    path: str | None = None
    mcp: str | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """Where a call carries its idempotency key: a header, or a path in the arguments."""

    header: str | None = None
    json: Path | None = None

    def read(self, args: Any, headers: Mapping[str, str]) -> str | None:
        """The key that a call carries, or `None`. Header names are read in any case; an empty key is none."""
        if self.header is not None:
            wanted = self.header.casefold()
            found: Any = next((text for name, text in headers.items() if name.casefold() == wanted), None)
        else:
            found = self.json.find(args) if self.json is not None else None
        return None if found is None or found is MISSING or found == "" else str(found)


@dataclass(frozen=True, slots=True)
class Compensation:
    """How an effect is undone: by a call of `tool` whose argument `of_arg` names what `of_result` of the forward
    result says. `until_s`: seconds after the effect within which it can be undone; `None` means for ever."""

    tool: str | None
    of_arg: Path | None = None
    of_result: Path | None = None
    strength: str = "strong"
    until_s: float | None = None
    on_failure: str = "handoff"


@dataclass(frozen=True, slots=True)
class Latency:
    """Measured latency of a tool, in seconds, over `samples` calls."""

    p50_s: float
    p95_s: float
    p99_s: float
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool of the registry. `args` is its JSON Schema; `from_results` names arguments whose values must come from
    what tools returned; `avoid` marks a tool that cannot be undone and is used last or not at all."""

    name: str
    version: int = 1
    match: Match
    args: dict[str, Any] = field(default_factory=dict)
    from_results: tuple[str, ...] = ()
    environment: str | None = None
    idempotency: str
    retry: bool
    key: Key | None = None
    intent: Intent | None = None
    normalise: Normalise = field(default_factory=Normalise)
    compensation: Compensation | None = None
    avoid: bool = False
    self_repair: int = 1
    confirm: bool = False
    latency: Latency | None = None
    resource_group: str | None = None
    severity: str
    owner: str | None = None
    description: str = ""

    @property
    def effectful(self) -> bool:
        """True where a call changes the world."""
        return self.severity != "none"

    @property
    def strikeable(self) -> bool:
        """True where faults may meet it: a stand-in or a sandbox."""
        return self.environment in SANDBOXED

    def key_of(self, args: Any, headers: Mapping[str, str]) -> str | None:
        """The idempotency key that a call carries."""
        return (self.key or Key(header=DEFAULT_KEY_HEADER)).read(args, headers)

    def args_digest(self, args: Any) -> str:
        """Digest of the normalised arguments of a call. A key that travels in them is no part of their meaning."""
        return args_digest(args, self.meaning)

    def intent_digest(self, args: Any, headers: Mapping[str, str] | None = None) -> str | None:
        """Digest of the declared intent of a call, or `None` where none is declared."""
        return intent_digest(args, self.intent, self.meaning, headers=headers)

    @property
    def meaning(self) -> Normalise:
        """The rule of `normalise`, and without the key where that travels in the arguments."""
        in_args = self.key.json if self.key is not None else None
        return self.normalise.also_dropping([in_args.text]) if in_args is not None else self.normalise


@dataclass(frozen=True, slots=True)
class Registry:
    """All tools by name, in file order."""

    tools: dict[str, Tool]

    def at(self, method: str, path: str) -> Tool | None:
        """The tool that a request calls. A query does not count; a declared path may stand behind a prefix of the
        base URL; of several that fit, the one with the longest path."""
        bare = "/" + path.partition("?")[0].strip("/")
        fits = [
            tool
            for tool in self.tools.values()
            if tool.match.path is not None
            and (tool.match.method or "POST").upper() == method.upper()
            and bare.endswith("/" + tool.match.path.strip("/"))
        ]
        return max(fits, key=lambda tool: len(tool.match.path or ""), default=None)

    def mcp(self, name: str) -> Tool | None:
        """The tool that an MCP `tools/call` of this name calls."""
        return next((tool for tool in self.tools.values() if tool.match.mcp == name), None)

    def undoing(self, name: str) -> list[Tool]:
        """The tools whose effects a call of this tool undoes."""
        return [t for t in self.tools.values() if t.compensation is not None and t.compensation.tool == name]
