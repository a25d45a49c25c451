"""Text from traces made harmless for where it is shown: terminals, XML and tables take what they can bear."""

from __future__ import annotations

import re
import unicodedata

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")


def plain(value: object, *, limit: int | None = None) -> str:
    """One line of visible text: escape sequences dropped, control characters and text direction marks replaced.

    With `limit` the text is cut to so many characters, the last an ellipsis.
    """
    text = " ".join(visible(value).split())
    return text if limit is None or len(text) <= limit else text[: max(0, limit - 1)] + "…"


def visible(value: object) -> str:
    """The same with the blanks of the text as they are, for lines that are indented or in columns."""
    text = str(value)
    return text if text.isprintable() else "".join(_visible(character) for character in _ANSI.sub("", text))


def _visible(character: str) -> str:
    if character in "\n\r\t\v\f\u2028\u2029":
        return " "
    if character in _BIDI or unicodedata.category(character) in {"Cc", "Cs", "Co", "Cn"}:
        return "\ufffd"
    return character


def duration(seconds: float) -> str:
    """A duration for people: `0.8 s`, `12 s`, `3 min 05 s`, `2 h 10 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def scenario_label(number: int | str) -> str:
    """A scenario's number as it is written everywhere: three digits at least."""
    return f"{number:03}" if isinstance(number, int) else number


def lines_label(evidence: list[int | str]) -> str:
    """Evidence lines for people: `lines 4 and 9`."""
    if not evidence:
        return "no lines"
    shown = [plain(line) for line in evidence]
    if len(shown) == 1:
        return f"line {shown[0]}"
    return f"lines {', '.join(shown[:-1])} and {shown[-1]}"


def number(count: int) -> str:
    """`1 204`: thousands apart by a thin blank."""
    return f"{count:,}".replace(",", "\u2009")


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`1 run`, `1 204 runs`."""
    return f"{number(count)} {noun if count == 1 else plural or f'{noun}s'}"


def fired(times: int) -> str:
    """How often a fault fired, in words."""
    return {0: "never fired", 1: "fired once", 2: "fired twice"}.get(times, f"fired {times} times")


def spans(value: object) -> list[tuple[bool, str]]:
    """A sentence cut at its back-ticks: (is code, text). One that has an odd number of them is left as it is."""
    text = plain(value)
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return [(False, text)]
    return [(at % 2 == 1, part) for at, part in enumerate(parts) if part]
