"""tau-bench: counts on the real files, and what a run becomes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from traces.importers import Imported, ImportFault, importer_named
from traces.importers.tau_bench import WRITES, TauBench
from traces.mask import find_secrets
from traces.registry import Registry
from traces.registry_reading import registry_from
from traces.trace import Trace, dump_trace, parse_trace

ROOT = Path(__file__).resolve().parents[3]
REAL = ROOT.parent / "shared" / "real-traces" / "tau-bench"
needs_real = pytest.mark.skipif(not REAL.is_dir(), reason=f"the recorded tau-bench files are not there ({REAL})")


@pytest.fixture(scope="module")
def airline() -> Imported:
    """The real airline file, imported once."""
    return TauBench().read(REAL / "gpt-4o-airline.json")


@pytest.fixture(scope="module")
def retail() -> dict[str, Imported]:
    """The real retail files, imported once."""
    return {path.name.split("-none")[0]: TauBench().read(path) for path in sorted(REAL.glob("retail-*/*.json"))}


def registry(name: str) -> Registry:
    """A registry that is shipped for tau-bench."""
    text = (ROOT / "traces" / "registries" / f"tau-bench-{name}.yaml").read_text(encoding="utf-8")
    return registry_from(yaml.safe_load(text))


def effects(trace: Trace, tools: Registry) -> Counter[tuple[str, str]]:
    """Successful writes of a run by tool and what was meant."""
    done = (e for e in trace.tool_exchanges if e.ok and tools.tools[e.tool].effectful)
    told = ((tools.tools[e.tool], e.arguments) for e in done)
    return Counter((tool.name, tool.intent_digest(args) or tool.args_digest(args)) for tool, args in told)


@needs_real
def test_airline_counts(airline: Imported) -> None:
    """200 traces, 1,164 tool calls, 298 writes of which 73 failed; nothing is skipped."""
    assert airline.report.as_json() == {
        "traces": 200,
        "tool_calls": 1164,
        "writes": 298,
        "failed_writes": 73,
        "skipped": [],
        "notes": [],
    }
    assert len({trace.name for trace in airline.traces}) == 200
    assert sum(len(trace.calls) for trace in airline.traces) == 1164
    assert sum(len(trace.tool_exchanges) for trace in airline.traces) == 1164


@needs_real
def test_retail_loses_nothing_silently(retail: dict[str, Imported]) -> None:
    """Runs and calls of the retail files are in a trace or named with a reason; odd results are noted."""
    assertions, plain, python = (
        retail[name] for name in ("assertions-agent", "tool-calling", "tool-calling-with-preconditions-and-python")
    )
    assert (assertions.report.traces, assertions.report.tool_calls, len(assertions.report.skipped)) == (66, 472, 34)
    assert all("the run has no conversation: " in why for _, why in assertions.report.skipped)
    assert (assertions.report.writes, assertions.report.failed_writes) == (91, 13)
    assert (plain.report.traces, plain.report.tool_calls, plain.report.skipped) == (100, 793, ())
    assert (plain.report.writes, plain.report.failed_writes) == (155, 20)
    assert (python.report.traces, python.report.tool_calls, python.report.writes) == (1, 56, 0)
    assert [why.split(",")[0] for _, why in python.report.notes] == [
        "9 results that carry another tool's name than their call"
    ]
    read = sum(t.provenance["folded"].get("python_literal_arguments", 0) for t in assertions.traces)
    assert read == 465


@needs_real
@pytest.mark.parametrize("which", ["airline", "retail"])
def test_imported_traces_can_be_replayed(which: str, airline: Imported, retail: dict[str, Imported]) -> None:
    """Traces read back, hold no secret, pass the provider's checks, and end with a turn without calls."""
    read = [airline] if which == "airline" else list(retail.values())
    tools = registry(which)
    # Every sixth is enough: these are a hundred megabytes.
    for trace in (trace for imported in read for trace in imported.traces[::6]):
        assert parse_trace(dump_trace(trace)) == trace
        assert trace.masked
        assert find_secrets(trace) == []
        assert trace.turns[-1].tool_calls == ()
        assert {tool["name"] for tool in trace.tools} >= {call.name for call in trace.calls}
        for exchange in trace.model_exchanges:
            assert exchange.provider is not None
            assert exchange.provider.check_request(exchange.request) is None
        for exchange in trace.tool_exchanges:
            assert tools.tools[exchange.tool].effectful == (exchange.tool in WRITES)


@needs_real
def test_one_trip_booked_twice_is_one_intent(airline: Imported) -> None:
    """With the itinerary as intent, task 0, trial 3 books one trip more than once, and no other run does so."""
    tools = registry("airline")
    twice = {
        trace.name: name
        for trace in airline.traces
        for (name, _), count in effects(trace, tools).items()
        if count > 1
    }
    assert twice == {"gpt-4o-airline-task000-trial3": "book_reservation"}
    run = next(trace for trace in airline.traces if trace.name in twice)
    booked = [e for e in run.tool_exchanges if e.tool == "book_reservation" and e.ok]
    assert {e.body["reservation_id"] for e in booked} >= {"HATHAT", "HATHAV"}
    book = tools.tools["book_reservation"]
    assert len({book.intent_digest(e.arguments) for e in booked}) == 1
    kept = [e for e in booked if e.body["reservation_id"] in ("HATHAT", "HATHAV")]
    assert len({book.args_digest(e.arguments) for e in kept}) == len(kept) == 2


@needs_real
def test_no_retail_run_writes_twice(retail: dict[str, Imported]) -> None:
    """No retail run has two successful writes that mean the same."""
    tools = registry("retail")
    for imported in retail.values():
        for trace in imported.traces:
            assert max(effects(trace, tools).values(), default=1) == 1


# ---------------------------------------------------------------------------- a file that travels with the tests


@pytest.fixture(scope="module")
def garden() -> Imported:
    """Four runs of our own making: arguments as Python writes them, ids missing and repeated, writes that fail."""
    return TauBench().read(ROOT / "tests" / "data" / "tau-bench" / "garden-shop-retail.json")


def test_garden_counts(garden: Imported) -> None:
    """Three traces, eleven calls, five writes of which two failed; the run without a talk is named."""
    assert garden.report.as_json() == {
        "traces": 3,
        "tool_calls": 11,
        "writes": 5,
        "failed_writes": 2,
        "skipped": [
            {
                "source": "garden-shop-retail.json[2]",
                "why": "the run has no conversation: rate limit of the model",
            }
        ],
        "notes": [{"source": "garden-shop-retail.json[1]", "why": "1 tool calls without a recorded result"}],
    }
    assert garden.writing == {"garden-shop-retail-task000-trial0", "garden-shop-retail-task001-trial0"}
    assert garden.traces[2].name == "garden-shop-retail-task001-trial0-2", "a task and trial that is there twice"


def test_garden_calls(garden: Imported) -> None:
    """Python's quotes are read, calls without ids get some, an id used twice in a turn is replaced, results stay."""
    python, repeated, _ = garden.traces
    assert python.calls[3].arguments["payment_method_id"] == "gift_card_1"
    assert python.provenance["folded"]["python_literal_arguments"] == 5
    assert python.provenance["folded"]["made_call_ids"] == 5
    assert [e.status for e in python.tool_exchanges] == [200, 200, 200, 400, 200]
    assert python.tool_exchanges[0].body == {"text": "ada_gardener_77"}
    assert repeated.provenance["folded"] == {"added_closing_turn": 1, "made_call_ids": 1}
    assert [e.body["order_id"] for e in repeated.tool_exchanges[:3]] == ["#W300", "#W301", "#W300"]
    assert [e.status for e in repeated.tool_exchanges] == [200, 200, 200, 400, 504]
    for trace in garden.traces:
        for turn in trace.turns:
            assert len({call.id for call in turn.tool_calls}) == len(turn.tool_calls)


def test_garden_traces_can_be_replayed(garden: Imported) -> None:
    """They read back, hold no secret, pass the provider's checks, end without calls, and the registry knows all."""
    tools = registry("retail")
    for trace in garden.traces:
        assert parse_trace(dump_trace(trace)) == trace
        assert trace.masked
        assert find_secrets(trace) == []
        assert trace.task_type == "tau-retail"
        assert trace.turns[-1].tool_calls == ()
        for exchange in trace.model_exchanges:
            assert exchange.provider is not None
            assert exchange.provider.check_request(exchange.request) is None
        for exchange in trace.tool_exchanges:
            assert tools.tools[exchange.tool].effectful == (exchange.tool in WRITES)
        assert max(effects(trace, tools).values(), default=1) == 1


# ------------------------------------------------------------------------------------ what a run becomes


def call(name: str, arguments: str, call_id: str | None = "call_1") -> dict[str, Any]:
    """A tool call."""
    made: dict[str, Any] = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return made | ({"id": call_id} if call_id else {})


def imported(tmp_path: Path, *traj: dict[str, Any], **more: Any) -> Imported:
    """A file with one run, imported."""
    path = tmp_path / "my-model-retail.json"
    run = {"task_id": 3, "trial": 1, "reward": 1.0, "info": {}, "traj": list(traj)} | more
    path.write_text(json.dumps([run]), encoding="utf-8")
    return TauBench().read(path)


SYSTEM = {"role": "system", "content": "# Retail policy"}
HELLO = {"role": "user", "content": "Cancel my order."}
WHO = {"role": "assistant", "content": "Which one?"}
W1 = {"role": "user", "content": "#W1 please"}
CANCEL = {
    "role": "assistant",
    "content": "Right.",
    "tool_calls": [call("cancel_pending_order", '{"order_id": "#W1"}')],
}
DONE = {
    "role": "tool",
    "tool_call_id": "call_1",
    "name": "cancel_pending_order",
    "content": '{"status": "cancelled"}',
}
BYE = {"role": "assistant", "content": "It is cancelled."}
STOP = {"role": "user", "content": "###STOP###"}


def test_talk_is_folded(tmp_path: Path) -> None:
    """What the user says becomes the request, what the assistant says in between begins its next turn."""
    [trace] = imported(tmp_path, SYSTEM, HELLO, WHO, W1, CANCEL, DONE, BYE, STOP).traces
    assert trace.name == "my-model-retail-task003-trial1"
    assert (trace.task_type, trace.api, trace.stream) == ("tau-retail", "openai-chat", False)
    assert trace.request == "Cancel my order.\n\n#W1 please"
    assert [turn.text for turn in trace.turns] == ["Which one?\n\nRight.", "It is cancelled."]
    assert trace.provenance["folded"] == {"assistant_messages": 1, "stop_marks": 1, "user_messages": 1}
    assert set(trace.provenance["declared"]) == {"times", "tokens", "schemas", "streaming"}
    assert [(e.channel, e.n) for e in trace.exchanges] == [("model", 1), ("tool", 2), ("model", 3)]
    assert trace.tool_exchanges[0].body == {"status": "cancelled"}


def test_run_that_stops_at_a_tool(tmp_path: Path) -> None:
    """A recording that ends with a tool result gets a closing turn without words, and says so."""
    [trace] = imported(tmp_path, HELLO, CANCEL, DONE).traces
    assert (trace.turns[-1].text, trace.turns[-1].stop_reason) == ("", "end_turn")
    assert trace.provenance["folded"] == {"added_closing_turn": 1}


@pytest.mark.parametrize("content", ["Error: no such order", '# var_4 = "Error: no such order"'])
def test_failed_write(tmp_path: Path, content: str) -> None:
    """A result that begins with Error, also as one agent design shows it, is a failed call that did nothing."""
    result = imported(tmp_path, HELLO, CANCEL, {**DONE, "content": content}, BYE)
    assert (result.report.writes, result.report.failed_writes) == (1, 1)
    [exchange] = result.traces[0].tool_exchanges
    assert (exchange.status, exchange.body["error"]["message"]) == (400, "Error: no such order")
    assert exchange.body["error"]["retryable"] is False


@pytest.mark.parametrize(
    ("content", "body"),
    [("255.0", 255.0), ("", {"text": ""}), ("mia_li_3668", {"text": "mia_li_3668"}), ("NaN", {"text": "NaN"})],
)
def test_results(tmp_path: Path, content: str, body: Any) -> None:
    """A result is its JSON, else its text; the model saw the text, and sees it again."""
    [trace] = imported(tmp_path, HELLO, CANCEL, {**DONE, "content": content}, BYE).traces
    assert trace.tool_exchanges[0].body == body
    assert trace.model_exchanges[1].request["messages"][-1]["content"] == content


def test_python_arguments_and_missing_ids(tmp_path: Path) -> None:
    """Arguments as Python writes them are read, calls without ids get some, results pair by position."""
    calls = [call("get_order_details", "{'order_id': '#W1'}", None), call("think", "{'thought': \"it's\"}", None)]
    answers = [{"role": "tool", "content": '{"n": 1}'}, {"role": "tool", "content": ""}]
    [trace] = imported(tmp_path, HELLO, {"role": "assistant", "tool_calls": calls}, *answers, BYE).traces
    assert [c.arguments for c in trace.calls] == [{"order_id": "#W1"}, {"thought": "it's"}]
    assert [e.body for e in trace.tool_exchanges] == [{"n": 1}, {"text": ""}]
    assert trace.provenance["folded"] == {"made_call_ids": 2, "python_literal_arguments": 2}
    assert len({c.id for c in trace.calls}) == 2


def test_ids_within_a_turn_pair_where_they_can(tmp_path: Path) -> None:
    """Results in another order than their calls are paired by id; an id used twice in a turn pairs by position."""
    calls = [call("get_order_details", '{"order_id": "#W1"}', "a"), call("think", '{"thought": "x"}', "b")]
    answers = [
        {"role": "tool", "tool_call_id": "b", "content": "second"},
        {"role": "tool", "tool_call_id": "a", "content": "first"},
    ]
    [trace] = imported(tmp_path, HELLO, {"role": "assistant", "tool_calls": calls}, *answers, BYE).traces
    assert [e.body for e in trace.tool_exchanges] == [{"text": "first"}, {"text": "second"}]
    same = [{**each, "id": "a"} for each in calls]
    [trace] = imported(tmp_path, HELLO, {"role": "assistant", "tool_calls": same}, *answers, BYE).traces
    assert [e.body for e in trace.tool_exchanges] == [{"text": "second"}, {"text": "first"}]
    assert len({c.id for c in trace.calls}) == 2


def test_odd_results_are_noted(tmp_path: Path) -> None:
    """Results that answer nothing, calls without one and foreign names are counted by name."""
    result = imported(tmp_path, HELLO, DONE, CANCEL, {**DONE, "name": "think"}, DONE, CANCEL)
    assert {why for _, why in result.report.notes} == {
        "2 tool results that answer no call, left out",
        "1 results that carry another tool's name than their call, kept with the call",
        "1 tool calls without a recorded result",
    }
    assert result.traces[0].tool_exchanges[-1].status == 504


@pytest.mark.parametrize(
    ("traj", "why"),
    [
        ([], "the run has no conversation: no reason given"),
        ([{"content": "x"}], "message 0 of the run has no role"),
        ([{"role": "wizard"}], "the unknown role 'wizard'"),
        ([{"role": "assistant", "tool_calls": [call("think", "{nonsense")]}], "neither JSON nor a Python literal"),
        ([{"role": "assistant", "tool_calls": [{"function": {}}]}], "a tool call has no name"),
    ],
)
def test_unreadable_run_is_named(tmp_path: Path, traj: list[Any], why: str) -> None:
    """A run that cannot become a trace is skipped with its place and the reason."""
    [(source, told)] = imported(tmp_path, *traj).report.skipped
    assert source == "my-model-retail.json[0]"
    assert why in told


@pytest.mark.parametrize(
    ("text", "fault"),
    [("{", "is no JSON"), ("{}", "is no list of tau-bench runs"), ("[1]", "no list"), ("[" * 90000, ":1: .*nested")],
)
def test_other_files_are_refused(tmp_path: Path, text: str, fault: str) -> None:
    """A file of another kind is refused as a whole."""
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ImportFault, match=fault):
        TauBench().read(path)


def test_found_by_name() -> None:
    """The importer is found by the name of its format."""
    found = importer_named("tau-bench")
    assert isinstance(found, TauBench)
    assert importer_named("tau") is None
