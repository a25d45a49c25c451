"""`latency`: everything arrives, later."""

from __future__ import annotations

import pytest

from tests.injectors.rig import Rig, fault


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_answer_comes_whole_and_late(rig: Rig, when: str) -> None:
    """The agent gets the very bytes of the undisturbed answer after the delay; one execution."""
    with rig.run() as plain:
        undisturbed = plain.charge(timeout=0.1)
    with rig.run(fault("latency", seconds=0.2, when=when)) as run:
        heard = run.charge(timeout=0.4)
        assert heard.data == undisturbed.data
        assert heard.seconds >= 0.2
        assert len(run.executed) == 1
        assert run.fired == 1
        assert run.outcomes == ["ok"]


def test_no_intensity_is_no_fault(rig: Rig) -> None:
    """Zero seconds leave no byte different, and the connection stays usable."""
    with rig.run(fault("latency", seconds=0)) as run:
        assert "connection" not in run.charge(timeout=0.1).headers
        assert run.fired == 1


def test_the_start_stands_where_the_agent_sent_it(rig: Rig) -> None:
    """A request that is held began before, with the deadline that it carries: the instant meant is the agent's."""
    with rig.run(fault("latency", seconds=0.2)) as run:
        run.charge(timeout=0.4, headers={"x-agent-deadline-ms": "5000"})
        started, injected = run.of_type("tool_call_started")[0], run.of_type("fault_injected")[0]
        assert started.t <= injected.t
        assert started.deadline_remaining_s == 5.0


def test_an_impatient_agent_is_never_forwarded(rig: Rig) -> None:
    """An agent that leaves during a delay before the send has executed nothing, and nothing was sent."""
    with rig.run(fault("latency", seconds=5)) as run:
        run.charge(timeout=0.1)
        assert run.close()["sent"] == []
        assert run.executed == []
        assert run.outcomes == ["timeout"]
        assert run.fired == 1
