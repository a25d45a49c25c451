"""`stormproof check`: judges recorded histories offline."""

from __future__ import annotations

from pathlib import Path

from harness.check import run_check
from harness.loading import Document


def execute(files: list[str], *, sort: bool, tools: Path | None, limits: Path | None, json: bool, quiet: bool) -> int:
    """Judge the files as one history, print the verdicts, return the exit code."""
    raise NotImplementedError(files, sort, _data(tools), _data(limits), json, quiet, run_check)


def _data(path: Path | None) -> object:
    if path is None:
        return None
    document = Document(path)
    document.raise_faults()
    return document.data
