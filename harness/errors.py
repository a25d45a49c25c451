"""Whose fault it was: the author's (bad input), or ours. An agent's failure is data, not an error."""

from __future__ import annotations

import errno
import os
import tempfile
import traceback
from collections.abc import Sequence


class InputError(Exception):
    """Bad input or usage, exit code 2: every fault found, each `FILE:LINE: what is wrong, what would be right`."""

    def __init__(self, faults: Sequence[str] | str) -> None:
        self.faults = (faults,) if isinstance(faults, str) else tuple(faults)
        super().__init__("\n".join(self.faults))


class HarnessError(Exception):
    """The harness itself could not do its work, exit code 3."""


def told(error: Exception) -> str:
    """What stopped us, in one sentence. The traceback of a mistake of ours goes to a file that the sentence names."""
    if isinstance(error, HarnessError):
        return str(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        what = "the disk is full" if error.errno == errno.ENOSPC else (error.strerror or str(error))
        return where + what
    what = f"{type(error).__name__}: {error}"
    try:
        handle, name = tempfile.mkstemp(prefix="stormproof-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            traceback.print_exception(error, file=file)
    except OSError:
        return f"{what} (please report it)"
    return f"{what} (please report it; details in {name})"
