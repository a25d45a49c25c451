"""Reading and writing history lines: JSON Lines, UTF-8, strict as contract section 3 asks.

Decoding happens in blocks of lines, because one call into msgspec per block costs a good deal less than one per
line; a block that is not plainly one JSON object per line, or that holds a fault, is read again line by line, and
only then are faults put into words. Line numbers are 1-based and count blank lines.
"""

from __future__ import annotations

import json
import math
import re
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, Union, get_args, get_origin

import msgspec

from traces.history import Record

_BLOCK = 1 << 18
_BOM = b"\xef\xbb\xbf"
_decoder = msgspec.json.Decoder(Record)
_encoder = msgspec.json.Encoder()
_FIELDS = {field.encode_name: field for field in msgspec.structs.fields(Record)}
_REQUIRED = ("type", "t", "run_id")
_INTEGERS = frozenset({"step", "from_step", "attempt", "pid", "generation", "exit_code", "signal"})
_INTEGER_LISTS = frozenset({"completed", "skipped"})
_STEP_LISTS = frozenset({"actions", "failed"})
_MISMATCH = re.compile(r"Expected `([^`]+)`, got `([^`]+)`(?:.* - at `(?:key in )?\$([^`]*)`)?")
_RANGE = re.compile(r"(?:Number|Integer value) out of range(?: - at `\$([^`]*)`)?")
_WORDS = {
    "str": "text",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}


class MalformedLine(ValueError):
    """A line that is no record of contract section 3.

    `faults` says each thing that is wrong and what would be right; `line` is set by who knows it. `run_id` and
    `record_type` are what the line says of itself where that much could be read: a reader that goes on needs them
    to judge later lines fairly.
    """

    def __init__(self, faults: Iterable[str], *, run_id: str | None = None, record_type: str | None = None):
        self.faults = tuple(faults)
        self.line = 0
        self.run_id = run_id
        self.record_type = record_type
        super().__init__("; ".join(self.faults))


class HistoryError(ValueError):
    """A history that cannot be judged; `faults` holds (line number, what is wrong and what would be right)."""

    def __init__(self, faults: Iterable[tuple[int, str]]):
        self.faults = tuple(faults)
        super().__init__("\n".join(f"line {line}: {text}" for line, text in self.faults))


def encode(record: Record | dict[str, Any]) -> bytes:
    """One history line with its newline; absent fields are left out."""
    return _encoder.encode(record) + b"\n"


def decode(line: bytes) -> Record:
    """One record from one line (bytes, with or without the newline).

    Raises MalformedLine, whose faults name every field of the line that is wrong (contract section 3).
    """
    try:
        record = _decoder.decode(line)
        if not line.isascii():
            line.decode()
        return record
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _decode_slowly(line)


class Reader:
    """Reads one stream of history lines in batches; a fault is noted and the reading goes on.

    `faults`: the malformed lines not taken yet, each knowing its number. `warnings`: (line number, sentence) for an
    unterminated last line that was set aside. `lines`: how many lines were there, blank ones included. `records`:
    how many were decoded.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.faults: list[MalformedLine] = []
        self.warnings: list[tuple[int, str]] = []
        self.lines = 0
        self.records = 0

    def batches(self) -> Iterator[tuple[Iterable[int], list[Record]]]:
        """Batches of (line numbers, their records), both of one length and in file order."""
        while block := self._next_block():
            batch = self._fast(block) or self._line_by_line(block)
            self.records += len(batch[1])
            yield batch

    def __iter__(self) -> Iterator[tuple[int, Record]]:
        """(line number, record) pairs in file order."""
        for numbers, records in self.batches():
            yield from zip(numbers, records, strict=True)

    def take_faults(self) -> list[MalformedLine]:
        """The faults found since this was last asked."""
        taken, self.faults = self.faults, []
        return taken

    def _next_block(self) -> bytes:
        block = self._stream.read(_BLOCK)
        if self.lines == 0 and block.startswith(_BOM):
            block = block[len(_BOM) :] or b"\n"
        if block and not block.endswith(b"\n"):
            block += self._stream.readline()
        return block

    def _fast(self, block: bytes) -> tuple[Iterable[int], list[Record]] | None:
        """The block in one go, or None where it is not certainly one sound object on each line.

        A boundary `}` newline `{` cannot lie inside one JSON object, so as many objects as lines, with every
        boundary of that shape, means one object to a line.
        """
        try:
            records = _decoder.decode_lines(block)
            if not block.isascii():
                block.decode()
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        count = len(records)
        shaped = block.startswith(b"{") and block.endswith(b"}\n")
        if not shaped or block.count(b"\n") != count or block.count(b"}\n{") != count - 1:
            return None
        first = self.lines + 1
        self.lines += count
        return range(first, first + count), records

    def _line_by_line(self, block: bytes) -> tuple[Iterable[int], list[Record]]:
        lines = block.split(b"\n")
        rest = lines.pop()
        numbers: list[int] = []
        records: list[Record] = []
        for raw in lines:
            self.lines += 1
            self._one(raw, numbers, records)
        if rest:
            self.lines += 1
            if not rest.isspace() and not _is_whole_object(rest):
                self.warnings.append(
                    (self.lines, "the last line ends in the middle of a record (its writer was stopped): set aside")
                )
            else:
                self._one(rest, numbers, records)
        return numbers, records

    def _one(self, raw: bytes, numbers: list[int], records: list[Record]) -> None:
        if not raw or raw.isspace():
            return
        try:
            record = decode(raw)
        except MalformedLine as error:
            error.line = self.lines
            self.faults.append(error)
        else:
            numbers.append(self.lines)
            records.append(record)


def read_history(path: Path) -> list[tuple[int, Record]]:
    """All records of a history file with their line numbers, in file order.

    Raises HistoryError with every malformed line, OSError where the file cannot be read. An unterminated last
    line that is no whole object is left out.
    """
    with path.open("rb") as stream:
        reader = Reader(stream)
        records = list(reader)
    if reader.faults:
        raise HistoryError((fault.line, str(fault)) for fault in reader.faults)
    return records


def _is_whole_object(raw: bytes) -> bool:
    """Whether the line is one complete JSON object (its text may still be broken UTF-8: that is bad input)."""
    try:
        return isinstance(json.loads(raw.decode(errors="replace"), parse_constant=_no_constant), dict)
    except (ValueError, RecursionError):
        return False


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _decode_slowly(line: bytes) -> Record:
    """Decodes what the fast decoder refused: integers written as 1.0, or a fault to be put into words."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise MalformedLine([f"byte {error.start + 1} is not UTF-8: a history is UTF-8 text"]) from None
    try:
        fields = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise MalformedLine(["nested too deeply: a record is a flat JSON object"]) from None
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise MalformedLine([f"not JSON ({reason}): each line is one JSON object"]) from None
    if not isinstance(fields, dict):
        raise MalformedLine([f"{_name_of(fields)} where a JSON object would be right"])
    _mend_integers(fields)
    faults = list(_faults_of(fields))
    if not faults:
        try:
            return msgspec.convert(fields, Record)
        except msgspec.ValidationError as error:  # pragma: no cover - every field was checked above
            faults = [str(error)]
    run_id, record_type = fields.get("run_id"), fields.get("type")
    raise MalformedLine(
        faults,
        run_id=run_id if isinstance(run_id, str) else None,
        record_type=record_type if isinstance(record_type, str) else None,
    )


def _mend_integers(fields: dict[str, Any]) -> None:
    """Turns 1.0 into 1 wherever an integer is due: an integer has no fraction, 1.0 is none."""
    for name in fields.keys() & _INTEGERS:
        fields[name] = _whole(fields[name])
    for name in fields.keys() & _INTEGER_LISTS:
        if isinstance(fields[name], list):
            fields[name] = [_whole(item) for item in fields[name]]
    nested = [item for name in fields.keys() & _STEP_LISTS if isinstance(fields[name], list) for item in fields[name]]
    limits = fields.get("limits")
    for holder, name in [(limits, "steps"), *((item, "step") for item in nested)]:
        if isinstance(holder, dict) and name in holder:
            holder[name] = _whole(holder[name])


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _faults_of(fields: dict[str, Any]) -> Iterator[str]:
    missing = [f"`{name}`" for name in _REQUIRED if fields.get(name) is None]
    if missing:
        yield f"{' and '.join(missing)} missing: every record has `type`, `t` and `run_id`"
    for name, value in fields.items():
        field = _FIELDS.get(name)
        if field is None or value is None:
            continue
        if _has_lone_surrogate(value):
            yield f"`{name}` holds half a character (a lone surrogate), where whole UTF-8 text would be right"
            continue
        try:
            converted = msgspec.convert(value, field.type)
        except msgspec.ValidationError as error:
            yield _put_in_words(name, value, error=error, wanted=field.type)
            continue
        except OverflowError:
            converted = math.inf
        if name == "t" and not math.isfinite(converted):
            yield "`t` is out of range, where a finite number of seconds would be right"


def _has_lone_surrogate(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _put_in_words(name: str, value: Any, *, error: msgspec.ValidationError, wanted: Any) -> str:
    found = _MISMATCH.match(str(error))
    if found is None:
        out_of_range = _RANGE.match(str(error))
        path = (out_of_range.group(1) or "") if out_of_range else ""
        return f"`{name}{path}` is {_name_of(value)} out of range, where {_describe(wanted)} would be right"
    expected, got, path = found.groups()
    right = " or ".join(_WORDS.get(part, part) for part in expected.split(" | ") if part != "null")
    if path:
        return f"`{name}{path}` is {_WORDS.get(got, got)}, where {right} would be right"
    return f"`{name}` is {_name_of(value)}, where {right} would be right"


def _name_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        shown = repr(value)
        return f"the number {shown if len(shown) <= 40 else shown[:37] + '...'}"
    if isinstance(value, str):
        return f"the text {json.dumps(value if len(value) <= 40 else value[:37] + '...', ensure_ascii=False)}"
    return "a list" if isinstance(value, list) else "an object"


def _describe(wanted: Any) -> str:
    if get_origin(wanted) in (Union, types.UnionType):
        return " or ".join(_describe(part) for part in get_args(wanted) if part is not type(None))
    return _WORDS.get(getattr(wanted, "__name__", ""), "another value")
