"""`rate-limited`: too many requests, come back later."""

from __future__ import annotations

import httpx
import pytest

from tests.injectors.rig import CHARGE, Rig, fault, model_fault


def test_a_tool_says_how_long_to_wait(rig: Rig) -> None:
    """429, the header in whole seconds, the same in the body; nothing executed."""
    with rig.run(fault("rate-limited", retry_after_s=2)) as run:
        heard = run.charge()
        assert heard.data.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
        assert heard.headers["retry-after"] == "2"
        assert heard.json["error"]["retry_after_s"] == 2
        assert run.executed == []
        assert run.fired == 1
        finished = run.of_type("tool_call_finished")[0]
        assert (finished.outcome, finished.retry_after_s) == ("error", 2)


@pytest.mark.parametrize(("api", "kind"), [("anthropic", "rate_limit_error"), ("openai", "requests")])
def test_a_model_says_it_in_its_own_words(rig: Rig, api: str, kind: str) -> None:
    """The provider's own error body, with the header."""
    with rig.run(model_fault("rate-limited")) as run:
        heard = run.ask(api=api)
        assert (heard.status, heard.headers["retry-after"]) == (429, "1")
        assert heard.json["error"]["type"] == kind


def test_a_client_library_reads_it(rig: Rig) -> None:
    """httpx gets a whole answer and goes on with its next request."""
    with rig.run(fault("rate-limited")) as run, httpx.Client() as client:
        url = f"http://127.0.0.1:{run.port}/tools/charge"
        assert [client.post(url, json=CHARGE).status_code for _ in range(2)] == [429, 200]
