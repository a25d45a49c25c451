"""Whose fault it was: the author's (bad input), or ours. An agent's failure is data, not an error."""

from __future__ import annotations

from collections.abc import Sequence


class InputError(Exception):
    """Bad input or usage, exit code 2: every fault found, each `FILE:LINE: what is wrong, what would be right`."""

    def __init__(self, faults: Sequence[str] | str) -> None:
        self.faults = (faults,) if isinstance(faults, str) else tuple(faults)
        super().__init__("\n".join(self.faults))


class HarnessError(Exception):
    """The harness itself could not do its work, exit code 3."""
