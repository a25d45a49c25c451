"""The model's next words follow from the conversation alone."""

from __future__ import annotations

import pytest

from harness.standins.conversation import FINISHED, RecordedTurn, Reply, failures, is_failure, next_reply
from traces.providers.turn import Message, ToolCall, ToolResult, Turn, raw_call, tool_call

ASK = Message("user", "Two gifts, please.")
CHARGE = tool_call("x", "charge", {"amount": 1200})
SHIP = tool_call("y", "ship", {"to": "Bonn"})
DONE = "Your order is on its way."
TURNS = (
    RecordedTurn(Turn("First.", (CHARGE,), "tool_use"), (False,)),
    RecordedTurn(Turn("", (SHIP,), "tool_use"), (False,)),
    RecordedTurn(Turn(DONE)),
)


def said(*calls: ToolCall, text: str = "") -> Message:
    """An assistant message with calls under ids of the agent's own."""
    return Message(
        "assistant", text, tuple(ToolCall(f"a{n}", c.name, c.arguments, c.raw) for n, c in enumerate(calls))
    )


def told(*contents: str) -> Message:
    """The results of the calls before, in order; a text that begins with `!` is flagged as an error."""
    return Message(
        "tool",
        tool_results=tuple(ToolResult(f"a{n}", text.lstrip("!"), text[:1] == "!") for n, text in enumerate(contents)),
    )


def reply(*messages: Message, policy: str = "continue", turns: tuple[RecordedTurn, ...] = TURNS) -> Reply:
    """The reply to a conversation that begins with the user's request."""
    return next_reply(turns, [ASK, *messages], policy)


def test_recording_is_followed_turn_by_turn() -> None:
    """After the n-th recorded turn comes the next, after the last one a closing text."""
    first = (said(CHARGE), told("{}"))
    second = (said(SHIP), told("{}"))
    assert reply().turn == TURNS[0].turn
    assert reply(*first).turn == TURNS[1].turn
    assert reply(*first, *second).turn == TURNS[2].turn
    end = reply(*first, *second, said(text=DONE), Message("user", "And now?"))
    assert (end.turn.text, end.turn.tool_calls, end.turn.stop_reason) == (FINISHED, (), "end_turn")


def test_ids_blanks_and_number_spelling_do_not_count() -> None:
    """A call is known by its name and its canonical arguments; the words beside it do not matter."""
    own = raw_call("other", "charge", '{ "amount": 1200.0 }')
    assert reply(said(own, text="Reworded."), told("{}")).turn == TURNS[1].turn


def test_text_turn_is_known_by_its_words() -> None:
    """A turn without calls is found by its text, whatever the blanks; other words are not it."""
    turns = (RecordedTurn(Turn("Which  colour?")), RecordedTurn(Turn(DONE)))
    assert reply(said(text="Which colour?\n"), ASK, turns=turns).turn == turns[1].turn
    assert reply(said(text="Which size?"), ASK, turns=turns).turn == turns[0].turn


def test_trimmed_conversation_is_found_again() -> None:
    """A conversation that lost its beginning stands after the last recorded turn that is in it."""
    assert reply(said(SHIP), told("{}")).turn == TURNS[2].turn


def test_equal_turns_are_told_apart_by_order() -> None:
    """Two equal gifts are two turns: the second is said after the first, and the end after both."""
    gift = RecordedTurn(Turn("", (CHARGE,), "tool_use"), (False,))
    turns = (gift, gift, RecordedTurn(Turn(DONE)))
    once = (said(CHARGE), told("{}"))
    assert reply(*once, turns=turns).place == "turn 1"
    assert reply(*once, *once, turns=turns).turn.text == DONE


def test_repair_is_not_taken_for_the_next_equal_turn() -> None:
    """A gift asked for again after a failure is still the first: the second is said afterwards, under new ids."""
    gift = RecordedTurn(Turn("", (CHARGE,), "tool_use"), (False,))
    turns = (gift, gift, RecordedTurn(Turn(DONE)))
    failed = (said(CHARGE), told("!refused"))
    again = reply(*failed, policy="repair", turns=turns)
    assert [call.name for call in again.turn.tool_calls] == ["charge"]
    assert again.place.startswith("again")
    worked = reply(*failed, said(CHARGE), told("{}"), policy="repair", turns=turns)
    assert worked.place == "turn 1"


@pytest.mark.parametrize(
    "content", ["!anything", '{"error": {"kind": "timeout"}}', ' {"error": "x", "id": 1}', "Error: no such flight"]
)
def test_failures_in_all_their_spellings(content: str) -> None:
    """A flag, an `error` in the JSON and a text that begins with Error are failures; the policy then speaks."""
    bad = (said(CHARGE), told(content))
    assert reply(*bad, policy="continue").turn == TURNS[1].turn
    assert [call.name for call in reply(*bad, policy="repair").turn.tool_calls] == ["charge"]
    gone = reply(*bad, policy="give_up")
    assert "charge failed" in gone.turn.text
    assert (gone.turn.tool_calls, gone.turn.stop_reason) == ((), "end_turn")


@pytest.mark.parametrize(
    "content",
    ["", "ok", '{"error": null}', '{"errors": 0}', '["Error"]', "{broken", "No error", '{"error":' + "[" * 100_000],
)
def test_what_is_no_failure(content: str) -> None:
    """Everything else is a result, also an empty one and one that only mentions errors."""
    assert not is_failure(content)


def test_failure_that_the_recording_had_is_on_the_recording() -> None:
    """Where the recorded result was a failure too, the recorded next turn is the answer under every policy."""
    turns = (RecordedTurn(TURNS[0].turn, (True,)), *TURNS[1:])
    for policy in ("continue", "repair", "give_up"):
        assert reply(said(CHARGE), told("!declined"), policy=policy, turns=turns).turn == TURNS[1].turn


def test_repair_asks_three_times_and_then_gives_up() -> None:
    """A failed call is asked for again at most three times, each at a place of its own; then the end is honest."""
    messages = [said(CHARGE), told("!no")]
    places = []
    for _ in range(3):
        again = reply(*messages, policy="repair")
        assert [call.name for call in again.turn.tool_calls] == ["charge"]
        places.append(again.place)
        messages += [said(CHARGE), told("!no")]
    assert len(set(places)) == 3
    end = reply(*messages, policy="repair")
    assert end.turn.tool_calls == ()
    assert "not completed" in end.turn.text
    assert reply(*messages, said(text=end.turn.text), Message("user", "Go on!"), policy="repair").turn == end.turn


def test_repair_in_a_fan_out_asks_only_for_what_failed() -> None:
    """Of parallel calls only the failed ones are asked for again, and each has its own three tries."""
    calls = tuple(tool_call("", "mail", {"to": n}) for n in range(4))
    turns = (RecordedTurn(Turn("", calls, "tool_use"), (False,) * 4), RecordedTurn(Turn(DONE)))
    first = (said(*calls), told("ok", "!x", "ok", "!y"))
    again = reply(*first, policy="repair", turns=turns)
    assert [call.arguments["to"] for call in again.turn.tool_calls] == [1, 3]
    second = (said(calls[1], calls[3]), told("!x", "ok"))
    once_more = reply(*first, *second, policy="repair", turns=turns)
    assert [call.arguments["to"] for call in once_more.turn.tool_calls] == [1]
    assert reply(*first, *second, said(calls[1]), told("ok"), policy="repair", turns=turns).turn.text == DONE


def test_parallel_calls_may_come_back_in_another_order() -> None:
    """A fan-out is the same turn in whatever order its calls and results stand; failures stay with their call."""
    calls = tuple(tool_call("", "mail", {"to": n}) for n in range(3))
    turns = (RecordedTurn(Turn("", calls, "tool_use"), (False,) * 3), RecordedTurn(Turn(DONE)))
    shuffled = said(calls[2], calls[0], calls[1])
    again = reply(shuffled, told("!late", "ok", "ok"), policy="repair", turns=turns)
    assert [call.arguments["to"] for call in again.turn.tool_calls] == [2]


def test_cut_message_gets_the_same_turn_again() -> None:
    """Asked again with the same conversation, with the part that came, or with a note about the cut, the model says
    the whole turn again: under every policy, for nothing has failed."""
    note = Message("user", "Your message was cut; please say it again.")
    before = (said(CHARGE), told("{}"))
    for policy in ("continue", "repair", "give_up"):
        assert reply(*before, policy=policy).place == "turn 1"
        assert reply(*before, said(text="I will now"), note, policy=policy).place == "turn 1"
        assert reply(*before, note, policy=policy).place == "turn 1"
        assert reply(*before, said(text="I will now"), policy=policy).place == "turn 1"


def test_cut_call_that_was_refused_is_asked_for_again() -> None:
    """A cut call that the agent kept, with a failure as its result, is not the turn: that comes whole."""
    cut = raw_call("", "charge", '{"amount": 12')
    messages = (said(cut), told("!cut off, not executed"))
    for policy in ("continue", "repair"):
        whole = reply(*messages, policy=policy)
        assert whole.turn == TURNS[0].turn
        assert whole.place == "turn 0 try 2"
    assert reply(*messages, policy="give_up").turn.tool_calls == ()


def test_cut_call_that_was_executed_counts_as_said() -> None:
    """An agent that ran the cut call and says it went well has made the model believe so: the recording goes on."""
    ran = (said(tool_call("", "charge", {"amount": 12})), told("{}"))
    assert reply(*ran).turn == TURNS[1].turn


def test_rest_of_a_cut_fan_out_is_asked_for() -> None:
    """If only the first calls of a fan-out came through and were made, the model asks for the others, not for all."""
    calls = tuple(tool_call("", "mail", {"to": n}) for n in range(4))
    turns = (RecordedTurn(Turn("", calls, "tool_use"), (False,) * 4), RecordedTurn(Turn(DONE)))
    messages = [said(*calls[:2]), told("ok", "ok")]
    rest = reply(*messages, turns=turns)
    assert [call.arguments["to"] for call in rest.turn.tool_calls] == [2, 3]
    assert reply(*messages, said(*calls[2:]), told("ok", "ok"), turns=turns).turn.text == DONE


def test_renamed_tool_is_corrected() -> None:
    """A call of a tool that does not exist fails, and the model says the turn as it meant it; never more than three
    more times under repair, without end under continue: limits are the agent's."""
    wrong = (said(tool_call("", "charge_v9", {"amount": 1200})), told("Error: unknown tool charge_v9"))
    assert reply(*wrong).turn == TURNS[0].turn
    assert reply(*wrong * 9).turn == TURNS[0].turn
    assert reply(*wrong * 3, policy="repair").turn == TURNS[0].turn
    assert reply(*wrong * 4, policy="repair").turn.tool_calls == ()
    assert reply(*wrong, policy="give_up").turn.tool_calls == ()


def test_results_are_paired_by_id_then_by_place() -> None:
    """Results come in any order under their ids; where ids were rewritten, their places count."""
    message = said(CHARGE, SHIP)
    crossed = Message("tool", tool_results=(ToolResult("a1", "Error"), ToolResult("a0", "ok")))
    foreign = Message("tool", tool_results=(ToolResult("z9", "Error"), ToolResult("z8", "ok")))
    assert failures(message, [crossed]) == (False, True)
    assert failures(message, [foreign]) == (True, False)
    assert failures(message, []) == (False, False)


def test_results_in_several_messages_are_one_set() -> None:
    """OpenAI sends one message a result: they are all read, up to the next message of the assistant."""
    one, two = told("ok"), Message("tool", tool_results=(ToolResult("a1", "!"),))
    assert failures(said(CHARGE, SHIP), [one, two]) == (False, False)
    bad = Message("tool", tool_results=(ToolResult("a1", "Error: no"),))
    assert failures(said(CHARGE, SHIP), [one, bad]) == (False, True)


def test_empty_recording_has_nothing_to_say() -> None:
    """A trace without model turns gets the closing text at once."""
    assert reply(turns=()).turn.text == FINISHED
