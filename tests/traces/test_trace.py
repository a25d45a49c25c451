"""The trace format: read, refused, written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from traces.providers import openai_chat
from traces.providers.turn import Conversation, Message, Turn, tool_call
from traces.trace import Exchange, Trace, TraceError, dump_trace, numbered, parse_trace, read_trace, write_trace

CALL = tool_call("call_1", "charge", {"amount": 1200})


def model(n: int, turn: Turn) -> Exchange:
    """A model exchange that says this."""
    talk = Conversation((Message("user", "Charge it."),), model="gpt-4.1")
    return Exchange(
        channel="model",
        n=n,
        api="openai-chat",
        t_start=float(n),
        t_end=n + 0.5,
        request=openai_chat.write_request(talk),
        response={"status": 200, "body": openai_chat.write_reply(turn, "gpt-4.1", f"r-{n}")},
    )


TRACE = Trace(
    name="order-tiny",
    request="Charge it.",
    task_type="order",
    tenant="a",
    masked=True,
    limits={"steps": 9},
    tools=({"name": "charge", "description": "Charges.", "input_schema": {"type": "object"}},),
    provenance={"made_by": "a test"},
    extra={"colour": "green"},
    exchanges=(
        model(1, Turn(tool_calls=(CALL,), stop_reason="tool_use")),
        Exchange(
            channel="tool",
            n=2,
            t_start=1.5,
            t_end=1.6,
            request={"tool": "charge", "arguments": {"amount": 1200}, "headers": {}},
            response={"status": 402, "body": {"error": {"kind": "declined"}}},
            extra={"note": "kept"},
        ),
        model(3, Turn("It was declined.")),
    ),
)


def test_written_and_read(tmp_path: Path) -> None:
    """A trace that is written and read is the same, with fields that nobody knows."""
    path = tmp_path / "order-tiny.jsonl"
    write_trace(TRACE, path)
    assert read_trace(path) == TRACE
    assert [path.name for path in tmp_path.iterdir()] == ["order-tiny.jsonl"]


def test_lines_are_the_formats() -> None:
    """The header has the format's fields; each exchange is a line with channel, number, times, request, response."""
    header, first, second, _ = (json.loads(line) for line in dump_trace(TRACE).splitlines())
    assert (header["trace"], header["version"], header["masked"], header["colour"]) == (
        "order-tiny",
        1,
        True,
        "green",
    )
    assert (first["channel"], first["n"], first["api"]) == ("model", 1, "openai-chat")
    assert "api" not in second
    assert second["request"]["tool"] == "charge"


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where writing fails half-way the old file is still there, whole, and nothing else."""
    path = tmp_path / "order-tiny.jsonl"
    write_trace(TRACE, path)
    before = path.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_trace(Trace(name="other", request="x", exchanges=()), path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_what_a_trace_tells() -> None:
    """API, model, turns and calls are read from the exchanges."""
    assert (TRACE.api, TRACE.model, TRACE.stream) == ("openai-chat", "gpt-4.1", False)
    assert [turn.stop_reason for turn in TRACE.turns] == ["tool_use", "end_turn"]
    assert TRACE.calls == (CALL,)
    [done] = TRACE.tool_exchanges
    assert (done.tool, done.arguments, done.status, done.ok) == ("charge", {"amount": 1200}, 402, False)


def test_numbered() -> None:
    """Exchanges are numbered by their starts, whatever order they ended in."""
    mixed = (model(3, Turn("c")), model(1, Turn("a")), model(2, Turn("b")))
    assert [(e.n, e.t_start) for e in numbered(mixed)] == [(1, 1.0), (2, 2.0), (3, 3.0)]


HEADER: dict[str, Any] = {"trace": "x", "version": 1, "request": "do it", "masked": True}
GOOD: dict[str, Any] = {
    "channel": "tool",
    "n": 1,
    "t_start": 0,
    "t_end": 1,
    "request": {"tool": "a"},
    "response": {"status": 200},
}


@pytest.mark.parametrize(
    ("rows", "line", "fault"),
    [
        ([], 1, "is empty"),
        (["{"], 1, "is no JSON"),
        (["[]"], 1, "is no JSON object"),
        ([GOOD], 1, "the first line is the header"),
        ([{**HEADER, "version": 2}], 1, "version is 2; this reader knows version 1"),
        ([{**HEADER, "masked": "yes"}], 1, "`masked` must be true or false"),
        ([{**HEADER, "tools": [{"nom": "a"}]}], 1, "each of `tools` is an object with a `name`"),
        ([{"trace": "x", "version": 1}], 1, "`request` is missing"),
        ([{**HEADER, "limits": {"steps": "many"}}], 1, "`limits.steps`: Expected `int | null`, got `str`"),
        ([{**HEADER, "limits": {"steps": 2.5}}], 1, "`limits.steps`"),
        ([{**HEADER, "limits": {"wall_clock_s": True}}], 1, "`limits.wall_clock_s`"),
        ([{**HEADER, "limits": {"group_concurrency": {"payments": "2"}}}], 1, "`limits.group_concurrency`"),
        ([{**HEADER, "limits": {"group_concurrency": 2}}], 1, "`limits.group_concurrency`: Expected"),
        (['{"trace": "x", "version": 1, "request": "", "limits": {"tokens": NaN}}'], 1, "NaN is no number"),
        (['{"trace": "x", "version": 1, "request": "", "limits": {"tokens": 1e999}}'], 1, "inf is out of range"),
        ([{**HEADER, "limits": {"steps": 2**70}}], 1, "is out of range"),
        ([HEADER, "[" * 100_000], 2, "nested more than 100 levels deep"),
        ([HEADER, {**GOOD, "response": {"status": "fine"}}], 2, "the `status` of a response must be a whole number"),
        ([HEADER, {**GOOD, "channel": "smoke"}], 2, "`channel` is 'smoke'; it is one of model, tool, mcp, http"),
        ([HEADER, GOOD, {**GOOD, "n": "two"}], 3, "`n` must be a whole number"),
        ([HEADER, {**GOOD, "t_end": None}], 2, "`t_end` must be a number of seconds"),
        ([HEADER, {**GOOD, "request": {}}], 2, "the request of a tool exchange names its `tool`"),
        ([HEADER, {**GOOD, "channel": "model"}], 2, "a model exchange says its `api`"),
        ([HEADER, {**GOOD, "channel": "model", "api": "x"}], 2, "known here are anthropic-messages, openai-chat"),
        ([HEADER, {**GOOD, "t_start": 2}], 2, "the two seem swapped"),
        ([HEADER, {**GOOD, "t_end": 10**400}], 2, "`t_end` must be a number of seconds"),
        (
            [HEADER, json.dumps(GOOD).replace('"t_end": 1', '"t_end": 1e999')],
            2,
            "`t_end` must be a number of seconds",
        ),
        ([HEADER, {**GOOD, "response": {"status": 99}}], 2, "from 100 to 599"),
        ([HEADER, {**GOOD, "response": {"status": 600}}], 2, "from 100 to 599"),
        ([HEADER, {**GOOD, "response": {"events": [{"t": "now"}]}}], 2, "the `t` of each of `events`"),
        ([HEADER, {**GOOD, "response": {"events": "no"}}], 2, "`events` must be a list of objects"),
        ([HEADER, "", "{broken"], 3, "is no JSON"),
    ],
)
def test_bad_files_are_refused_with_their_line(rows: list[Any], line: int, fault: str) -> None:
    """What is no trace is refused: which line, and what would be right."""
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    with pytest.raises(TraceError) as caught:
        parse_trace(text)
    assert any(at == line and fault in told for at, told in caught.value.faults), caught.value.faults


@pytest.mark.parametrize(
    "name",
    ["../out", "a/b", "/tmp/x", "..", ".hidden", "a b", "a\\b", "a\n", "a\0", "caf\u00e9", "\u0661", "x" * 151],
)
def test_names_that_would_lead_elsewhere(name: str, tmp_path: Path) -> None:
    """Folders are called by a trace's name: one that could leave its folder is neither read nor written."""
    with pytest.raises(TraceError) as caught:
        parse_trace(json.dumps({**HEADER, "trace": name}))
    ((line, fault),) = caught.value.faults
    assert line == 1
    assert fault.startswith("the name of a trace")
    with pytest.raises(TraceError, match="the name of a trace"):
        write_trace(Trace(name=name, request="x", exchanges=()), tmp_path / "x.jsonl")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["order-small", "A_1.b", "-x", "x" * 150])
def test_names_that_are_fine(name: str) -> None:
    """Letters, digits, `-`, `_` and inner dots."""
    assert parse_trace(json.dumps({**HEADER, "trace": name})).name == name


def test_limits_that_are_fine() -> None:
    """Every limit a run can state is taken, and so is one that nobody knows."""
    limits = {"steps": 3.0, "wall_clock_s": 2, "group_concurrency": {"a": 2, "b": None}, "cost_usd": None, "new": "x"}
    read = parse_trace(json.dumps({**HEADER, "limits": limits})).limits
    assert read == limits
    assert isinstance(read["steps"], int)


def test_all_faults_at_once() -> None:
    """Faults of several lines come together."""
    rows = [{**HEADER, "limits": 3}, {**GOOD, "n": None}, {**GOOD, "channel": None}]
    with pytest.raises(TraceError) as caught:
        parse_trace("\n".join(json.dumps(row) for row in rows))
    assert [line for line, _ in caught.value.faults] == [1, 2, 3]


def test_file_that_is_no_text(tmp_path: Path) -> None:
    """A file of other bytes is refused, not decoded somehow."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(TraceError, match="is no UTF-8 text"):
        read_trace(path)
