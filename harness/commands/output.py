"""How commands print: JSON on standard output and nothing else there, or plain lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from harness.errors import InputError
from reports.text import visible


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")
    sys.stdout.buffer.flush()


def print_lines(lines: Iterable[str]) -> None:
    """Lines on standard output, without anything that a terminal would obey."""
    sys.stdout.writelines(f"{visible(line)}\n" for line in lines)


def output_folder(out: Path) -> None:
    """Make the folder that `--out` names. Raises `InputError` where a file is in the way."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"--out {out}: is a file, or lies below one; name a folder") from None
