"""Text from traces loses its teeth."""

from __future__ import annotations

import pytest

from reports.text import counted, duration, lines_label, plain, scenario_label, spans


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("a\nb\r\nc\td", "a b c d"),
        ("nul\x00bell\x07", "nul\ufffdbell\ufffd"),
        ("\u202egnp.exe", "\ufffdgnp.exe"),
        ("\x9b31m", "\ufffd31m"),
        ("lone \ud800", "lone \ufffd"),
        ("<script> & \"'", "<script> & \"'"),
    ],
)
def test_plain_text_is_one_visible_line(hostile: str, shown: str) -> None:
    """Escape sequences go, control and direction characters are replaced; markup is the writers' own care."""
    assert plain(hostile) == shown


def test_long_text_is_cut_with_an_ellipsis() -> None:
    """The limit counts the ellipsis."""
    assert plain("abcdef", limit=4) == "abc…"
    assert plain("abcd", limit=4) == "abcd"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.84, "0.8 s"), (12.3, "12 s"), (185, "3 min 05 s"), (7800, "2 h 10 min")]
)
def test_durations_read_like_speech(seconds: float, text: str) -> None:
    """Units a person would use."""
    assert duration(seconds) == text


def test_small_words() -> None:
    """Lines, scenario numbers and counts."""
    assert lines_label([4]) == "line 4"
    assert lines_label([4, 9, "b.jsonl:3"]) == "lines 4, 9 and b.jsonl:3"
    assert lines_label([]) == "no lines"
    assert (scenario_label(7), scenario_label("101+204")) == ("007", "101+204")
    assert (counted(1, "run"), counted(1204, "run")) == ("1 run", "1\u2009204 runs")


def test_names_in_back_ticks_are_told_apart() -> None:
    """Balanced back-ticks are code, others are text."""
    assert spans("`charge` took effect") == [(True, "charge"), (False, " took effect")]
    assert spans("a ` b") == [(False, "a ` b")]
