"""What both HTTP faces do alike: every request belongs to an open run, and their own failures are never hidden."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from aiohttp import web

from harness.standins.endpoint import BODY_LIMIT, Endpoint
from harness.standins.runs import Run, Runs
from tests.harness.standins.bench import Process
from tests.harness.standins.shop import CHARGE, HTTP
from tests.harness.standins.test_runs import a_run


class Broken(Endpoint):
    """An endpoint whose own work fails."""

    async def answer(self, run: Run, request: web.Request) -> web.StreamResponse:
        """Fails, or says that the client is gone."""
        if request.path == "/gone":
            raise ConnectionResetError
        raise ZeroDivisionError("oops")

    def refuse(self, request: web.Request, status: int, kind: str, message: str) -> web.Response:
        """Plain text."""
        return web.Response(status=status, text=f"{kind}: {message}")


def test_failure_of_our_own_fails_the_run() -> None:
    """An exception is answered by a 500, kept as the failure of the run, and the request still counts as done."""
    runs = Runs()
    run = a_run()
    runs.open(run)

    async def scenario() -> tuple[int, str]:
        endpoint = Broken(runs)
        port = await endpoint.start()
        headers = {"x-stormproof-run": "r", "x-stormproof-wire": "w1"}
        async with httpx.AsyncClient() as client:
            await client.get(f"http://127.0.0.1:{port}/gone", headers=headers)
            assert run.failure is None  # a client that left is no failure of ours
            answer = await client.get(f"http://127.0.0.1:{port}/x", headers=headers)
        await endpoint.stop()
        return answer.status_code, answer.text

    status, text = asyncio.run(scenario())
    assert (status, text.partition(":")[0]) == (500, "stand_in_failed")
    assert run.failure == "Broken: ZeroDivisionError: oops"
    assert run.traffic.done == {"w1"}
    assert not run.traffic.under_way


@pytest.mark.parametrize("headers", [{}, {"x-stormproof-run": "nobody"}])
def test_request_without_an_open_run_is_refused_in_words(process: Process, headers: dict[str, str]) -> None:
    """Both ports say that the request did not come through the proxy, each in the shape of its clients."""
    tool = HTTP.post(f"{process.tools}/charge", json=CHARGE.args, headers=headers)
    assert tool.status_code == 404
    assert tool.json()["error"]["kind"] == "unknown_run"
    assert "did not come through the proxy" in tool.json()["error"]["message"]
    anthropic = HTTP.post(f"{process.model}/v1/messages", json={}, headers=headers)
    assert (anthropic.status_code, anthropic.json()["type"]) == (404, "error")
    openai = HTTP.post(f"{process.model}/v1/chat/completions", json={}, headers=headers)
    assert (openai.status_code, openai.json()["error"]["code"]) == (404, "unknown_run")


def test_too_large_a_request_is_refused(process: Process, run: str) -> None:
    """Above the provider's limit of 32 MB both ports answer 413 in their own shape, and the run goes on."""
    process.open(run)
    body = b" " * (BODY_LIMIT + 1)
    headers = {"x-stormproof-run": run}
    tool = HTTP.post(f"{process.tools}/charge", content=body, headers=headers)
    model = HTTP.post(f"{process.model}/v1/messages", content=body, headers=headers)
    assert (tool.status_code, tool.json()["error"]["kind"]) == (413, "request_too_large")
    assert (model.status_code, model.json()["error"]["type"]) == (413, "request_too_large")
    assert process.effects(run) == []


@pytest.mark.parametrize("secret", [None, "", "guessed", "\xe9"])
def test_what_came_past_the_proxy_is_refused(process: Process, run: str, secret: str | None) -> None:
    """Without the secret both ports answer 403, however well the other headers are forged, and nothing happens."""
    process.open(run, world=run, secret="only-ours")
    headers = {"x-stormproof-run": run, "x-stormproof-wire": "w1"}
    forged = headers if secret is None else headers | {"x-stormproof-secret": secret}
    sent = {name.encode(): value.encode("latin-1") for name, value in forged.items()}
    tool = HTTP.post(f"{process.tools}/charge", json=CHARGE.args, headers=sent)
    model = HTTP.post(f"{process.model}/v1/messages", json={}, headers=sent)
    assert (tool.status_code, tool.json()["error"]["kind"], model.status_code) == (403, "bypassed_proxy", 403)
    assert process.effects(run) == []
    assert process.call("charge", CHARGE.args, run=run, secret="only-ours").json() == CHARGE.body
