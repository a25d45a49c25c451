"""What changed between two results."""

from __future__ import annotations

import json
from pathlib import Path

from reports.compare import compare, compare_results, comparison_text
from reports.results import Activation, Bound, Results, RunResult
from tests.reports.builders import acts, directory, held, result, violated


def compared(old: list[RunResult], new: list[RunResult]) -> dict[str, list[str]]:
    """The comparison in short, each entry by what tells it."""
    found = compare_results(Results(Path("old"), tuple(old)), Results(Path("new"), tuple(new)))
    return {
        "new": [f"{c.scenario} {c.trace} {c.reason}" for c in found.new_violations],
        "gone": [f"{c.scenario} {c.trace} {c.reason}" for c in found.gone_violations],
        "moved": [f"{m.scenario} {m.trace} {m.before[0]}>{m.after[0]}" for m in found.moved_violations],
        "rates": [f"{m.mechanism} {m.scenario} {m.direction}" for m in found.rates],
        "bounds": [f"{m.mechanism} {m.scenario}" for m in found.bounds],
        "exit": [str(found.exit_code)],
    }


def bad(run_id: str = "r", trace: str = "a", reason: str = "duplicate-key", **fields: int) -> RunResult:
    """A run that violates single-effect."""
    return result(run_id, trace=trace, verdicts=[violated(reason), *held("single-effect")], **fields)


def test_violations_are_new_gone_or_moved() -> None:
    """Scenario, trace and tenant are what tells them apart; run ids may differ."""
    old = [bad("x1", "a"), bad("x2", "b"), bad("x3", "c"), result("x4", trace="d")]
    new = [bad("y1", "a"), result("y2", trace="b"), bad("y3", "c", "key-reused"), bad("y4", "d")]
    found = compared(old, new)
    assert found["new"] == ["204 d duplicate-key"]
    assert found["gone"] == ["204 b duplicate-key"]
    assert found["moved"] == ["204 c duplicate-key>key-reused"]
    assert found["exit"] == ["1"]


def test_what_was_not_run_again_is_not_gone() -> None:
    """A violation whose run is missing, or in which the harness failed, was not fixed."""
    assert compared([bad()], [])["gone"] == []
    broken = result(trace="a", verdicts=[], harness_error="x")
    assert compared([bad()], [broken])["gone"] == []
    assert compared([bad()], [result(trace="a")])["exit"] == ["0"]


def rates(old: Activation, new: Activation) -> list[str]:
    """Moves of one mechanism in one scenario."""
    return compared([result(activations={"retry": old})], [result(activations={"retry": new})])["rates"]


def test_a_rate_moves_when_each_lies_outside_the_others_interval() -> None:
    """Down, up (suspiciously better), and neither for chance or few opportunities."""
    assert rates(acts(40, 36), acts(40, 20)) == ["retry None down", "retry 204 down"]
    assert rates(acts(40, 20), acts(40, 40)) == ["retry None up", "retry 204 up"]
    assert rates(acts(40, 36), acts(40, 33)) == []
    assert rates(acts(40, 38), acts(1, 0)) == ["retry None down", "retry 204 down"]
    assert rates(acts(2, 1), acts(2, 2)) == []


def test_opportunities_that_vanish_are_a_move_too() -> None:
    """A breaker that no longer has a reason to open is worth a question."""
    assert rates(acts(8, 8), acts(0, 0)) == ["retry None gone", "retry 204 gone"]
    assert rates(acts(4, 4), acts(0, 0)) == []


def test_rates_are_compared_over_the_scenarios_of_both() -> None:
    """A scenario that only one result ran moves nothing."""
    old = [result(activations={"retry": acts(40, 40)})]
    new = [result(activations={"retry": acts(40, 40)}), result("r2", number=301, activations={"retry": acts(90, 0)})]
    found = compare_results(Results(Path("old"), tuple(old)), Results(Path("new"), tuple(new)))
    assert found.rates == []
    assert found.scenarios_new == ["301"]


def test_a_threshold_that_changed_is_said() -> None:
    """A rate that holds under a lower floor is another statement."""
    old = [result(expect={"retry": Bound(min=0.9), "dedup": Bound(min=0.5)})]
    new = [result(expect={"retry": Bound(min=0.5), "dedup": Bound(min=0.5)})]
    assert compared(old, new)["bounds"] == ["retry 204"]


def test_the_text_tells_what_to_do_next(tmp_path: Path) -> None:
    """From two directories to sentences with the command that repeats; hostile text stays text."""
    old = directory(tmp_path / "old", result("r1", activations={"retry": acts(40, 40)}))
    message = "twice\x1b[2J\nforged"
    new = directory(
        tmp_path / "new",
        result(
            "r1", activations={"retry": acts(40, 10)}, verdicts=[violated(message=message), *held("single-effect")]
        ),
    )
    found = compare(old, new)
    text = comparison_text(found)
    assert text.startswith("1 new violation\n")
    assert "204 on order-small: single-effect duplicate-key" in text
    assert "$ stormproof run --scenario 204 --trace order-small" in text
    assert "retry in 204: fell from 100 % (40 of 40) to 25 % (10 of 40), outside 91 % – 100 %" in text
    assert "\x1b" not in text
    data = json.loads(found.to_json())
    assert data["exit_code"] == 1
    assert data["rates"][0]["mechanism"] == "retry"


def test_equal_results_say_so(tmp_path: Path) -> None:
    """Nothing changed is a sentence too."""
    path = directory(tmp_path / "a", result())
    assert comparison_text(compare(path, path)).startswith("Nothing changed between")
