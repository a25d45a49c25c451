"""`truncated-output`: the model ran into its output limit in the middle of a tool call."""

from __future__ import annotations

import pytest

from tests.injectors.rig import Rig, model_fault
from traces.providers import for_path

PATHS = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions"}


@pytest.mark.parametrize("api", ["anthropic", "openai"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_whole_message_that_says_it_is_not(rig: Rig, api: str, stream: bool) -> None:
    """The message ends in good order, its stop reason is the output limit, its arguments are cut inside a number."""
    with rig.run(model_fault("truncated-output")) as run:
        heard = run.ask(api=api, stream=stream)
        body, ended = heard.unchunked if stream else (heard.body, True)
        provider = for_path(PATHS[api])
        assert provider is not None
        turn = provider.read_reply(200, heard.headers["content-type"], body)
        assert ended
        assert (turn.stop_reason, turn.complete) == ("max_tokens", False)
        assert turn.tool_calls[0].raw.startswith('{"order_id":"o-1","amount_cents":12')
        assert "1200" not in turn.tool_calls[0].raw
        assert run.fired == 1
        assert [(r.complete, r.args["amount_cents"]) for r in run.of_type("model_tool_call")] == [(False, 12)]
        assert [r.outcome for r in run.of_type("model_call_finished")] == ["truncated"]


def test_the_provider_is_kept_in_character(rig: Rig) -> None:
    """Model, id and usage of the reply stay as they were."""
    with rig.run() as plain:
        original = plain.ask(stream=False).json
    with rig.run(model_fault("truncated-output")) as run:
        cut = run.ask(stream=False).json
        assert {key: cut[key] for key in ("id", "model", "usage")} == {
            key: original[key] for key in ("id", "model", "usage")
        }


def test_other_tools_are_left_alone(rig: Rig) -> None:
    """`tool` that the message does not call gives no hold."""
    with rig.run(model_fault("truncated-output", tool="refund")) as run:
        assert run.ask().unchunked[1]
        assert run.fired == 0
