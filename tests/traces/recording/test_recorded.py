"""The bundled traces: whole, masked, replayable, and written anew to the byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from traces.mask import find_secrets
from traces.providers import PROVIDERS, cut_offset, reply_bytes
from traces.recording.__main__ import RECORDED, write_all
from traces.recording.cast import draw_cast, read_cast
from traces.recording.stories import stories
from traces.recording.yaml_text import registry_text
from traces.registry import Registry
from traces.registry_reading import registry_from
from traces.trace import Trace, read_trace

PATHS = sorted(RECORDED.glob("*.jsonl"))
TRACES = {path.stem: read_trace(path) for path in PATHS}
each_trace = pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES.keys())


@pytest.fixture(scope="module")
def registry() -> Registry:
    """The registry of the bundled traces."""
    return registry_from(yaml.safe_load((RECORDED / "tools.yaml").read_text(encoding="utf-8")))


def test_written_anew_to_the_byte(tmp_path: Path) -> None:
    """The stories give the files that are there, all of them and no others."""
    write_all(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*(path.name for path in PATHS), "tools.yaml"}
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (RECORDED / path.name).read_bytes(), path.name


def test_all_kinds_are_there() -> None:
    """At least twelve traces, over both providers, plain and streamed."""
    assert len(TRACES) >= 12
    assert {(trace.api, trace.stream) for trace in TRACES.values()} == {
        (provider.api, stream) for provider in PROVIDERS for stream in (True, False)
    }


@each_trace
def test_file_name_is_the_traces_name_and_nothing_is_secret(trace: Trace) -> None:
    """Each file has the name of its trace, is masked and holds no secret."""
    assert TRACES[trace.name] is trace
    assert trace.masked
    assert find_secrets(trace) == []
    assert trace.provenance["made_by"] == "traces.recording"


@each_trace
def test_stateless_gateway_can_find_its_place(trace: Trace) -> None:
    """Each request holds all turns before it and passes the provider's checks; the last turn asks for nothing."""
    turns = trace.turns
    for n, exchange in enumerate(trace.model_exchanges):
        provider = exchange.provider
        assert provider is not None
        assert provider.check_request(exchange.request) is None
        said = [m for m in provider.read_request(exchange.request).messages if m.role == "assistant"]
        assert [(m.text, m.tool_calls) for m in said] == [(turn.text, turn.tool_calls) for turn in turns[:n]]
    assert all(turn.complete for turn in turns)
    assert [bool(turn.tool_calls) for turn in turns] == [True] * (len(turns) - 1) + [False]
    assert len({call.id for call in trace.calls}) == len(trace.calls)


@each_trace
def test_calls_match_their_exchanges_and_schemas(trace: Trace, registry: Registry) -> None:
    """What the model asked for is what the tools got, in order, and what their schemas ask for."""
    assert [(call.name, call.arguments) for call in trace.calls] == [
        (e.tool, e.arguments) for e in trace.tool_exchanges
    ]
    for call in trace.calls:
        schema = registry.tools[call.name].args
        assert set(schema.get("required", ())) <= set(call.arguments) <= set(schema["properties"])


@each_trace
def test_values_of_undoing_come_from_results(trace: Trace, registry: Registry) -> None:
    """Arguments declared to come from results do, and each effect that can be undone says its id in its result."""
    seen = ""
    for exchange in trace.tool_exchanges:
        tool = registry.tools[exchange.tool]
        assert all(str(exchange.arguments[name]) in seen for name in tool.from_results)
        seen += json.dumps(exchange.body)
        undo = tool.compensation
        if exchange.ok and undo is not None and undo.of_result is not None:
            assert isinstance(undo.of_result.find(exchange.body), str)


@each_trace
def test_limits_hold_in_the_recording(trace: Trace) -> None:
    """The recorded run stays well within its own limits."""
    used = sum(turn.input_tokens + turn.output_tokens for turn in trace.turns)
    assert 0 < 3 * used < trace.limits["tokens"]
    assert trace.limits["steps"] > len(trace.calls) + len(trace.turns)
    assert trace.exchanges[-1].t_end < trace.limits["wall_clock_s"] / 2


@each_trace
def test_mail_goes_last(trace: Trace) -> None:
    """What cannot be called back is done when everything else is."""
    names = [call.name for call in trace.calls]
    assert "send_email" not in names[:-1]


def test_streamed_charge_can_be_cut_inside_its_amount() -> None:
    """A streamed order can be cut inside the amount of its charge, all other arguments being whole."""
    trace = TRACES["order-small"]
    exchange = next(e for e in trace.model_exchanges if any(c.name == "charge" for c in e.turn().tool_calls))
    provider = exchange.provider
    assert provider is not None
    status, kind, body = reply_bytes(exchange.response)
    at = cut_offset(provider, body, "number", tool="charge")
    assert at is not None
    assert provider.read_reply(status, kind, body[:at]).tool_calls[0].raw.endswith('"amount":129')


def test_the_stories_that_matter() -> None:
    """Equal gifts are equal calls, the fan-out is 36 wide, a write is declined, two tenants do the same."""
    gifts = [e.arguments for e in TRACES["order-gift-twins"].tool_exchanges if e.tool == "charge"]
    assert len(gifts) == 2
    assert gifts[0] == gifts[1]
    assert [len(turn.tool_calls) for turn in TRACES["fan-out"].turns] == [36, 1, 0]
    assert [e.status for e in TRACES["order-declined"].tool_exchanges if e.tool == "charge"] == [402, 200]
    polls = [e.body["state"] for e in TRACES["long-task"].tool_exchanges if e.tool == "get_export"]
    assert polls == ["running", "running", "done"]
    a, b = TRACES["two-tenants-a"], TRACES["two-tenants-b"]
    assert (a.tenant, b.tenant) == ("a", "b")
    assert [call.arguments for call in a.calls] == [call.arguments for call in b.calls]


def test_registry_is_complete(registry: Registry) -> None:
    """Each tool is a stand-in with latency, group and owner; each effect can be undone or is to be avoided."""
    for tool in registry.tools.values():
        assert tool.environment == "stand-in"
        assert tool.owner
        assert tool.resource_group
        assert tool.latency is not None
        assert tool.latency.p99_s <= 0.3
        undone = tool.compensation is not None and tool.compensation.tool is not None
        assert undone or tool.avoid or not tool.effectful or registry.undoing(tool.name)


def test_cast(tmp_path: Path) -> None:
    """People are invented: ids of their own, addresses at a reserved domain; drawing gives as many again."""
    people = read_cast()
    assert len({person.customer_id for person in people}) == len(people) == len({person.email for person in people})
    assert all(person.email.endswith("@example.com") for person in people)
    draw_cast(tmp_path / "cast.json")
    assert len(read_cast(tmp_path / "cast.json")) == len(people)
    assert len({story.name for story in stories()}) == len(stories())


@pytest.mark.parametrize(
    "value", ["on", "No", "1200", "a: b", "ä", "x # y", "", "2026-12-01", "plain words", "$.id", "- x"]
)
def test_yaml_text_reads_back(value: str) -> None:
    """Whatever a text looks like, YAML reads it back as that text."""
    entry: dict[str, Any] = {
        "description": value,
        "args": {"required": [value], "properties": {value: {"type": "x"}}},
    }
    read = yaml.safe_load(registry_text({"tool": entry}, head="A head.\nOf two lines."))
    assert read["tool"]["description"] == value
    assert read["tool"]["args"] == entry["args"]
