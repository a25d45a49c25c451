"""Recordings of other tools, read as traces. A new format is one module and one line in `IMPORTERS`."""

from __future__ import annotations

from traces.importers.base import Imported, Importer, ImportFault, ImportReport
from traces.importers.tau_bench import TauBench

IMPORTERS: tuple[Importer, ...] = (TauBench(),)

__all__ = ["IMPORTERS", "ImportFault", "ImportReport", "Imported", "Importer", "importer_named"]


def importer_named(name: str) -> Importer | None:
    """The importer of a format, such as `tau-bench`."""
    return next((importer for importer in IMPORTERS if importer.name == name), None)
