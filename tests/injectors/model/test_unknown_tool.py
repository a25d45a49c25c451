"""`unknown-tool`: the model calls a tool that does not exist."""

from __future__ import annotations

import pytest

from tests.injectors.rig import CHARGE, ORDER, Rig, model_fault
from traces.providers import for_path

PATHS = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions"}


@pytest.mark.parametrize("api", ["anthropic", "openai"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_well_formed_call_of_a_stranger(rig: Rig, api: str, stream: bool) -> None:
    """Only the name is another; the message is whole and otherwise the same."""
    with rig.run(model_fault("unknown-tool", name="transfer_funds")) as run:
        heard = run.ask(api=api, stream=stream)
        provider = for_path(PATHS[api])
        assert provider is not None
        body = heard.unchunked[0] if stream else heard.body
        turn = provider.read_reply(200, heard.headers["content-type"], body)
        assert turn.complete
        assert (turn.text, turn.stop_reason) == (ORDER.text, "tool_use")
        assert [(call.id, call.name, call.arguments) for call in turn.tool_calls] == [
            ("call_1", "transfer_funds", CHARGE)
        ]
        assert run.fired == 1
        assert [(r.tool, r.complete) for r in run.of_type("model_tool_call")] == [("transfer_funds", True)]


def test_the_name_is_made_up_where_none_is_given(rig: Rig) -> None:
    """By default the tool's own name gets a suffix that no tool has."""
    with rig.run(model_fault("unknown-tool")) as run:
        assert b'"charge_v2"' in run.ask(stream=False).body
