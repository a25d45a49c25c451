"""What the agent knows of its tools: facts of the registry (contract section 5), or cautious guesses instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agents.reference.task import Offer

DEFAULT_P99_S: Final = 2.0
FEW_SAMPLES: Final = 20
FACTOR: Final = 1.5
"""An attempt is given its p99 times this, refused where that no longer fits, and never clipped to what is left."""

UNHEARD_OF_REPAIRS: Final = 2
"""How often the model may try again after naming a tool that there is not."""

_SEVERITIES: Final = ("none", "internal", "visible", "money")


@dataclass(frozen=True, slots=True)
class Compensation:
    """How an effect is undone: `argument` of `tool` names the effect by what stands at `result` of its own result."""

    tool: str
    argument: str | None
    result: str | None
    strength: str
    until_s: float | None


@dataclass(frozen=True, slots=True)
class Normalise:
    """What does not belong to the meaning of a call: `drop` and `casefold` hold field names or paths."""

    drop: frozenset[str] = frozenset()
    trim: bool = False
    casefold: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `idempotency` is `natural`, `keyed` or `irreversible`."""

    name: str
    idempotency: str = "irreversible"
    severity: str = "money"
    version: str | None = None
    key_header: str | None = "Idempotency-Key"
    key_path: str | None = None
    intent_paths: tuple[str, ...] = ()
    intent_header: str | None = None
    normalise: Normalise = Normalise()
    compensation: Compensation | None = None
    self_repair: int = 1
    confirm: bool = False
    p99_s: float = DEFAULT_P99_S
    group: str | None = None
    schema: Mapping[str, Any] | None = None

    @property
    def effectful(self) -> bool:
        """Whether a call changes the world."""
        return self.severity != "none"

    @property
    def grave(self) -> bool:
        """Whether the other effects lose their point without it. A notice (visible, and past recall) is not grave:
        nothing rests on it."""
        return self.severity == "money" or (self.severity == "visible" and self.idempotency != "irreversible")

    @property
    def repeatable(self) -> bool:
        """Whether the same call may be sent again."""
        return self.idempotency in ("natural", "keyed")

    @property
    def need_s(self) -> float:
        """Seconds an attempt may take, and must still have before it."""
        return self.p99_s * FACTOR


class Toolbox:
    """The tools of one run: what the model is offered, and what undoing needs besides."""

    def __init__(self, offers: Iterable[Offer], registry: Mapping[str, Mapping[str, Any]]) -> None:
        self._offered = {offer.name: offer for offer in offers}
        self._known = {name: _tool(name, data, self._offered.get(name)) for name, data in registry.items()}
        for name, offer in self._offered.items():
            self._known.setdefault(name, Tool(name, schema=offer.input_schema))

    def offered(self, name: str) -> Tool | None:
        """The tool the model may call by this name."""
        return self._known.get(name) if name in self._offered else None

    @property
    def names(self) -> tuple[str, ...]:
        """What the model may call."""
        return tuple(self._offered)

    def any(self, name: str) -> Tool:
        """The tool of this name, whoever calls it; an unheard-of one is taken for irreversible."""
        return self._known.get(name) or Tool(name, self_repair=UNHEARD_OF_REPAIRS)


def _tool(name: str, data: Mapping[str, Any], offer: Offer | None) -> Tool:
    idempotency = str(data.get("idempotency") or "irreversible")
    natural = idempotency == "natural"
    severity = data.get("severity") or ("none" if natural else "internal")
    effectful = severity != "none"
    key, intent = data.get("key") or {}, data.get("intent") or {}
    paths = intent.get("json") or ()
    repairs = data.get("self_repair")
    version = data.get("version")
    return Tool(
        name=name,
        idempotency=idempotency if idempotency in ("natural", "keyed") else "irreversible",
        severity=severity if severity in _SEVERITIES else "money",
        version=None if version is None else str(version),
        key_header=key.get("header") or ("Idempotency-Key" if not key.get("json") else None),
        key_path=key.get("json"),
        intent_paths=(paths,) if isinstance(paths, str) else tuple(paths),
        intent_header=intent.get("header"),
        normalise=_normalise(data.get("normalise")),
        compensation=_compensation(data.get("compensation")),
        self_repair=(1 if effectful else 3) if repairs is None else int(repairs),
        confirm=bool(data.get("confirm")),
        p99_s=_p99(data.get("latency")),
        group=data.get("resource_group"),
        schema=(offer.input_schema if offer else None) or data.get("args"),
    )


def _normalise(data: Any) -> Normalise:
    if not isinstance(data, Mapping):
        return Normalise()
    return Normalise(frozenset(data.get("drop") or ()), bool(data.get("trim")), frozenset(data.get("casefold") or ()))


def _compensation(data: Any) -> Compensation | None:
    if not isinstance(data, Mapping) or not data.get("tool"):
        return None
    of = data.get("of") or {}
    until = data.get("until_s")
    return Compensation(
        tool=str(data["tool"]),
        argument=of.get("arg"),
        result=of.get("result"),
        strength=str(data.get("strength") or "weak"),
        until_s=None if until is None else float(until),
    )


def _p99(data: Any) -> float:
    """A profile of too few samples says nothing: the cautious value stands in, unless the profile is slower still."""
    if not isinstance(data, Mapping) or not data.get("p99_s"):
        return DEFAULT_P99_S
    p99 = float(data["p99_s"])
    samples = data.get("samples")
    return max(p99, DEFAULT_P99_S) if samples is not None and samples < FEW_SAMPLES else p99
