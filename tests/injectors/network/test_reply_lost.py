"""`reply-lost`: the work is done, its answer never arrives."""

from __future__ import annotations

import httpx
import pytest

from tests.injectors.rig import CHARGE, Rig, fault, model_fault


@pytest.mark.parametrize("end", ["fin", "rst"])
def test_executed_once_and_no_byte_of_an_answer(rig: Rig, end: str) -> None:
    """The connection ends as asked for in place of the answer."""
    with rig.run(fault("reply-lost", end=end)) as run:
        heard = run.charge()
        assert (heard.data, heard.end) == (b"", end)
        assert len(run.executed) == 1
        assert run.outcomes == ["unknown"]
        assert run.fired == 1


def test_a_lost_model_reply_has_said_nothing(rig: Rig) -> None:
    """No tool call of a lost reply is on record, as none has reached the agent; the next attempt's is."""
    with rig.run(model_fault("reply-lost")) as run:
        assert run.ask().data == b""
        assert run.ask().status == 200
        assert [record.complete for record in run.of_type("model_tool_call")] == [True]
        assert [record.outcome for record in run.of_type("model_call_finished")] == ["unknown", "ok"]


def test_the_next_call_on_the_same_client_is_clean(rig: Rig) -> None:
    """A lost reply does not leak into the next request of a pooling client."""
    with rig.run(fault("reply-lost")) as run, httpx.Client() as client:
        url = f"http://127.0.0.1:{run.port}/tools/charge"
        with pytest.raises(httpx.RemoteProtocolError):
            client.post(url, json=CHARGE)
        assert client.post(url, json=CHARGE).status_code == 200
