"""The drain handshake: exact, and never longer than needed."""

from __future__ import annotations

import asyncio

from harness.standins.traffic import Traffic


def test_idle_run_is_drained_at_once() -> None:
    """Nothing sent and nothing under way: no waiting, even with a limit of zero."""
    assert asyncio.run(Traffic().drained([], limit_s=0.0)) == []


def test_drain_waits_for_what_has_not_arrived_yet() -> None:
    """An id that was sent but not seen is waited for until its request is done."""

    async def scenario() -> list[str]:
        traffic = Traffic()

        async def arrive() -> None:
            await asyncio.sleep(0.01)
            with traffic.request("w1"):
                await asyncio.sleep(0.01)

        task = asyncio.create_task(arrive())
        unfinished = await traffic.drained(["w1"], limit_s=5.0)
        assert task.done() or not traffic.under_way
        await task
        return unfinished

    assert asyncio.run(scenario()) == []


def test_drain_names_what_never_came_and_what_never_ended() -> None:
    """At the limit both are listed, each once; requests that nobody announced are waited for as well."""

    async def scenario() -> list[str]:
        traffic = Traffic()
        with traffic.request("w1"), traffic.request("w3"):
            pass
        with traffic.request("w2"), traffic.request("w3"):
            return await traffic.drained(["w1", "w3", "w4"], limit_s=0.02)

    assert asyncio.run(scenario()) == ["w3", "w4", "w2"]


def test_two_drains_at_once_both_end() -> None:
    """Two waiting drains are both woken by one end of a request."""

    async def scenario() -> list[list[str]]:
        traffic = Traffic()

        async def request() -> None:
            with traffic.request("w1"):
                await asyncio.sleep(0.02)

        first, second, _ = await asyncio.gather(
            traffic.drained(["w1"], limit_s=5.0), traffic.drained(["w1"], limit_s=5.0), request()
        )
        return [first, second]

    assert asyncio.run(scenario()) == [[], []]


def test_request_that_fails_is_done_too() -> None:
    """A request that ends by an error is not waited for."""

    async def scenario() -> list[str]:
        traffic = Traffic()
        try:
            with traffic.request("w1"):
                raise ValueError
        except ValueError:
            pass
        return await traffic.drained(["w1"], limit_s=0.0)

    assert asyncio.run(scenario()) == []
