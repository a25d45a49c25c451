"""no-escaped-exception: every sentence of contract section 4.4, as small histories."""

from __future__ import annotations

import pytest

from tests.invariants.shorthand import Fields, Said, case, effect, ended, exited, record, said


def raised(handled: bool | None) -> Fields:
    """An exception."""
    return record("exception", name="KeyError", message="'id'", handled=handled)


CASES = [
    case("handled", "held", raised(True)),
    case("not handled", [("unhandled", (2,))], raised(True), raised(False), raised(False)),
    case("nobody says whether it was handled", "held", raised(None)),
    case("a good end", "held", ended(), exited()),
    case("a non-zero exit code before any end", [("crash", (1,))], exited(exit_code=1)),
    case("a non-zero exit code after the end", "held", ended(), exited(exit_code=1)),
    case("a non-zero exit code that the harness caused", "held", exited(exit_code=1, injected=True)),
    case("ended by a signal", [("crash", (1,))], exited(exit_code=None, signal="SIGSEGV")),
    case("ended by a signal after the end", [("crash", (2,))], ended(), exited(signal=11)),
    case("ended by a signal that the harness sent", "held", exited(signal="SIGKILL", injected=True)),
    case("a signal of zero or nothing is none", "held", exited(signal=0), exited(signal="")),
    case("an exit without code and signal", "held", exited(exit_code=None)),
    case("failed and said why", "held", ended("failed")),
    case("failed without a word", [("unstructured", (1,))], record("run_finished", status="failed")),
    case("failed with an error of no kind", [("unstructured", (1,))], ended("failed", error={"message": "no"})),
    case("failed with an error of empty kind", [("unstructured", (1,))], ended("failed", error={"kind": ""})),
    case("any end may be the unstructured one", [("unstructured", (1,))], ended("failed", error=None), ended()),
    case("other ends need no kind", "held", ended("handed_off")),
    case(
        "several reasons, in the order of their lines",
        [("crash", (1,)), ("unhandled", (2,)), ("unstructured", (3,))],
        exited(exit_code=1),
        raised(False),
        ended("failed", error=None),
    ),
    case("nobody tells of an end", "unobservable", record("run_started"), effect("e")),
]


@pytest.mark.parametrize(("expected", "records", "run"), CASES)
def test_no_escaped_exception(expected: Said, records: tuple[Fields, ...], run: str) -> None:
    """The invariant says of this history exactly what the title claims."""
    assert said("no-escaped-exception", records, run=run) == expected
