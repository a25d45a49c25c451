"""`executed-but-failed`: the work is done, the answer denies it."""

from __future__ import annotations

import pytest

from tests.injectors.rig import Rig, fault


@pytest.mark.parametrize("admits", [True, False])
def test_executed_once_and_told_otherwise(rig: Rig, admits: bool) -> None:
    """The agent reads a retryable error while the effect stands."""
    with rig.run(fault("executed-but-failed", status=503, admits=admits)) as run:
        heard = run.charge()
        assert heard.status == 503
        assert heard.json["error"]["retryable"] is True
        assert heard.json["error"]["may_have_taken_effect"] is admits
        assert heard.headers["content-length"] == str(len(heard.body))
        assert (heard.headers["connection"], heard.end) == ("close", "fin")
        assert len(run.executed) == 1
        assert run.fired == 1
        finished = run.of_type("tool_call_finished")[0]
        assert finished.outcome == "error"
        assert finished.error is not None
        assert finished.error.may_have_taken_effect is admits


def test_a_real_failure_is_left_alone(rig: Rig) -> None:
    """Where the service itself refused, nothing was executed: the fault has no hold and does not count as fired."""
    with rig.run(fault("executed-but-failed")) as run:
        rig.service.answer = b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}"
        assert run.charge().status == 404
        assert run.fired == 0


def test_the_retry_is_told_the_truth(rig: Rig) -> None:
    """The second attempt of the call is not struck, and is on record as the same intent."""
    with rig.run(fault("executed-but-failed")) as run:
        headers = {"idempotency-key": "k-1"}
        assert [run.charge(timeout=0.2, headers=headers).status for _ in range(2)] == [500, 200]
        starts = run.of_type("tool_call_started")
        assert [record.attempt for record in starts] == [1, 2]
        assert {record.intent_id for record in starts} == {"intent-1"}
        assert {record.idempotency_key for record in starts} == {"k-1"}
