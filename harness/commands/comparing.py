"""`stormproof compare`: what changed between two result directories."""

from __future__ import annotations

from pathlib import Path

from harness.commands.output import print_json, print_lines
from harness.errors import InputError
from reports.compare import compare
from reports.results import ResultsError


def execute(old: Path, new: Path, *, json: bool, quiet: bool) -> int:
    """Print what changed; exit code 1 if there are violations that were not there before."""
    try:
        comparison = compare(old, new)
    except ResultsError as error:
        raise InputError(str(error)) from None
    if json:
        print_json(comparison)
    else:
        print_lines(comparison.lines(quiet=quiet))
    return 1 if comparison.new else 0
