"""`stormproof check`: judges recorded histories offline."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.check import check_files, limits_from, print_result
from harness.commands.output import print_json
from reports.text import visible


def execute(files: list[str], *, sort: bool, tools: Path | None, limits: Path | None, json: bool, quiet: bool) -> int:
    """Judge the files as one history, print the verdicts, return the exit code."""
    registry = default_limits = None
    if tools is not None:  # reading YAML costs more than judging a small file
        from harness.inputs import load_tools

        registry = load_tools(tools).registry
    if limits is not None:
        from harness.loading import Document

        default_limits = limits_from(Document(limits))
    result = check_files(files, sort=sort, tools=registry, limits=default_limits)
    for message in (*result.warnings, *result.errors):
        sys.stderr.write(f"{visible(message)}\n")
    if json:
        print_json(result.as_json())
    else:
        print_result(result, sys.stdout, quiet=quiet)
    return result.exit_code
