"""`executed-but-timeout`: the work is done, the answer is held back for ever."""

from __future__ import annotations

from tests.injectors.rig import Rig, fault


def test_executed_once_and_silent(rig: Rig) -> None:
    """Not a byte until the agent leaves, one execution."""
    with rig.run(fault("executed-but-timeout")) as run:
        heard = run.charge(timeout=0.3)
        assert (heard.data, heard.end) == (b"", "open")
        assert len(run.executed) == 1
        assert run.outcomes == ["timeout"]
        assert run.fired == 1


def test_every_attempt_where_asked_for(rig: Rig) -> None:
    """`times: always` never lets the call through."""
    with rig.run(fault("executed-but-timeout", times="always")) as run:
        assert [run.charge(timeout=0.1).end for _ in range(3)] == ["open"] * 3
        assert run.fired == 3
