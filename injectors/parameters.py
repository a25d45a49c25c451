"""Parameters of a fault kind, declared where the field is: type, unit, default, bounds.

One declaration serves the reader of scenario files (which refuses bad values with the reason), the catalogue on the
command line, and the documentation.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

_KEY = "parameter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter. `type`: `number`, `integer`, `text`, `flag` or `choice`; several, joined by `|`, where more
    than one will do. Bounds are inclusive and concern numbers; `optional` lets `null` stand for "not at all"."""

    type: str
    default: Any
    unit: str = ""
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    optional: bool = False

    def refusal(self, value: Any) -> str | None:
        """Why the value will not do, as the end of a sentence; `None` where it will."""
        if value is None:
            return None if self.optional else f"has to be {self.wanted}, not null"
        if any(self._fits(kind, value) for kind in self.type.split("|")):
            return None
        return f"has to be {self.wanted}, not {value!r}"

    def _fits(self, kind: str, value: Any) -> bool:
        if kind == "choice":
            return value in self.choices if isinstance(value, str) else False
        if kind == "text":
            return isinstance(value, str) and bool(value.strip())
        if kind == "flag":
            return isinstance(value, bool)
        wanted = int if kind == "integer" else (int, float)
        if isinstance(value, bool) or not isinstance(value, wanted) or not math.isfinite(value):
            return False
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    @property
    def wanted(self) -> str:
        """The allowed values in words."""
        return " or ".join(self._words(kind) for kind in self.type.split("|"))

    def _words(self, kind: str) -> str:
        if kind == "choice":
            return " or ".join(f"`{choice}`" for choice in self.choices)
        if kind == "flag":
            return "true or false"
        if kind == "text":
            return "a text"
        noun = "a whole number" if kind == "integer" else "a number"
        noun += {"s": " of seconds", "bytes": " of bytes"}.get(self.unit, "")
        if self.least is not None and self.most is not None:
            return f"{noun} from {self.least:g} to {self.most:g}"
        return noun if self.least is None else f"{noun} from {self.least:g} on"

    def to_data(self) -> dict[str, Any]:
        """The parameter as `stormproof scenarios kinds` prints it."""
        data: dict[str, Any] = {"type": self.type, "unit": self.unit or None, "default": self.default}
        bounds = {"least": self.least, "most": self.most, "choices": list(self.choices) or None}
        return data | {name: value for name, value in bounds.items() if value is not None}


def _field(parameter: Parameter) -> Any:
    return dataclasses.field(default=parameter.default, metadata={_KEY: parameter})


def number(default: float | None, *, unit: str = "", least: float | None = None, most: float | None = None) -> Any:
    """A field for a finite number; a default of `None` makes it optional."""
    return _field(
        Parameter(type="number", default=default, unit=unit, least=least, most=most, optional=default is None)
    )


def integer(default: int | None, *, unit: str = "", least: float | None = None, most: float | None = None) -> Any:
    """A field for a whole number; a default of `None` makes it optional."""
    return _field(
        Parameter(type="integer", default=default, unit=unit, least=least, most=most, optional=default is None)
    )


def text(default: str | None) -> Any:
    """A field for a text that is not blank; a default of `None` makes it optional."""
    return _field(Parameter(type="text", default=default, optional=default is None))


def flag(default: bool) -> Any:
    """A field for true or false."""
    return _field(Parameter(type="flag", default=default))


def choice(default: str, *others: str) -> Any:
    """A field for one of a few words; the first is the default."""
    return _field(Parameter(type="choice", default=default, choices=(default, *others)))


def choice_or_ordinal(default: str, *others: str) -> Any:
    """A field for one of a few words, or a number counted from 1."""
    return _field(Parameter(type="choice|integer", default=default, choices=(default, *others), least=1))


def parameters_of(kind: type) -> dict[str, Parameter]:
    """The declared parameters of a fault kind, in the order of its fields."""
    return {field.name: field.metadata[_KEY] for field in dataclasses.fields(kind) if _KEY in field.metadata}
