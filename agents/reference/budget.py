"""Hard budgets: one absolute deadline per run, and an account of tokens and cost.

Time is never handed out anew: every scope is an instant fixed when the run began, whatever is retried or restarted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agents.reference.errors import Failure, RunStopped

KEPT_BACK: Final = 0.2
"""Share of the wall clock that forward work never touches: it belongs to compensation."""

MAX_OUTPUT: Final = 4096
LEAST_OUTPUT: Final = 64


@dataclass(frozen=True, slots=True)
class Scope:
    """A share of the run's time: calls carry the deadline `at`, and must be done by `until`."""

    name: str
    at: float
    until: float
    allotted_s: float

    def remaining(self, now: float) -> float:
        """Seconds to the carried deadline, never below zero."""
        return max(0.0, self.at - now)

    def fits(self, need_s: float, now: float) -> bool:
        """Whether something that needs `need_s` seconds may still be started."""
        return now + need_s <= self.until


@dataclass(frozen=True, slots=True)
class TimePlan:
    """How time is shared out. A restart gives no new time to forward work; undoing may use `recovery_s` more."""

    started_at: float
    wall_clock_s: float
    recovery_s: float = 0.0

    @property
    def forward(self) -> Scope:
        """Everything before a decision to undo; it leaves the share kept back untouched."""
        end = self.started_at + self.wall_clock_s
        return Scope("root", end, end - KEPT_BACK * self.wall_clock_s, self.wall_clock_s)

    @property
    def compensation(self) -> Scope:
        """Resolving and undoing: the share kept back, and the time for recovery."""
        end = self.started_at + self.wall_clock_s + self.recovery_s
        return Scope("compensation", end, end, KEPT_BACK * self.wall_clock_s + self.recovery_s)


def exhausted(budget: str, message: str) -> RunStopped:
    """The explicit end that goes with an exhausted budget."""
    return RunStopped(Failure("budget_exhausted", f"{budget}: {message}"), budget=budget)


@dataclass(slots=True)
class Account:
    """Tokens and money of the run, models' calls included that brought no answer."""

    tokens: int | None = None
    cost_usd: float | None = None
    input_price: float = 3.0
    output_price: float = 15.0
    used_input: int = 0
    used_output: int = 0
    last_input: int = 0
    last_output: int = 0
    longest_output: int = 0
    pledged: tuple[int, int] = (0, 0)
    """Tokens of the call under way, for the case that its process does not live to see the bill."""

    @property
    def used_cost(self) -> float:
        """Dollars spent so far."""
        return self.price(self.used_input, self.used_output)

    def price(self, input_tokens: int, output_tokens: int) -> float:
        """Dollars for one call."""
        return (input_tokens * self.input_price + output_tokens * self.output_price) / 1e6

    def estimate_input(self, characters: int) -> int:
        """Tokens that a request will count: on the high side, since the bill comes afterwards."""
        return max(characters // 3, self.last_input + self.last_output)

    def allow_output(self, input_tokens: int, wanted: int = MAX_OUTPUT) -> int:
        """How long the next answer may be, at most `wanted`. Raises `RunStopped` where not even a short one fits."""
        least = max(LEAST_OUTPUT, self.longest_output)
        room = wanted
        if self.tokens is not None:
            room = min(room, self.tokens - self.used_input - self.used_output - input_tokens)
            if room < least:
                raise exhausted("tokens", f"{self.used_input + self.used_output} of {self.tokens} used")
        if self.cost_usd is not None:
            left = self.cost_usd - self.used_cost - self.price(input_tokens, 0)
            affordable = int(left * 1e6 / self.output_price) if self.output_price else room
            if affordable < least:
                raise exhausted("cost", f"{self.used_cost:.4f} of {self.cost_usd} dollars used")
            room = min(room, affordable)
        return room

    def pledge(self, input_tokens: int) -> None:
        """Set aside what a call about to be made will cost, as far as one can tell."""
        self.pledged = (input_tokens, self.last_output)

    def book(self, input_tokens: int, output_tokens: int) -> None:
        """Write down what a call used, or is assumed to have used."""
        self.pledged = (0, 0)
        self.used_input += input_tokens
        self.used_output += output_tokens
        self.last_input, self.last_output = input_tokens, output_tokens
        self.longest_output = max(self.longest_output, output_tokens)

    def as_json(self) -> dict[str, int]:
        """What a later process of the run must know."""
        return {
            "used_input": self.used_input + self.pledged[0],
            "used_output": self.used_output + self.pledged[1],
            "last_input": self.last_input,
            "last_output": self.last_output,
            "longest_output": self.longest_output,
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take over what earlier processes used."""
        for name in self.as_json():
            setattr(self, name, int(data.get(name, 0)))
