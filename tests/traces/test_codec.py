"""Reading and writing history lines: every rule of contract section 3 on what is malformed."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import pytest

from traces.codec import HistoryError, MalformedLine, Reader, decode, encode, read_history
from traces.history import CoreRecord, Record

BASE = {"type": "x", "t": 1, "run_id": "r"}


def line(**fields: Any) -> bytes:
    """A line with these fields over the required ones."""
    return json.dumps({**BASE, **fields}).encode()


def read(data: bytes) -> Reader:
    """A reader that has read this to its end."""
    reader = Reader(BytesIO(data))
    list(reader.core_records())
    return reader


def numbers(data: bytes) -> list[int]:
    """Which lines hold records."""
    whole = [number for number, _ in Reader(BytesIO(data)).whole_records()]
    assert whole == [number for number, _ in Reader(BytesIO(data)).core_records()]
    return whole


@pytest.mark.parametrize(
    "fields",
    [
        {"t": 1.5},
        {"t": -1},
        {"step": 3, "attempt": 1, "pid": 7, "generation": 2, "exit_code": -9, "from_step": 1},
        {"signal": 9},
        {"signal": "SIGKILL"},
        {"effectful": True, "handled": False, "injected": True, "complete": False, "server_directed": True},
        {
            "recoverable": False,
            "error": {"kind": "k", "message": "m", "retryable": True, "may_have_taken_effect": False},
        },
        {"limits": {"steps": 1, "wall_clock_s": 2.5, "tokens": 3.5, "group_concurrency": {"db": 2}, "grace_s": 0}},
        {"completed": [1, 2], "skipped": [], "failed": [{"step": 1, "reason": "late"}]},
        {"actions": [{"step": 1, "tool": "charge", "args_digest": "d"}], "degraded": [{"what": "w", "why": "y"}]},
        {"advice": [1, {}], "grounds": "g", "scenario": 204, "site": {"tool": "x"}, "timeline": [1], "in_flight": {}},
        {"from": "closed", "to": "open", "failures": 5, "threshold": 5.0},
    ],
)
def test_fields_of_the_right_type_are_read(fields: dict[str, Any]) -> None:
    """Every named field takes the type that the contract gives it."""
    decode(line(**fields))


@pytest.mark.parametrize("value", [1.0, 1e2, -0.0])
def test_an_integer_may_be_written_with_an_empty_fraction(value: float) -> None:
    """1.0 is no fraction: for steps anywhere, exit codes and the like."""
    record = decode(
        line(
            step=value,
            exit_code=value,
            signal=value,
            completed=[value],
            limits={"steps": value},
            actions=[{"step": value}],
        )
    )
    assert record.step == record.exit_code == record.signal == int(value)
    assert record.completed == [int(value)]
    assert record.limits is not None and record.limits.steps == int(value)
    assert record.actions is not None and record.actions[0].step == int(value)


def test_null_means_absent() -> None:
    """A field of null, at the top or inside, is a field that is not there."""
    assert decode(line(step=None, limits={"tokens": None}, error=None, signal=None)) == decode(line(limits={}))


def test_unknown_fields_are_ignored_and_ours_are_free_for_others() -> None:
    """A foreign history may use any name that the contract does not."""
    decode(line(trace={"id": 1}, wire=5, http_status="200", args=[1], result=None, retry_after_s="soon"))


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"type": None}, "`type`"),
        ({"t": None}, "`t`"),
        ({"run_id": None}, "`run_id`"),
        ({"type": 5}, "`type`"),
        ({"run_id": 5}, "`run_id`"),
        ({"t": "1"}, "`t`"),
        ({"t": True}, "`t`"),
        ({"step": 1.5}, "`step`"),
        ({"step": "1"}, "`step`"),
        ({"step": True}, "`step`"),
        ({"attempt": 0.5}, "`attempt`"),
        ({"pid": "7"}, "`pid`"),
        ({"generation": 1.5}, "`generation`"),
        ({"exit_code": "0"}, "`exit_code`"),
        ({"signal": 9.5}, "`signal`"),
        ({"signal": True}, "`signal`"),
        ({"effectful": 1}, "`effectful`"),
        ({"handled": "no"}, "`handled`"),
        ({"injected": 0}, "`injected`"),
        ({"complete": "yes"}, "`complete`"),
        ({"server_directed": 1}, "`server_directed`"),
        ({"recoverable": "true"}, "`recoverable`"),
        ({"error": "boom"}, "`error`"),
        ({"error": {"retryable": 1}}, "`error.retryable`"),
        ({"error": {"may_have_taken_effect": "?"}}, "`error.may_have_taken_effect`"),
        ({"error": {"kind": 5}}, "`error.kind`"),
        ({"error": {"retry_after_s": "5"}}, "`error.retry_after_s`"),
        ({"limits": []}, "`limits`"),
        ({"limits": {"tokens": "many"}}, "`limits.tokens`"),
        ({"limits": {"group_concurrency": {"db": "2"}}}, "`limits.group_concurrency"),
        ({"limits": {"group_concurrency": 2}}, "`limits.group_concurrency`"),
        ({"input_tokens": "5"}, "`input_tokens`"),
        ({"cost_usd": True}, "`cost_usd`"),
        ({"delay_s": "1"}, "`delay_s`"),
        ({"max_s": []}, "`max_s`"),
        ({"failures": "5"}, "`failures`"),
        ({"completed": 1}, "`completed`"),
        ({"completed": [1.5]}, "`completed[0]`"),
        ({"completed": [1, None]}, "`completed[1]`"),
        ({"skipped": ["1"]}, "`skipped[0]`"),
        ({"from_step": 0.5}, "`from_step`"),
        ({"actions": {}}, "`actions`"),
        ({"actions": [{"step": "1"}]}, "`actions[0].step`"),
        ({"failed": [1]}, "`failed[0]`"),
        ({"tool": 5}, "`tool`"),
        ({"idempotency_key": ["k"]}, "`idempotency_key`"),
        ({"world": 1}, "`world`"),
        ({"outcome": True}, "`outcome`"),
        ({"from": 1}, "`from`"),
        ({"layer": 1}, "`layer`"),
        ({"message": {}}, "`message`"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(fields: dict[str, Any], named: str) -> None:
    """A malformed line says which field is wrong and what would be right."""
    with pytest.raises(MalformedLine) as caught:
        decode(line(**fields))
    assert len(caught.value.faults) == 1
    assert named in caught.value.faults[0]
    assert "missing" in caught.value.faults[0] or "would be right" in caught.value.faults[0]


def test_all_that_is_wrong_with_a_line_is_told_at_once() -> None:
    """Missing and mistyped fields of one line are all named."""
    with pytest.raises(MalformedLine) as caught:
        decode(b'{"t": "soon", "step": "1", "tool": 5}')
    assert len(caught.value.faults) == 4


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"{'type': 1}",
        b"[1]",
        b'"text"',
        b"5",
        b"null",
        line() + b" {}",
        b'{"type": "x", "t": NaN, "run_id": "r"}',
        b'{"type": "x", "t": Infinity, "run_id": "r"}',
        b'{"type": "x", "t": 1e999, "run_id": "r"}',
        b'{"type": "x", "t": 1' + b"0" * 400 + b', "run_id": "r"}',
        b'{"type": "x", "t": 1, "run_id": "r", "tool": "\xff"}',
        b'{"type": "x", "t": 1, "run_id": "r", "whatever": "\xff"}',
        b'{"type": "x", "t": 1, "run_id": "r", "tool": "\\ud800"}',
        b'{"type": "x", "t": 1, "run_id": "r", "deep": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_what_is_no_record_is_malformed(raw: bytes) -> None:
    """Anything but one sound JSON object with a finite time is refused in words, whatever it is."""
    with pytest.raises(MalformedLine):
        decode(raw)
    reader = read(raw + b"\n")
    assert [fault.line for fault in reader.faults] == [1]
    assert (reader.lines, reader.records) == (1, 0)


def test_blank_lines_are_skipped_and_counted() -> None:
    """Line numbers are those of the file."""
    assert numbers(b"\n" + line() + b"\n  \t\r\n\n" + line() + b"\r\n" + line()) == [2, 5, 6]


def test_only_line_feeds_end_lines() -> None:
    """Other separators of lines may stand in a text."""
    text = json.dumps({**BASE, "message": "a\u2028b\x85c"}, ensure_ascii=False).encode()
    assert numbers(text + b"\n" + line() + b"\n") == [1, 2]


def test_a_byte_order_mark_is_no_fault() -> None:
    """Some editors put one at the beginning of a UTF-8 file."""
    assert numbers(b"\xef\xbb\xbf" + line() + b"\n") == [1]
    assert numbers(b"\xef\xbb\xbf") == []


@pytest.mark.parametrize("rest", [line()[:-1], b'{"type": "x", "t', b"{", b"5", b'{"a": "\xc3'])
def test_an_unterminated_last_line_that_is_no_object_is_set_aside(rest: bytes) -> None:
    """A writer was killed: a warning, and the rest of the file counts."""
    reader = read(line() + b"\n\n" + rest)
    assert [number for number, _ in reader.warnings] == [3]
    assert reader.faults == []
    assert (reader.lines, reader.records) == (3, 1)


def test_an_unterminated_last_line_that_is_whole_counts() -> None:
    """Its newline alone is missing."""
    assert numbers(line() + b"\n" + line()) == [1, 2]


@pytest.mark.parametrize("rest", [line(step="1"), b"{}", b'{"type": "x", "t": 1, "run_id": "\xff"}'])
def test_an_unterminated_last_line_that_is_a_whole_but_wrong_object_is_malformed(rest: bytes) -> None:
    """Being last excuses nothing but being cut."""
    reader = read(line() + b"\n" + rest)
    assert [fault.line for fault in reader.faults] == [2]
    assert reader.warnings == []


def test_a_terminated_broken_last_line_is_malformed() -> None:
    """Only an unterminated line can be the work of a killed writer."""
    assert [fault.line for fault in read(line() + b'\n{"type": "x\n').faults] == [2]


def test_reading_goes_on_after_a_fault() -> None:
    """All faults of a file are found, and each is told before any later line is given."""
    told: list[int] = []
    reader = Reader(BytesIO(b"[]\n" + line() + b"\n{}\n" + line()), on_fault=lambda fault: told.append(fault.line))
    seen = [(number, list(told)) for number, _ in reader.whole_records()]
    assert seen == [(2, [1]), (4, [1, 3])]


def test_long_files_keep_their_line_numbers() -> None:
    """Blocks, blank lines and faults in the middle of many lines shift nothing."""
    lines = [line(message="y" * (n % 97), n=n) for n in range(5000)]
    lines[1234] = b""
    lines[2345] = b"{"
    reader = Reader(BytesIO(b"\n".join(lines)))
    assert [number for number, _ in reader.core_records()] == [n + 1 for n in range(5000) if n not in (1234, 2345)]
    assert [fault.line for fault in reader.faults] == [2346]
    assert (reader.lines, reader.records) == (5000, 4998)


def test_fields_beyond_the_core_are_checked_too() -> None:
    """A line with a rare field is read with all its fields, wherever it stands and however many there are."""
    rare = line(grounds={"a": 1}, generation=1)
    data = b"\n".join([line(), rare, *[rare] * 40, line(generation="1"), line()])
    reader = Reader(BytesIO(data))
    records = dict(reader.core_records())
    assert [fault.line for fault in reader.faults] == [43]
    assert set(records) == {*range(1, 43), 44}
    assert isinstance(records[2], Record) and records[2].grounds == {"a": 1}


def test_small_records_stay_small() -> None:
    """A core record is an object of at most 512 bytes, which is why there is one."""
    assert CoreRecord.__basicsize__ <= 512 < Record.__basicsize__


@pytest.mark.parametrize("fields", [{}, {"step": 1, "from": "open"}, {"grounds": {"a": [1]}, "completed": []}])
def test_what_is_written_reads_back(fields: dict[str, Any]) -> None:
    """A record survives the way to a line and back; absent fields are not written."""
    record = msgspec.convert({**BASE, **fields}, Record)
    written = encode(record)
    assert written.endswith(b"\n")
    assert b"null" not in written
    assert decode(written) == record


def test_read_history_gives_records_or_all_faults(tmp_path: Path) -> None:
    """A file is read as a whole: its records with their lines, or everything that is wrong with it."""
    path = tmp_path / "h.jsonl"
    path.write_bytes(b"\n" + line(step=1) + b"\n")
    assert [(number, record.step) for number, record in read_history(path)] == [(2, 1)]
    path.write_bytes(b"[]\n" + line() + b"\n{}\n")
    with pytest.raises(HistoryError) as caught:
        read_history(path)
    assert [number for number, _ in caught.value.faults] == [1, 3]
