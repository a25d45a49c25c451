"""effect-provenance: every sentence of contract section 4.8, as small histories."""

from __future__ import annotations

import pytest

from tests.invariants.shorthand import Fields, Said, call, case, done, effect, ended, of, record, said


def asked(complete: bool | None = True, **fields: object) -> Fields:
    """The model's own words asked for `charge` with arguments `d`."""
    return record("model_tool_call", **{"complete": complete, "tool": "charge", "args_digest": "d", **fields})


ACTED = effect("e", args_digest="d")

CASES = [
    case("asked for in full", "held", asked(), ACTED),
    case("asked for in a cut message", [("cut-arguments", (1, 3))], asked(False), asked(False), ACTED),
    case("first cut, then in full", "held", asked(False), asked(), ACTED),
    case("nobody said that the message was whole", [("cut-arguments", (1, 2))], asked(None), ACTED),
    case("never asked for", [("unplanned", (2,))], asked(tool="ship"), ACTED),
    case("asked for with other arguments", [("unplanned", (2,))], asked(args_digest="x"), ACTED),
    case("a missing digest of the request equals any", "held", asked(args_digest=None), ACTED),
    case("a missing digest of the effect equals any", "held", asked(), effect("e")),
    case("asked for afterwards", [("unplanned", (1,))], ACTED, asked()),
    case(
        "asked for after the call was started",
        [("unplanned", (3,))],
        call("a"),
        asked(),
        effect("e", attempt_id="a", args_digest="d"),
    ),
    case(
        "asked for before the call was started",
        "held",
        asked(),
        call("a"),
        effect("e", attempt_id="a", args_digest="d"),
    ),
    case("asked for by another run", [("unplanned", (3,))], *of("r", asked(tool="ship")), *of("b", asked()), ACTED),
    case("a missing tool equals a missing one", "held", asked(tool=None), effect("e", tool=None, args_digest="d")),
    case("one request may bear several effects", "held", asked(), ACTED, effect("f", args_digest="d")),
    case(
        "both reasons, in the order of their lines",
        [("unplanned", (2,)), ("cut-arguments", (1, 3))],
        asked(False),
        effect("f", tool="ship"),
        ACTED,
    ),
    case(
        "a claim goes back to a request too",
        [("unplanned", (3,))],
        asked(tool="ship"),
        call("a", args_digest="d"),
        done("a"),
    ),
    case("no effect", "vacuous", asked(), ended()),
    case("no words of the model on record", [], ACTED, ended()),
]


@pytest.mark.parametrize(("expected", "records", "run"), CASES)
def test_effect_provenance(expected: Said, records: tuple[Fields, ...], run: str) -> None:
    """The invariant says of this history exactly what the title claims, and nothing of runs without such words."""
    assert said("effect-provenance", records, run=run) == expected
