"""What an invariant is to the judge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar

from invariants.facts import Run, World
from invariants.verdict import Outcome
from traces.history import CoreRecord

Hook = Callable[[Run, int, CoreRecord], None]
"""Called with the run, the line and the record of one type the invariant asked for, in file order."""


class Invariant(ABC):
    """One rule of contract section 4, judged in one pass.

    One instance sees a whole history. It notes by `hooks` what only passing records tell, and rules on each run
    exactly once, when the run's world is closing.
    """

    name: ClassVar[str]

    def __init__(self, slot: int) -> None:
        self._slot = slot
        """Its place in `notes` of runs and worlds: what it remembers of them hangs there and goes with them."""

    def hooks(self) -> Mapping[str, Hook]:
        """CoreRecord types of interest. Starts, queueings and finishes that do not count never arrive."""
        return {}

    def run_opened(self, run: Run, line: int) -> None:  # noqa: B027 - not every invariant needs it
        """A run's first record was read; its world, tenant and limits are known."""

    def used(self, run: Run, line: int, record: CoreRecord) -> None:  # noqa: B027 - not every invariant needs it
        """A record, of whatever type, carries tokens or cost."""

    def world_closing(self, world: World) -> None:  # noqa: B027 - not every invariant needs it
        """No record of the world follows; all facts of its runs are complete, and its runs are ruled on next."""

    @abstractmethod
    def rule(self, run: Run) -> Outcome:
        """The violations of the run, or how it stands; None where the invariant does not apply to it."""
