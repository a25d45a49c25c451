"""`hang`: the connection stays open and silent."""

from __future__ import annotations

import httpx
import pytest

from tests.injectors.rig import CHARGE, Rig, fault


@pytest.mark.parametrize(("when", "executions"), [("before", 0), ("after", 1)])
def test_silence_until_the_agent_leaves(rig: Rig, when: str, executions: int) -> None:
    """Not a byte, no end; the service has acted only with `when: after`."""
    with rig.run(fault("hang", when=when)) as run:
        heard = run.charge(timeout=0.3)
        assert (heard.data, heard.end) == (b"", "open")
        assert len(run.executed) == executions
        assert run.outcomes == ["timeout"]
        assert run.fired == 1


def test_a_client_library_times_out(rig: Rig) -> None:
    """httpx reports a read time-out, and its next attempt gets through."""
    with rig.run(fault("hang")) as run, httpx.Client(timeout=0.2) as client:
        url = f"http://127.0.0.1:{run.port}/tools/charge"
        with pytest.raises(httpx.ReadTimeout):
            client.post(url, json=CHARGE)
        assert client.post(url, json=CHARGE).status_code == 200
        assert run.outcomes == ["timeout", "ok"]
