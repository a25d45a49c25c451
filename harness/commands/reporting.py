"""`stormproof report`: renders a result directory again."""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.commands.run import show
from harness.errors import InputError
from reports.render import render_all
from reports.results import ResultsError


def execute(
    directory: Path, *, html: Path | None, junit: Path | None, markdown: Path | None, json: bool, quiet: bool
) -> int:
    """Write every report of the directory again, copies where asked for, and return the exit code of its runs."""
    try:
        summary = render_all(directory)
    except ResultsError as error:
        raise InputError(str(error)) from None
    for name, copy in (("report.html", html), ("junit.xml", junit), ("summary.md", markdown)):
        if copy is not None and copy.resolve() != (directory / name).resolve():
            shutil.copyfile(directory / name, copy)
    return show(summary, json=json, quiet=quiet, directory=directory)
