"""`cut-stream`: the model's message breaks off in mid-sentence."""

from __future__ import annotations

import msgspec
import pytest

from tests.injectors.rig import ORDER, Rig, model_fault
from traces.digest import args_digest
from traces.providers import events, for_path
from traces.providers.turn import Turn, best_guess

PATHS = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions"}


def read(api: str, body: bytes) -> Turn:
    """What a client reads of a stream."""
    provider = for_path(PATHS[api])
    assert provider is not None
    return provider.read_reply(200, "text/event-stream", body)


@pytest.mark.parametrize("api", ["anthropic", "openai"])
@pytest.mark.parametrize(("end", "heard_end"), [("clean", "fin"), ("rst", "rst")])
def test_cut_inside_a_number(rig: Rig, api: str, end: str, heard_end: str) -> None:
    """The arguments end in `12` of `1200`; a clean end looks whole to HTTP, a reset does not."""
    with rig.run(model_fault("cut-stream", end=end)) as run:
        heard = run.ask(api=api)
        body, ended = heard.unchunked
        assert (ended, heard.end) == (end == "clean", heard_end)
        turn = read(api, body)
        assert not turn.complete
        assert turn.tool_calls[0].raw == '{"order_id":"o-1","amount_cents":12'
        assert run.fired == 1
        assert len(run.executed) == 1


def test_what_was_said_is_on_record_as_incomplete(rig: Rig) -> None:
    """The record has the arguments as a lenient reader takes them: what would be charged, and that it must not be."""
    with rig.run(model_fault("cut-stream")) as run:
        body, _ = run.ask().unchunked
        guess = best_guess(read("anthropic", body).tool_calls[0])
        assert guess == {"order_id": "o-1", "amount_cents": 12}
        said = run.of_type("model_tool_call")
        assert [(record.complete, record.args) for record in said] == [(False, guess)]
        assert said[0].args_digest == args_digest(guess)
        finished = run.of_type("model_call_finished")[0]
        assert (finished.outcome, finished.http_status) == ("unknown", 200)


def test_cut_inside_a_string(rig: Rig) -> None:
    """The last string value that can be cut is."""
    with rig.run(model_fault("cut-stream", inside="string")) as run:
        body, _ = run.ask().unchunked
        assert read("anthropic", body).tool_calls[0].raw.endswith('"note":"by ')


@pytest.mark.parametrize("count", [1, 5])
def test_cut_after_so_many_events(rig: Rig, count: int) -> None:
    """Exactly so many events arrive."""
    with rig.run(model_fault("cut-stream", inside=count)) as run:
        body, _ = run.ask().unchunked
        assert len(events(body)) == count


@pytest.mark.parametrize(("end", "heard_end"), [("clean", "fin"), ("rst", "rst")])
def test_a_plain_reply_is_cut_in_its_middle(rig: Rig, end: str, heard_end: str) -> None:
    """With a clean end the length fits what came, so that only the JSON tells; with a reset it does not fit."""
    with rig.run(model_fault("cut-stream", end=end)) as run:
        heard = run.ask(stream=False)
        assert heard.end == heard_end
        announced = int(heard.headers["content-length"])
        assert (announced == len(heard.body)) == (end == "clean")
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(heard.body)
        assert run.of_type("model_tool_call") == []


def test_no_hold_is_no_strike(rig: Rig) -> None:
    """A reply without a tool call has no number to be cut in: it passes untouched and the fault has not fired."""
    with rig.run(model_fault("cut-stream")) as run:
        rig.service.turn = Turn(text="All is done, for 1200 cents.")
        body, ended = run.ask().unchunked
        assert ended
        assert read("anthropic", body).complete
        assert run.fired == 0


def test_the_next_attempt_is_whole(rig: Rig) -> None:
    """The same request again gets the whole message, and only that counts as asked for."""
    with rig.run(model_fault("cut-stream")) as run:
        run.ask()
        body, _ = run.ask().unchunked
        assert read("anthropic", body).tool_calls == ORDER.tool_calls
        run.charge(timeout=0.1)
        assert [record.step for record in run.of_type("tool_call_started")] == [1]
        assert [record.complete for record in run.of_type("model_tool_call")] == [False, True]
