"""Scenario files become typed values, or are refused with everything that is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import InputError
from harness.scenario import Bound, Scenario, joined, load_scenario, load_scenarios

GOOD = """\
number: 204
version: 2
title: The charge is executed, its answer says it failed
why: Retrying without a stable key
  charges twice.
sets: [ci, nightly]
traces: ["order-*"]
faults:
  - kind: executed-but-failed
    at: {tool: charge, call: 1}
    with: {status: 500}
model: {on_tool_error: repair}
limits: {steps: 20, wall_clock_s: 30, group_concurrency: {payments: 2}}
expect:
  mechanisms: {retry: 1.0, dedup: {min: 0.5, max: 1.0, rare: true}}
"""


def load(text: str, name: str = "204-executed.yaml") -> object:
    """The scenario of that text."""
    return load_scenario(Path(name), text)


def refusals(text: str, name: str = "204-executed.yaml") -> list[str]:
    """What is said against that text."""
    with pytest.raises(InputError) as refused:
        load(text, name)
    return list(refused.value.faults)


def test_everything_of_the_contract() -> None:
    """Every field of the format arrives, faults as faults."""
    scenario = load_scenario(Path("204-executed.yaml"), GOOD)
    assert (scenario.number, scenario.version, scenario.sets) == ("204", "2", ("ci", "nightly"))
    assert scenario.why == "Retrying without a stable key charges twice."
    assert scenario.kinds == ("executed-but-failed",)
    assert scenario.layers == ("tool",)
    assert scenario.places == ("204-executed.yaml:9",)
    assert scenario.model == "repair"
    assert scenario.limits == {"steps": 20, "wall_clock_s": 30.0, "group_concurrency": {"payments": 2.0}}
    assert scenario.mechanisms == {"retry": Bound(least=1.0), "dedup": Bound(least=0.5, most=1.0, rare=True)}
    assert scenario.names_trace("order-small")
    assert not scenario.names_trace("refund")


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (("kind: executed-but-failed", "kind: executed-but-faild"), 9, "did you mean `executed-but-failed`?"),
        (("status: 500", "statsu: 500"), 9, "did you mean `status`?"),
        (("call: 1", "call: 0"), 9, "from 1 on"),
        (("number: 204", "number: 205"), 1, "the file name says 204"),
        (("version: 2", "version: 0"), 2, "at least 1"),
        (("sets: [ci, nightly]", "set: [ci, nightly]"), 6, "did you mean `sets`?"),
        (("retry: 1.0", "retries: 1.0"), 15, "there is no mechanism `retries`"),
        (("min: 0.5", "min: 1.5"), 15, "shares between 0 and 1"),
        (("steps: 20", "stesp: 20"), 13, "did you mean `steps`?"),
        (
            ("  mechanisms: {retry", "  invariants: {singel-effect: held}\n  mechanisms: {retry"),
            15,
            "no invariant `singel-effect`",
        ),
        (("  mechanisms: {retry", "  invariants: {budgets: broken}\n  mechanisms: {retry"), 15, "`held`, `violated`"),
        (("repair", "retry"), 12, "`continue`, `repair` or `give_up`"),
    ],
)
def test_refusals(change: tuple[str, str], line: int, words: str) -> None:
    """Each mistake is named with its line and what would be right."""
    said = refusals(GOOD.replace(*change))
    assert any(text.startswith(f"204-executed.yaml:{line}: ") and words in text for text in said), said


def test_shadowing_faults() -> None:
    """Two faults of which one hides the other are refused."""
    twice = GOOD.replace("model:", "  - kind: status\n    at: {tool: charge}\nmodel:")
    assert any("shadow" in text or "only one can act" in text for text in refusals(twice))


def test_file_name() -> None:
    """The file name carries the number."""
    assert any("has to be named like" in text for text in refusals(GOOD, "executed.yaml"))


def test_duplicate_numbers(tmp_path: Path) -> None:
    """A number used twice is refused, naming both files."""
    (tmp_path / "204-a.yaml").write_text(GOOD)
    (tmp_path / "204-b.yaml").write_text(GOOD)
    with pytest.raises(InputError, match=r"204-b.yaml:1: number 204 is already taken by .*204-a.yaml"):
        load_scenarios([tmp_path])


def test_joined() -> None:
    """Joined scenarios carry all faults under distinct ids and the sterner policy of the model."""
    one = load_scenario(Path("204-executed.yaml"), GOOD)
    other = load_scenario(
        Path("101-slow.yaml"),
        "number: 101\nversion: 1\ntitle: S\nfaults: [{kind: latency, at: {tool: reserve}, with: {seconds: 0.2}}]\n",
    )
    both = joined([other, one])
    assert both.number == "101+204"
    assert [data["id"] for data in both.fault_data] == ["f1", "f2"]
    assert both.model == "repair"
    assert both.kinds == ("latency", "executed-but-failed")


def test_joined_expectations() -> None:
    """A floor that all state holds for the combination at its weakest; one that only some state merely warns."""

    def stating(number: int, expect: str) -> Scenario:
        text = f"number: {number}\nversion: 1\ntitle: T\nfaults: []\nexpect: {{{expect}}}\n"
        return load_scenario(Path(f"{number}-t.yaml"), text)

    both = joined(
        [
            stating(151, "mechanisms: {retry: 1.0, dedup: {min: 0.5, max: 0.9}}, invariants: {budgets: violated}"),
            stating(152, "mechanisms: {retry: 0.5, resume: 1.0}, invariants: {budgets: violated}"),
        ]
    )
    assert both.mechanisms == {
        "retry": Bound(least=0.5),
        "dedup": Bound(least=0.5, most=0.9, rare=True),
        "resume": Bound(least=1.0, rare=True),
    }
    assert both.invariants == {"budgets": "violated"}
    assert joined([stating(151, "invariants: {budgets: violated}"), stating(152, "")]).invariants == {}


def test_joined_worlds() -> None:
    """A combination plays the world that one of its scenarios states; two worlds cannot be played at once."""

    def world(number: int, trace: str) -> Scenario:
        text = (
            f"number: {number}\nversion: 1\ntitle: T\nfaults: []\nworld: {{runs: [{{trace: {trace}, count: 2}}]}}\n"
        )
        return load_scenario(Path(f"{number}-t.yaml"), text)

    plain = load_scenario(Path("204-executed.yaml"), GOOD)
    assert joined([plain, world(151, "fan-out")]).world == world(151, "fan-out").world
    with pytest.raises(InputError, match="151 and 152 each state a world of their own"):
        joined([world(151, "fan-out"), world(152, "order-small")])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("with: {status: 500}", "with: 5"), "`with` has to be a mapping"),
        (("with: {status: 500}", "with: []"), "`with` has to be a mapping"),
        (("kind: executed-but-failed", 'kind: ""'), "`kind` must not be empty"),
        (("title: The charge is executed, its answer says it failed", 'title: " "'), "`title` must not be empty"),
        (
            ("model: {", "world: {runs: [{trace: a, count: 1001}]}\nmodel: {"),
            "`count` has to be a whole number of at most",
        ),
    ],
)
def test_values_that_say_nothing_or_too_much(change: tuple[str, str], words: str) -> None:
    """Parameters that are no mapping, empty names and worlds beyond any machine are refused."""
    (fault,) = refusals(GOOD.replace(*change))
    assert words in fault


def test_no_number_is_made_up() -> None:
    """An empty file is said to be empty, and a file without a number is told of no other."""
    assert refusals("") == ["204-executed.yaml:1: is empty; it has to hold a scenario"]
    assert not any("is 100" in fault for fault in refusals("title: x\n"))
