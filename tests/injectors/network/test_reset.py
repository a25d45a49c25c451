"""`reset`: the connection is torn down by a TCP RST."""

from __future__ import annotations

import httpx
import pytest

from tests.injectors.rig import CHARGE, Rig, fault


@pytest.mark.parametrize(("when", "executions"), [("before", 0), ("after", 1)])
def test_a_true_reset(rig: Rig, when: str, executions: int) -> None:
    """ECONNRESET without a byte; the service has acted only with `when: after`."""
    with rig.run(fault("reset", when=when)) as run:
        heard = run.charge()
        assert (heard.data, heard.end) == (b"", "rst")
        assert len(run.executed) == len(run.close()["sent"]) == executions
        assert run.outcomes == ["unknown"]
        assert run.fired == 1


def test_times_counts_attempts(rig: Rig) -> None:
    """The first two attempts are reset, the third passes."""
    with rig.run(fault("reset", times=2)) as run:
        assert [run.charge(timeout=0.2).end for _ in range(3)] == ["rst", "rst", "open"]
        assert run.outcomes == ["unknown", "unknown", "ok"]
        assert run.fired == 2


def test_a_client_library_sees_a_read_error(rig: Rig) -> None:
    """httpx raises its error for a broken read, not one for an orderly end."""
    with rig.run(fault("reset")) as run, httpx.Client() as client, pytest.raises(httpx.ReadError):
        client.post(f"http://127.0.0.1:{run.port}/tools/charge", json=CHARGE)
