"""Wilson intervals against known numbers, and what is to be thought of a rate."""

from __future__ import annotations

import pytest

from reports.rates import activation_rates, gates, percent, wilson
from reports.results import Bound
from tests.reports.builders import acts, result


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17, 857-872, table I, method 3 (score interval).
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (20, 20, 0.8389, 1.0),
        (0, 0, 0.0, 1.0),
    ],
)
def test_wilson_gives_the_published_intervals(successes: int, trials: int, low: float, high: float) -> None:
    """The score interval without continuity correction, to four digits."""
    assert wilson(successes, trials) == pytest.approx((low, high), abs=5e-5)


def test_every_known_mechanism_has_a_row() -> None:
    """What never had an opportunity is a row too, not an absence."""
    rates = activation_rates([result()])
    assert len(rates) >= 25
    assert {rate.status for rate in rates.values()} == {"no-opportunity"}
    assert rates["retry"].rate is None
    assert (rates["retry"].low, rates["retry"].high) == (0.0, 1.0)


def status(mechanism: str, seen: tuple[int, int], bound: Bound | None = None) -> str:
    """The status of one mechanism with these counts under this bound."""
    run = result(activations={mechanism: acts(*seen)}, expect={mechanism: bound} if bound else {})
    return activation_rates([run])[mechanism].status


def test_silent_needs_five_opportunities() -> None:
    """Four are too few to call a mechanism silent."""
    assert status("retry", (4, 0)) == "ok"
    assert status("retry", (5, 0)) == "silent"
    assert status("retry", (5, 1)) == "ok"


def test_a_stop_that_always_acts_is_excessive_unless_the_scenario_asks_for_it() -> None:
    """Above 0.95 a stop is suspicious by default; a declared floor says it is wanted."""
    assert status("deadline_stop", (20, 20)) == "excessive"
    assert status("deadline_stop", (20, 19)) == "ok"
    assert status("retry", (20, 20)) == "ok"
    assert status("deadline_stop", (20, 20), Bound(min=1.0)) == "ok"


def test_declared_bounds_come_first() -> None:
    """Under the floor, above the top, and a floor over nothing."""
    assert status("retry", (10, 4), Bound(min=0.5)) == "below-floor"
    assert status("retry", (10, 5), Bound(min=0.5)) == "ok"
    assert status("retry", (10, 9), Bound(max=0.8)) == "excessive"
    assert status("retry", (0, 0), Bound(min=0.5)) == "no-opportunity"


def test_bounds_are_judged_over_all_runs_of_their_scenario() -> None:
    """One run under the floor is fine when the scenario as a whole is not."""
    runs = [
        result("r1", activations={"retry": acts(1, 0)}, expect={"retry": Bound(min=0.5)}),
        result("r2", activations={"retry": acts(3, 3)}, expect={"retry": Bound(min=0.5)}),
        result("r3", number=205, activations={"retry": acts(4, 1)}, expect={"retry": Bound(min=0.5, rare=True)}),
    ]
    found = {gate.scenario: gate for gate in gates(runs)}
    assert (found[204].problem, found[205].problem) == ("", "below-floor")
    assert not found[205].decides
    assert found[205].sentence() == "retry acted at 1 of 4 opportunities (25 %), under its floor of 50 %"
    assert activation_rates(runs)["retry"].floor == 0.5


def test_runs_in_which_the_harness_failed_count_for_nothing() -> None:
    """Their counts say something about us, not about the agent."""
    broken = result("r2", activations={"retry": acts(9, 0)}, harness_error="the proxy fell")
    assert activation_rates([broken])["retry"].opportunities == 0


@pytest.mark.parametrize(
    ("rate", "text"),
    [(None, "–"), (1.0, "100 %"), (0.999, "99.9 %"), (0.0, "0 %"), (0.001, "0.1 %"), (0.874, "87 %")],
)
def test_percentages_never_round_to_all_or_nothing(rate: float | None, text: str) -> None:
    """99.9 % is not 100 %."""
    assert percent(rate) == text
