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
