"""Made-up answers: provider-true for a model, shaped as the contract says for a tool."""

from __future__ import annotations

import json

import pytest

from injectors.core import Moment, Place, Point, Reply, Request
from injectors.replies import error_reply, html_reply, reason_of, said_instead
from traces.providers import PROVIDERS, Provider
from traces.providers.sse import json_bytes
from traces.providers.turn import Turn, tool_call

TURN = Turn(text="Well.", tool_calls=(tool_call("c1", "charge", {"cents": 1200}),), stop_reason="tool_use")
each_provider = pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.api)


def test_a_tool_answers_as_the_contract_says() -> None:
    """Kind, message, whether to try again and when, whether it may have happened."""
    reply = error_reply(Request("POST", "/tools/x", tool="x"), 429, "slow down", retry_after_s=2)
    assert json.loads(reply.body) == {
        "error": {
            "kind": "rate_limited",
            "message": "slow down",
            "retryable": True,
            "may_have_taken_effect": False,
            "retry_after_s": 2,
        }
    }
    assert reply.header("retry-after") == "2"


@pytest.mark.parametrize(("status", "retryable"), [(400, False), (404, False), (408, True), (500, True), (503, True)])
def test_only_some_errors_ask_for_another_try(status: int, retryable: bool) -> None:
    """Server errors and time-outs do, refusals do not."""
    reply = error_reply(Request("POST", "/tools/x", tool="x"), status, "m")
    assert json.loads(reply.body)["error"]["retryable"] is retryable


@each_provider
def test_a_model_answers_as_its_provider_does(provider: Provider) -> None:
    """The provider's own body and headers."""
    reply = error_reply(Request("POST", provider.path, api=provider.api), 429, "m", retry_after_s=1)
    body, headers = provider.error_body(429, "m")
    assert json.loads(reply.body) == body
    assert set(headers.items()) <= set(reply.headers)


@each_provider
@pytest.mark.parametrize("stream", [True, False])
def test_other_words_in_the_same_mouth(provider: Provider, stream: bool) -> None:
    """Another turn in the same reply: model, id and coding are kept, and the turn is read back."""
    if stream:
        body = b"".join(provider.write_stream(TURN, "big-model", "id-7"))
        reply = Reply(200, (("content-type", "text/event-stream"),), body)
    else:
        body = json_bytes(provider.write_reply(TURN, "big-model", "id-7"))
        reply = Reply(200, (("content-type", "application/json"), ("content-length", "1")), body)
    request = Request("POST", provider.path, api=provider.api)
    moment = Moment(Point.AFTER_EFFECT, Place(channel="model", call=1, attempt=1), request, reply)
    assert moment.turn == TURN
    other = Turn(text="No.", stop_reason="end_turn")
    changed = said_instead(moment, other)
    assert changed is not None
    assert provider.read_reply(200, changed.header("content-type"), changed.body) == other
    assert b"big-model" in changed.body
    assert b"id-7" in changed.body
    assert changed.header("content-length") == ""


def test_a_page_and_a_phrase() -> None:
    """A gateway's page names its status; a status nobody knows has a phrase all the same."""
    page = html_reply(502, "Bad Gateway")
    assert b"<h1>502 Bad Gateway</h1>" in page.body
    assert (reason_of(503), reason_of(599)) == ("Service Unavailable", "Error")
