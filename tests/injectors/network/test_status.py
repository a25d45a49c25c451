"""`status`: an error answer that never came from the service."""

from __future__ import annotations

import pytest

from tests.injectors.rig import Rig, fault, model_fault


def test_nothing_is_executed(rig: Rig) -> None:
    """The answer is in the contract's shape, the service has seen nothing, the connection ends with it."""
    with rig.run(fault("status", status=502)) as run:
        heard = run.charge()
        assert heard.data.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
        assert heard.json["error"] == {
            "kind": "bad_gateway",
            "message": "Bad Gateway",
            "retryable": True,
            "may_have_taken_effect": False,
        }
        assert (heard.headers["connection"], heard.end) == ("close", "fin")
        assert run.executed == []
        assert run.close()["sent"] == []
        assert run.fired == 1
        finished = run.of_type("tool_call_finished")[0]
        assert (finished.outcome, finished.http_status) == ("error", 502)
        assert finished.error is not None
        assert finished.error.kind == "bad_gateway"


@pytest.mark.parametrize(("body", "content_type"), [("html", "text/html"), ("empty", None)])
def test_pages_of_a_gateway(rig: Rig, body: str, content_type: str | None) -> None:
    """A page or nothing in place of JSON; the length is right."""
    with rig.run(fault("status", status=504, body=body, retry_after_s=3)) as run:
        heard = run.charge()
        assert heard.headers.get("content-type") == content_type
        assert heard.headers["content-length"] == str(len(heard.body))
        assert heard.headers["retry-after"] == "3"
        assert (body == "empty") == (heard.body == b"")
        assert run.of_type("tool_call_finished")[0].retry_after_s == 3


def test_a_definite_refusal_is_rejected(rig: Rig) -> None:
    """A 404 is no failure that another attempt could mend."""
    with rig.run(fault("status", status=404)) as run:
        run.charge()
        assert run.outcomes == ["rejected"]


@pytest.mark.parametrize(("api", "kind"), [("anthropic", "api_error"), ("openai", "server_error")])
def test_the_model_answers_in_its_providers_words(rig: Rig, api: str, kind: str) -> None:
    """On a model call the error has the provider's own shape."""
    with rig.run(model_fault("status", status=503)) as run:
        heard = run.ask(api=api)
        assert heard.status == 503
        assert heard.json["error"]["type"] == kind
        assert [record.outcome for record in run.of_type("model_call_finished")] == ["error"]
