"""What an importer is and what it reports (contract sections 1 and 8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from traces.trace import Trace


class ImportFault(ValueError):
    """A file that is not of the format at all; `line` is 0 where no line is to blame."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        self.path, self.line, self.message = path, line, message
        super().__init__(f"{path}:{line}: {message}" if line else f"{path}: {message}")


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What came out of an import. `skipped` names everything of the source that is in no trace, `notes` what is in
    one but not as the source has it; both as (source, why)."""

    traces: int = 0
    tool_calls: int = 0
    writes: int = 0
    failed_writes: int = 0
    skipped: tuple[tuple[str, str], ...] = ()
    notes: tuple[tuple[str, str], ...] = ()

    def __add__(self, other: ImportReport) -> ImportReport:
        return ImportReport(
            self.traces + other.traces,
            self.tool_calls + other.tool_calls,
            self.writes + other.writes,
            self.failed_writes + other.failed_writes,
            self.skipped + other.skipped,
            self.notes + other.notes,
        )

    def as_json(self) -> dict[str, Any]:
        """The machine-readable answer of `stormproof import`."""
        return {
            "traces": self.traces,
            "tool_calls": self.tool_calls,
            "writes": self.writes,
            "failed_writes": self.failed_writes,
            "skipped": _told(self.skipped),
            "notes": _told(self.notes),
        }


def _told(entries: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"source": source, "why": why} for source, why in entries]


@dataclass(frozen=True, slots=True)
class Imported:
    """The traces of one file, masked, and the report on it. `writing` names the traces that changed the world: those
    with at least one write that succeeded."""

    traces: tuple[Trace, ...]
    report: ImportReport
    writing: frozenset[str] = frozenset()


class Importer(Protocol):
    """Reads one format."""

    @property
    def name(self) -> str: ...

    def read(self, path: Path) -> Imported:
        """The traces in a file; raises `ImportFault` where it is not of this format, `OSError` where unreadable."""
        ...
