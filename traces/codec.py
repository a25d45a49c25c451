"""Reading and writing history lines: JSON Lines, UTF-8, strict as contract section 3 asks.

A line is decoded by msgspec, at first with the fields that judging needs and no others, then with all, and only
where both refuse it is it looked at field by field to put its faults into words. Line numbers are 1-based and count
blank lines.
"""

from __future__ import annotations

import json
import math
import re
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, Union, cast, get_args, get_origin

import msgspec

from traces.history import CoreRecord, Record

_BLOCK = 1 << 16
_BOM = b"\xef\xbb\xbf"
_decoder = msgspec.json.Decoder(Record)
_core_decoder = msgspec.json.Decoder(CoreRecord)
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
    """Reads one stream of history lines; a fault is noted and the reading goes on.

    `faults`: the malformed lines so far, each knowing its number; `on_fault` is told of each before any later line is
    given. `warnings`: (line number, sentence) for an
    unterminated last line that was set aside. `lines`: how many lines were there, blank ones included; `records`:
    how many were decoded. The two are right when the reading is over.
    """

    def __init__(self, stream: BinaryIO, *, on_fault: Callable[[MalformedLine], None] | None = None) -> None:
        self._stream = stream
        self._on_fault = on_fault
        self.faults: list[MalformedLine] = []
        self.warnings: list[tuple[int, str]] = []
        self.lines = 0
        self.records = 0

    def whole_records(self) -> Iterator[tuple[int, Record]]:
        """(line number, record) pairs in file order, each record with all its fields."""
        return cast(Iterator[tuple[int, Record]], self._read(_decoder.decode))

    def core_records(self) -> Iterator[tuple[int, CoreRecord]]:
        """(line number, record) pairs in file order, with fields beyond the core only where that costs nothing."""
        return self._read(_core_decoder.decode)

    def _read(self, decode_fast: Callable[[bytes], CoreRecord]) -> Iterator[tuple[int, CoreRecord]]:
        number = without_record = others = 0
        rest = b""
        for block in self._blocks():
            sound = block.isascii() or _is_utf8(block)
            lines = block.split(b"\n")
            rest = lines.pop()
            for number, raw in enumerate(lines, number + 1):  # noqa: B020 - it goes on where it stopped
                try:
                    record = decode_fast(raw) if sound else decode(raw)
                except (msgspec.MsgspecError, MalformedLine, RecursionError):
                    found = self._one(raw, number)
                    if found is None:
                        without_record += 1
                        continue
                    record = found
                    others += 1
                    if others * 2 > number:  # fields beyond the core are the rule here: do not try without first
                        decode_fast = _decoder.decode
                yield number, record
        if rest:
            number += 1
            found = self._one(rest, number, terminated=False)
            if found is None:
                without_record += 1
            else:
                yield number, found
        self.lines = number
        self.records = number - without_record

    def _blocks(self) -> Iterator[bytes]:
        """The stream in blocks of whole lines; the last may lack its newline."""
        first = True
        while block := self._stream.read(_BLOCK):
            if not block.endswith(b"\n"):
                block += self._stream.readline()
            yield block.removeprefix(_BOM) if first else block
            first = False

    def _one(self, raw: bytes, number: int, *, terminated: bool = True) -> Record | None:
        """The record of one line, None where it is blank, set aside or malformed."""
        if not raw or raw.isspace():
            return None
        try:
            return decode(raw)
        except MalformedLine as error:
            if not terminated and not _is_whole_object(raw):
                self.warnings.append(
                    (number, "the last line ends in the middle of a record (its writer was stopped): set aside")
                )
            else:
                error.line = number
                self.faults.append(error)
                if self._on_fault is not None:
                    self._on_fault(error)
            return None


def read_history(path: Path) -> list[tuple[int, Record]]:
    """All records of a history file with their line numbers, in file order.

    Raises HistoryError with every malformed line, OSError where the file cannot be read. An unterminated last
    line that is no whole object is left out.
    """
    with path.open("rb") as stream:
        reader = Reader(stream)
        records = list(reader.whole_records())
    if reader.faults:
        raise HistoryError((fault.line, str(fault)) for fault in reader.faults)
    return records


def _is_utf8(block: bytes) -> bool:
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


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
