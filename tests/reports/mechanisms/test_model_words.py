"""Bad calls, cut messages and endless asking, each with and without a guard."""

from __future__ import annotations

from tests.reports.builders import Story, seen


def test_preflight_refuses_unknown_tools_and_bad_arguments() -> None:
    """A tool nobody has, and a missing argument, never reach the wire."""
    story = Story().asks("teleport").add("tool_call_refused", tool="teleport", reason="preflight")
    story.asks("lookup", "d2", args={"id": 7}).add("tool_call_refused", tool="lookup", reason="preflight")
    assert seen(story.done(), "preflight_validation") == [True, True]


def test_preflight_is_missed_by_sending_or_by_silence() -> None:
    """The bad call goes out, or vanishes without a word."""
    sent = Story().asks("lookup", args={}).call("lookup", "rejected").done("failed")
    assert seen(sent, "preflight_validation") == [False]
    assert seen(Story().asks("teleport").done("failed"), "preflight_validation") == [False]


def test_preflight_that_refuses_a_good_call_is_no_credit() -> None:
    """Where the model's words are on record, only a bad call is an opportunity; else the agent's word is all."""
    over = Story().asks("lookup", args={"id": "o-7"}).add("tool_call_refused", tool="lookup", reason="preflight")
    assert seen(over.done("failed"), "preflight_validation") == []
    told = Story().add("tool_call_refused", tool="lookup", reason="preflight").done("failed")
    assert seen(told, "preflight_validation") == [True]


def test_preflight_has_no_opportunity_for_good_or_cut_calls() -> None:
    """A fitting call is no reason to refuse, and a cut message is another mechanism's."""
    good = Story().asks("lookup", args={"id": "o-7"}).call("lookup").done()
    assert seen(good, "preflight_validation") == []
    assert seen(Story().asks("teleport", complete=False).done("failed"), "preflight_validation") == []


def cut() -> Story:
    """A message that broke off inside the arguments of a charge."""
    story = Story().add("model_call_started", source="wire", attempt_id="m0").asks("charge", "half", complete=False)
    return story.add("model_call_finished", source="wire", attempt_id="m0", outcome="error", http_status=200)


def test_truncation_rescue_asks_on_and_executes_nothing() -> None:
    """The model is asked again, and only the whole call is executed."""
    story = cut().model().asks("charge", "whole").call("charge", digest="whole", key="k").done()
    assert seen(story, "truncation_rescue") == [True]


def test_truncation_rescue_is_missed_by_executing_or_by_giving_up() -> None:
    """Cut arguments go out, or nobody asks on."""
    assert seen(cut().call("charge", digest="half", key="k").model().done(), "truncation_rescue") == [False]
    assert seen(cut().done("failed", error={"kind": "model"}), "truncation_rescue") == [False]


def test_truncation_rescue_has_no_opportunity_for_whole_messages_and_plain_errors() -> None:
    """An overloaded gateway sent no message that could have been cut."""
    story = Story().model("error", http_status=529).model().asks("charge").call("charge", key="k").done()
    assert seen(story, "truncation_rescue") == []


def asking(times: int) -> Story:
    """A write that fails, and a model that asks for it so often in all."""
    story = Story()
    for n in range(times):
        story.asks("charge", f"d{n}")
        if n < 2:
            story.call("charge", "rejected", digest=f"d{n}", key=f"k{n}", finish={"http_status": 400})
    return story


def test_self_repair_limit_refuses_past_the_limit() -> None:
    """One repair is allowed; the second asking is refused."""
    story = asking(3).add("tool_call_refused", tool="charge", reason="limit").done("failed")
    assert seen(story, "self_repair_limit") == [True]


def test_self_repair_limit_is_missed_by_sending() -> None:
    """The model asks past the limit and nobody refuses."""
    assert seen(asking(3).call("charge", digest="d2", key="k2").done(), "self_repair_limit") == [False]


def test_self_repair_limit_has_no_opportunity_within_it() -> None:
    """The allowed repair is no reason to refuse."""
    assert seen(asking(2).done("failed"), "self_repair_limit") == []
