"""`stormproof compare`: what changed between two result directories."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.commands.output import print_json
from harness.errors import InputError
from reports.compare import compare, comparison_text
from reports.results import ResultsError


def execute(old: Path, new: Path, *, json: bool, quiet: bool) -> int:
    """Print what changed; exit code 1 where a violation is new."""
    try:
        comparison = compare(old, new)
    except ResultsError as error:
        raise InputError(str(error)) from None
    if json:
        print_json(comparison)
    elif not quiet:
        sys.stdout.write(comparison_text(comparison))
    return comparison.exit_code
