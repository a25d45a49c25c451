"""What one naive rule thinks of one run, before it becomes verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field

TOLERANCE = 1e-6
"""Section 4: "Comparisons of times and sums allow 1e-6" (seconds, tokens, dollars)."""


@dataclass(slots=True)
class Opinion:
    """Every proof of a violation found, and what is to be said where there is none."""

    unobservable: bool = False
    vacuous: bool = False
    proofs: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)

    def told(self, reason: str, *lines: int) -> None:
        """One more proof: "the 1-based numbers of the lines that prove it, ascending"."""
        self.proofs.append((reason, tuple(sorted(lines))))

    def violations(self) -> list[tuple[str, tuple[int, ...]]]:
        """ "Per run and reason the proof with the smallest breaking line is given (of several, the one whose
        lines are smallest); reasons stand in the order of that line, then by name"."""
        best: dict[str, tuple[int, ...]] = {}
        for reason, lines in self.proofs:
            if reason not in best or (lines[-1], lines) < (best[reason][-1], best[reason]):
                best[reason] = lines
        return sorted(best.items(), key=lambda item: (item[1][-1], item[0]))


def exceeds(value: float, limit: float) -> bool:
    """Whether a time or sum is greater than its limit, the tolerance allowed."""
    return value > limit + TOLERANCE
