"""YAML files are read strictly: every mistake with its line, all of a file at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import InputError
from harness.loading import Document


def document(text: str) -> Document:
    """A document of that text."""
    return Document(Path("some.yaml"), text)


def test_plain_values_and_lines() -> None:
    """Values arrive as plain data, and every one knows its line."""
    read = document("a: 1\nb:\n  - x\n  - {c: true, d: null}\n")
    assert read.data == {"a": 1, "b": ["x", {"c": True, "d": None}]}
    assert [read.line(("a",)), read.line(("b", 1)), read.line(("b", 1, "c"))] == [1, 4, 4]
    assert read.line(("b", 7, "nowhere")) == 2


def test_duplicate_key() -> None:
    """A key that stands twice is refused, naming both lines."""
    assert document("a: 1\nb: 2\na: 3\n").faults == [
        "some.yaml:3: `a` stands here a second time (first in line 1); keep one of them"
    ]


@pytest.mark.parametrize("word", ["on", "off", "yes", "No"])
def test_switch_words(word: str) -> None:
    """`on` and its like, which YAML turns into true and false in silence, are refused unless quoted."""
    assert len(document(f"a: {word}\n").faults) == 1
    assert document(f"a: '{word}'\n").faults == []


def test_broken_yaml() -> None:
    """A file that is no YAML is refused at the line where it breaks."""
    assert document("a: 1\nb: [1, 2\n").faults[0].startswith("some.yaml:3: is not valid YAML")
    assert document("a: !!python/object:os.system {}\n").data == {"a": {}}


def test_missing_file() -> None:
    """A file that is not there is a fault, not an exception."""
    assert Document(Path("/nowhere/x.yaml")).faults == [
        "/nowhere/x.yaml:1: cannot be read: No such file or directory"
    ]


def test_all_faults_of_a_file_at_once() -> None:
    """Wrong types, unknown names and bad choices are collected, each with its line and what would be right."""
    read = document("name: 3\ncount: -1\nmode: fats\nnmae: x\n")
    fields = read.root("a thing")
    fields.text("name")
    fields.integer("count")
    fields.choice("mode", ["fast", "slow"], "fast")
    fields.text("needed", required=True)
    fields.done()
    with pytest.raises(InputError) as refused:
        read.raise_faults()
    assert list(refused.value.faults) == [  # from the top of the file to its end
        "some.yaml:1: `name` has to be text, not a number; put it in quotes",
        "some.yaml:1: a thing needs `needed`",
        "some.yaml:2: `count` has to be a whole number of at least 0, not -1",
        "some.yaml:3: `mode` cannot be 'fats'; it is `fast` or `slow`; did you mean `fast`?",
        "some.yaml:4: a thing has no field `nmae`; did you mean `name`?",
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("&a [*a]", 1, "anchors and aliases"),
        ("x: 1\ny: &a {x: *a}", 2, "anchors and aliases"),
        ("a: &a [x, x]\nb: &b [*a, *a]", 1, "anchors and aliases"),
        ("a:\n  " + "[" * 5000, 2, "nested more than 100 levels deep"),
        ("a: !mine x", 1, "the tag `!mine` is not read here"),
        ("a: !mine {b: c}", 1, "the tag `!mine` is not read here"),
        ("a: !!binary aGk=", 1, "the tag `!!binary` is not read here"),
        ("a: !!bool maybe", 1, "cannot be read as !!bool"),
        ("a: 1\nb: x\0y", 2, "the character U+0000 may not stand here"),
        ('a: "\\UFFFFFFFF"', 1, "is not valid YAML"),
        ("a: " + "9" * 5000, 1, "a number of 5000 characters"),
        ("a: 0x" + "f" * 40, 1, "is no number that can be worked with"),
        ("a: .inf", 1, "is no number that can be worked with"),
        ("a: .NaN", 1, "is no number that can be worked with"),
        ("? [a, b]\n: c", 1, "a name has to be text"),
    ],
)
def test_what_could_break_a_reader(text: str, line: int, words: str) -> None:
    """Recursion, depth, tags, control characters and boundless numbers are refused in one line each."""
    (fault, *_) = document(text).faults
    assert fault.startswith(f"some.yaml:{line}: ")
    assert words in fault
    assert fault.isprintable()


def test_echoes_are_short_and_harmless() -> None:
    """What a message repeats of a file is cut, and no character of it is one that a terminal obeys."""
    read = document('"\\e[2Jn\\am": 1\n' + f"mode: {'x ' * 500}y\nflag: {'z' * 500}\n")
    fields = read.root("a thing")
    fields.choice("mode", ["fast"], "fast")
    fields.flag("flag")
    fields.done()
    assert len(read.faults) == 3
    assert all(fault.isprintable() and len(fault) < 200 for fault in read.faults)


@pytest.mark.parametrize("written", ["1000000000001", "1.0e+300"])
def test_numbers_have_an_upper_bound(written: str) -> None:
    """A number that nothing could wait for or count to is refused."""
    read = document(f"a: {written}\n")
    read.root("a thing").number("a")
    assert "at most 1e+12" in read.faults[0]


@pytest.mark.parametrize(("text", "words"), [("", "is empty"), ("# nothing\n", "is empty"), ("[a]", "a mapping")])
def test_no_mapping_at_all(text: str, words: str) -> None:
    """Of an empty file and of a list one thing is said, and nothing of fields that it lacks."""
    with pytest.raises(InputError) as refused:
        document(text).root("a thing")
    (fault,) = refused.value.faults
    assert words in fault
