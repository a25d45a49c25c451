"""The files of the repository, as the rules of this folder look at them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

FLOORS = ("agents", "harness", "injectors", "invariants", "reports", "traces", "stormproof")
"""The folders that hold code to ship."""

SHIPPED = (*FLOORS, "scenarios")
"""The folders that travel in a wheel."""


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file: its path from the repository's root, its text and its syntax tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def floor(self) -> str:
        """The top-level folder it stands in."""
        return self.path.split("/", 1)[0]

    @property
    def imports(self) -> list[tuple[int, str]]:
        """Line and full module name of everything it imports, at the top or inside a function."""
        found = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found += [(node.lineno, alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                package = self.path.rsplit("/", node.level)[0].replace("/", ".") + "." if node.level else ""
                found.append((node.lineno, package + (node.module or "")))
        return found


@functools.cache
def sources(*folders: str) -> tuple[Source, ...]:
    """All Python files below the given folders, in the order of their paths."""
    return tuple(_read(path) for folder in folders for path in files_below(folder) if path.suffix == ".py")


def files_below(folder: str) -> Iterator[Path]:
    """All files below a folder of the repository that belong to it, in order."""
    for path in sorted((REPOSITORY / folder).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith("."):
            yield path


def refuse(places: Iterable[str]) -> None:
    """Fail with all the places that break a rule, one a line."""
    found = list(places)
    assert not found, "\n" + "\n".join(found)


def relative(path: Path) -> str:
    """The path from the repository's root."""
    return path.relative_to(REPOSITORY).as_posix()


def _read(path: Path) -> Source:
    text = path.read_text(encoding="utf-8")
    return Source(relative(path), text, ast.parse(text, filename=str(path)))
