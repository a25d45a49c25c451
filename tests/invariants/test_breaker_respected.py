"""breaker-respected: every sentence of contract section 4.5, as small histories."""

from __future__ import annotations

import pytest

from tests.invariants.shorthand import Fields, Said, call, case, done, exited, of, record, refused, said, started


def turned(to: str | None, tool: str | None = "charge") -> Fields:
    """The breaker of a tool changed its state."""
    return record("breaker_state_changed", to=to, tool=tool)


CASES = [
    case("a call while open", [("call-while-open", (1, 2))], turned("open"), call("a"), call("b")),
    case("another tool", "held", turned("open"), call("a", tool="ship")),
    case("another run", "held", *of("a", turned("open")), *of("b", call("x")), run="a"),
    case("calls in flight at the opening", "held", call("a"), turned("open"), done("a")),
    case("a second start of a call in flight is none", "held", call("a"), turned("open"), call("a")),
    case("refused calls", "held", turned("open"), refused("a")),
    case("a read is a call as well", [("call-while-open", (1, 2))], turned("open"), call("a", effectful=False)),
    case("a call without attempt id is a call", [("call-while-open", (1, 2))], turned("open"), call(None)),
    case("closed again", "held", turned("open"), turned("closed"), call("a")),
    case("any other state ends the ban", "held", turned("open"), turned("paused"), call("a")),
    case("a change to nothing ends the ban", "held", turned("open"), turned(None), call("a")),
    case("an exit of the process ends the ban", "held", turned("open"), exited(), call("a")),
    case(
        "half open allows no probe by default",
        [("call-while-open", (2, 3))],
        turned("open"),
        turned("half_open"),
        call("a"),
    ),
    case(
        "as many probes as allowed",
        "held",
        started(half_open_probes=2),
        turned("open"),
        turned("half_open"),
        call("a"),
        call("b"),
    ),
    case(
        "one probe too many",
        [("call-while-open", (3, 5))],
        started(half_open_probes=1),
        turned("open"),
        turned("half_open"),
        call("a"),
        call("b"),
    ),
    case(
        "probes are counted from the last change",
        "held",
        started(half_open_probes=1),
        turned("open"),
        turned("half_open"),
        call("a"),
        turned("open"),
        turned("half_open"),
        call("b"),
    ),
    case("half open alone, and called", [("call-while-open", (1, 2))], turned("half_open"), call("a")),
    case("half open alone, and not called", "vacuous", turned("half_open")),
    case(
        "a missing tool equals a missing one",
        [("call-while-open", (1, 2))],
        turned("open", None),
        call("a", tool=None),
    ),
    case("a missing tool is no other tool", "held", turned("open", None), call("a")),
    case("no breaker opened", "vacuous", turned("closed"), call("a")),
]


@pytest.mark.parametrize(("expected", "records", "run"), CASES)
def test_breaker_respected(expected: Said, records: tuple[Fields, ...], run: str) -> None:
    """The invariant says of this history exactly what the title claims."""
    assert said("breaker-respected", records, run=run) == expected
