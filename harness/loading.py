"""YAML with line marks, read strictly: the one door to PyYAML.

A file becomes a `Document`; its parts are read through `Fields`, which collects every fault of the file with its
line (and a "did you mean") instead of stopping at the first. Refused beyond YAML's own rules: duplicate keys, keys
nobody reads, and the words `on`, `off`, `yes`, `no`, which YAML 1.1 silently turns into true and false.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from harness.errors import InputError

Path_ = tuple[str | int, ...]
_SWITCH_WORDS = frozenset({"on", "off", "yes", "no", "y", "n"})


class Document:
    """One YAML file: plain data, the line of every value, and the faults found so far."""

    def __init__(self, path: Path, text: str | None = None) -> None:
        self.path = path
        self.faults: list[str] = []
        self._lines: dict[Path_, int] = {}
        self.data = self._load(text)

    @property
    def name(self) -> str:
        """The path as the user would write it: relative where the file is below the working folder."""
        try:
            return str(self.path.resolve().relative_to(Path.cwd()))
        except ValueError:
            return str(self.path)

    def line(self, where: Path_) -> int:
        """The 1-based line of the value at `where`, or of the nearest value around it."""
        while where and where not in self._lines:
            where = where[:-1]
        return self._lines.get(where, 1)

    def refuse(self, where: Path_, message: str) -> None:
        """Note one fault, as `FILE:LINE: message`."""
        self.faults.append(f"{self.name}:{self.line(where)}: {message}")

    def root(self, what: str) -> Fields:
        """The whole file as a mapping; `what` names it in messages ("a scenario")."""
        return Fields(self, (), self.data, what)

    def raise_faults(self) -> None:
        """Raise `InputError` with everything noted, if anything was, from the top of the file to its end."""
        if self.faults:
            raise InputError(sorted(self.faults, key=lambda fault: int(fault.removeprefix(self.name).split(":")[1])))

    def _load(self, text: str | None) -> Any:
        try:
            if text is None:
                text = self.path.read_text(encoding="utf-8")
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except OSError as error:
            self.faults.append(f"{self.name}:1: cannot be read: {error.strerror}")
        except UnicodeDecodeError as error:
            self.faults.append(f"{self.name}:1: is not UTF-8 text: {error.reason}")
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 1
            self.faults.append(f"{self.name}:{line}: is not valid YAML: {error.problem or error.context}")
        except yaml.YAMLError as error:
            self.faults.append(f"{self.name}:1: is not valid YAML: {error}")
        else:
            return None if node is None else self._plain(node, ())
        return None

    def _plain(self, node: yaml.Node, where: Path_) -> Any:
        self._lines[where] = node.start_mark.line + 1
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, where)
        if isinstance(node, yaml.SequenceNode):
            return [self._plain(item, (*where, index)) for index, item in enumerate(node.value)]
        if not isinstance(node, yaml.ScalarNode):
            return None
        if node.style is None and node.value.lower() in _SWITCH_WORDS:
            self.refuse(where, f"`{node.value}` is read as true or false by YAML; write true, false or quote it")
        try:
            return yaml.SafeLoader("").construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            self.refuse(where, f"`{node.value}` cannot be read: {error}")
            return None

    def _mapping(self, node: yaml.MappingNode, where: Path_) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            self._lines.setdefault((*where, key), key_node.start_mark.line + 1)
            if key_node.tag == "tag:yaml.org,2002:merge":
                self.refuse((*where, key), "merge keys (`<<`) are not read here; write the fields out")
            elif key in result:
                self.faults.append(
                    f"{self.name}:{key_node.start_mark.line + 1}: `{key}` stands here a second time "
                    f"(first in line {self.line((*where, key))}); keep one of them"
                )
            else:
                result[key] = self._plain(value_node, (*where, key))
                self._lines[(*where, key)] = key_node.start_mark.line + 1
        return result


class Fields:
    """A mapping of a document, read field by field; `done` refuses what nobody has read."""

    def __init__(self, document: Document, where: Path_, data: Any, what: str) -> None:
        self.document, self.where, self.what = document, where, what
        self._known: set[str] = set()
        if data is not None and not isinstance(data, dict):
            self.refuse((), f"{what} has to be a mapping of names to values, not {_kind(data)}")
        self.data: dict[str, Any] = data if isinstance(data, dict) else {}

    def __contains__(self, key: str) -> bool:
        return self.data.get(key) is not None

    def refuse(self, where: str | Path_, message: str) -> None:
        """Note a fault at a field of this mapping (or at the mapping itself for `()`)."""
        tail = (where,) if isinstance(where, str) else where
        self.document.refuse((*self.where, *tail), message)

    def text(self, key: str, default: str | None = None, *, required: bool = False) -> str:
        """A non-empty text; `default` (else "") where it is absent."""
        value = self._take(key, required=required)
        if value is None:
            return default or ""
        if not isinstance(value, str):
            self.refuse(key, f"`{key}` has to be text, not {_kind(value)}; put it in quotes")
            return default or ""
        return value

    def integer(self, key: str, default: int | None = None, *, required: bool = False, least: int = 0) -> int:
        """A whole number of at least `least`; `default` (else `least`) where it is absent."""
        value = self._take(key, required=required)
        fallback = least if default is None else default
        if value is None:
            return fallback
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.refuse(key, f"`{key}` has to be a whole number of at least {least}, not {value!r}")
            return fallback
        return value

    def number(self, key: str, default: float | None = None, *, least: float = 0.0) -> float | None:
        """A number of at least `least`; `default` where it is absent."""
        value = self._take(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
            self.refuse(key, f"`{key}` has to be a number of at least {least:g}, not {value!r}")
            return default
        return float(value)

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false; `default` where it is absent."""
        value = self._take(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.refuse(key, f"`{key}` has to be true or false, not {value!r}")
            return default
        return value

    def choice(self, key: str, choices: Iterable[str], default: str) -> str:
        """One of some words; `default` where it is absent."""
        allowed = list(choices)
        value = self._take(key)
        if value is None:
            return default
        if value not in allowed:
            self.refuse(key, f"`{key}` cannot be {value!r}; it is {one_of(allowed)}{did_you_mean(value, allowed)}")
            return default
        return str(value)

    def texts(self, key: str, default: Iterable[str] = ()) -> tuple[str, ...]:
        """A list of texts (a single text counts as a list of one)."""
        value = self._take(key)
        if value is None:
            return tuple(default)
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            self.refuse(key, f"`{key}` has to be a list of texts, not {_kind(value)}")
            return tuple(default)
        return tuple(items)

    def mapping(self, key: str, what: str | None = None) -> Fields:
        """A mapping inside this one (an empty one where it is absent)."""
        return Fields(self.document, (*self.where, key), self._take(key), what or f"`{key}`")

    def mappings(self, key: str, what: str) -> Iterator[Fields]:
        """A list of mappings inside this one, one after the other."""
        value = self._take(key)
        if value is not None and not isinstance(value, list):
            self.refuse(key, f"`{key}` has to be a list (each entry begins with `- `), not {_kind(value)}")
            return
        for index, item in enumerate(value or []):
            yield Fields(self.document, (*self.where, key, index), item, what)

    def anything(self, key: str) -> Any:
        """The value as it stands, whatever it is."""
        return self._take(key)

    def keys(self) -> list[str]:
        """All names in here; reading them so counts them as known."""
        self._known.update(self.data)
        return list(self.data)

    def done(self) -> None:
        """Refuse every name in here that nobody has read."""
        for key in self.data:
            if key not in self._known:
                hint = did_you_mean(key, self._known) or f"; known here: {', '.join(sorted(self._known))}"
                self.refuse(key, f"{self.what} has no field `{key}`{hint}")

    def _take(self, key: str, *, required: bool = False) -> Any:
        self._known.add(key)
        value = self.data.get(key)
        if value is None and required:
            self.refuse((), f"{self.what} needs `{key}`")
        return value


def did_you_mean(word: object, choices: Iterable[str]) -> str:
    """`; did you mean X?` where a choice is close to the word, else nothing."""
    close = difflib.get_close_matches(str(word), list(choices), n=1, cutoff=0.6)
    return f"; did you mean `{close[0]}`?" if close else ""


def one_of(choices: Iterable[str]) -> str:
    """`a, b or c`."""
    words = [f"`{choice}`" for choice in choices]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _kind(value: Any) -> str:
    names = {
        dict: "a mapping",
        list: "a list",
        str: "a text",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return names.get(type(value), repr(value))
