"""YAML with line marks, read strictly: the one door to PyYAML.

A file becomes a `Document`; its parts are read through `Fields`, which collects every fault of the file with its
line (and a "did you mean") instead of stopping at the first. Refused beyond YAML's own rules: duplicate keys, keys
nobody reads, and the words `on`, `off`, `yes`, `no`, which YAML 1.1 silently turns into true and false. Anchors and
aliases, tags, deep nesting and numbers beyond all bounds are refused as well: what a file says is what stands in it.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from harness.errors import InputError
from reports.text import plain

Path_ = tuple[str | int, ...]
_SWITCH_WORDS = frozenset({"on", "off", "yes", "no", "y", "n"})
_DEEPEST = 100
_STANDARD = "tag:yaml.org,2002:"
_COLLECTIONS: dict[type[yaml.Node], str] = {yaml.MappingNode: f"{_STANDARD}map", yaml.SequenceNode: f"{_STANDARD}seq"}
_SCALARS = frozenset(_STANDARD + name for name in ("str", "int", "float", "bool", "null", "timestamp"))
_LONGEST_ECHO = 60
_LONGEST_MESSAGE = 1000
LARGEST = 10**12
"""No number that is read field by field may be larger: as seconds these are thirty thousand years."""
_LARGEST_INTEGER = 2**63 - 1


class _Refused(Exception):
    """What stops the reading of a file: its 1-based line and the sentence."""

    def __init__(self, line: int, message: str) -> None:
        self.line, self.message = line, message
        super().__init__(message)


class _Loader(yaml.SafeLoader):
    """Composes nodes as PyYAML does, without what lets a small text become an endless or a huge value."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1 if event.start_mark else 1
        if getattr(event, "anchor", None) is not None:
            raise _Refused(
                line,
                "anchors and aliases (`&name`, `*name`) are not read here; write the value out, or quote the text",
            )
        if self._depth >= _DEEPEST:
            raise _Refused(line, f"is nested more than {_DEEPEST} levels deep")
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


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
        self._note(self.line(where), message)

    def root(self, what: str) -> Fields:
        """The whole file as a mapping; `what` names it in messages ("a scenario").

        Raises `InputError` where it is empty or no mapping: nothing could be said of its fields.
        """
        if self.data is None and not self.faults:
            self.refuse((), f"is empty; it has to hold {what}")
        fields = Fields(self, (), self.data, what)
        if not isinstance(self.data, dict):
            self.raise_faults()
        return fields

    def raise_faults(self) -> None:
        """Raise `InputError` with everything noted, if anything was, from the top of the file to its end."""
        if self.faults:
            raise InputError(sorted(self.faults, key=lambda fault: int(fault.removeprefix(self.name).split(":")[1])))

    def _note(self, line: int, message: str) -> None:
        told = re.sub(r"\S{61,}", lambda word: plain(word[0], limit=_LONGEST_ECHO), message)
        self.faults.append(f"{self.name}:{line}: {plain(told, limit=_LONGEST_MESSAGE)}")

    def _load(self, text: str | None) -> Any:
        try:
            if text is None:
                text = self.path.read_text(encoding="utf-8")
            node = yaml.compose(text, Loader=_Loader)
        except OSError as error:
            self._note(1, f"cannot be read: {error.strerror}")
        except UnicodeDecodeError as error:
            self._note(1, f"is not UTF-8 text: {error.reason}")
        except _Refused as error:
            self._note(error.line, error.message)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._note(mark.line + 1 if mark else 1, f"is not valid YAML: {error.problem or error.context}")
        except yaml.reader.ReaderError as error:
            line = (text or "").count("\n", 0, error.position) + 1
            self._note(line, f"is not valid YAML: the character U+{int(error.character):04X} may not stand here")
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            # Among them what PyYAML itself fails at, such as an escape that is no character ("\\UFFFFFFFF").
            self._note(1, f"is not valid YAML: {error}")
        else:
            return None if node is None else self._plain(node, ())
        return None

    def _plain(self, node: yaml.Node, where: Path_) -> Any:
        self._lines[where] = node.start_mark.line + 1
        if node.tag not in _SCALARS and node.tag != _COLLECTIONS.get(type(node)):
            tag = node.tag.replace(_STANDARD, "!!")
            self.refuse(where, f"the tag `{shown(tag)}` is not read here; write the value without it")
            if isinstance(node, yaml.ScalarNode):
                return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, where)
        if isinstance(node, yaml.SequenceNode):
            return [self._plain(item, (*where, index)) for index, item in enumerate(node.value)]
        if not isinstance(node, yaml.ScalarNode):
            return None
        if node.style is None and node.value.lower() in _SWITCH_WORDS:
            self.refuse(where, f"`{node.value}` is read as true or false by YAML; write true, false or quote it")
        return self._scalar(node, where)

    def _scalar(self, node: yaml.ScalarNode, where: Path_) -> Any:
        named = node.tag.removeprefix(_STANDARD)
        if named in ("int", "float") and len(node.value) > _LONGEST_ECHO:
            self.refuse(where, f"a number of {len(node.value)} characters is too long to be read")
            return None
        try:
            value = yaml.SafeLoader("").construct_object(node)
        except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, ArithmeticError):
            # PyYAML lets whatever goes wrong inside come out, such as KeyError for `!!bool maybe`.
            self.refuse(where, f"`{shown(node.value)}` cannot be read as !!{named}; put text in quotes")
            return None
        endless = isinstance(value, float) and not math.isfinite(value)
        if endless or (isinstance(value, int) and abs(value) > _LARGEST_INTEGER):
            self.refuse(
                where, f"`{shown(node.value)}` is no number that can be worked with; leave out what is unbounded"
            )
            return None
        return value

    def _mapping(self, node: yaml.MappingNode, where: Path_) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._note(key_node.start_mark.line + 1, "a name has to be text, not a list or a mapping")
                continue
            key = str(key_node.value)
            self._lines.setdefault((*where, key), key_node.start_mark.line + 1)
            if key_node.tag == "tag:yaml.org,2002:merge":
                self.refuse((*where, key), "merge keys (`<<`) are not read here; write the fields out")
            elif key in result:
                self._note(
                    key_node.start_mark.line + 1,
                    f"`{shown(key)}` stands here a second time "
                    f"(first in line {self.line((*where, key))}); keep one of them",
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
        if required and not value.strip():
            self.refuse(key, f"`{key}` must not be empty")
            return default or ""
        return value

    def integer(
        self, key: str, default: int | None = None, *, required: bool = False, least: int = 0, most: int = LARGEST
    ) -> int:
        """A whole number from `least` to `most`; `default` (else `least`) where it is absent."""
        value = self._take(key, required=required)
        fallback = least if default is None else default
        if value is None:
            return fallback
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.refuse(key, f"`{key}` has to be a whole number of at least {least}, not {shown(repr(value))}")
            return fallback
        if value > most:
            self.refuse(key, f"`{key}` has to be a whole number of at most {most}, not {value}")
            return fallback
        return value

    def number(self, key: str, default: float | None = None, *, least: float = 0.0) -> float | None:
        """A finite number from `least` to `LARGEST`; `default` where it is absent."""
        value = self._take(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
            self.refuse(key, f"`{key}` has to be a number of at least {least:g}, not {shown(repr(value))}")
            return default
        if value > LARGEST:
            self.refuse(key, f"`{key}` has to be a number of at most {LARGEST:g}, not {value}")
            return default
        return float(value)

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false; `default` where it is absent."""
        value = self._take(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.refuse(key, f"`{key}` has to be true or false, not {shown(repr(value))}")
            return default
        return value

    def choice(self, key: str, choices: Iterable[str], default: str) -> str:
        """One of some words; `default` where it is absent."""
        allowed = list(choices)
        value = self._take(key)
        if value is None:
            return default
        if value not in allowed:
            self.refuse(
                key, f"`{key}` cannot be {shown(repr(value))}; it is {one_of(allowed)}{did_you_mean(value, allowed)}"
            )
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
                self.refuse(key, f"{self.what} has no field `{shown(key)}`{hint}")

    def _take(self, key: str, *, required: bool = False) -> Any:
        self._known.add(key)
        value = self.data.get(key)
        if value is None and required:
            self.refuse((), f"{self.what} needs `{key}`")
        return value


def did_you_mean(word: object, choices: Iterable[str]) -> str:
    """`; did you mean X?` where a choice is close to the word, else nothing."""
    close = difflib.get_close_matches(str(word)[:_LONGEST_ECHO], list(choices), n=1, cutoff=0.6)
    return f"; did you mean `{close[0]}`?" if close else ""


def shown(value: object) -> str:
    """A value of a file as messages repeat it: one line, cut, nothing that a terminal would obey."""
    return plain(value, limit=_LONGEST_ECHO)


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
    return names.get(type(value), shown(repr(value)))
