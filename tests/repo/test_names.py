"""One name, one file, one concept: plugins, their classes, their tests and the numbers of scenarios agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from injectors.catalogue import KINDS
from invariants.registry import INVARIANTS
from tests.repo.sources import REPOSITORY, SHIPPED, files_below, relative, sources
from traces.importers import IMPORTERS

LAYERS = ("network", "tool", "model", "crash")

PLUGINS: list[tuple[str, type]] = [
    *((kind.kind, kind) for kind in KINDS),
    *((invariant.name, invariant) for invariant in INVARIANTS),
    *((importer.name, type(importer)) for importer in IMPORTERS),
]
"""Everything that is registered under a name of its own, and its class."""

named = pytest.mark.parametrize(("name", "plugin"), PLUGINS, ids=[name for name, _ in PLUGINS])


def file_of(plugin: type) -> Path:
    """The file of a class, from the repository's root."""
    return Path(*plugin.__module__.split(".")).with_suffix(".py")


@named
def test_file_and_class_are_called_like_the_plugin(name: str, plugin: type) -> None:
    """`reply-lost` is the class `ReplyLost` in `reply_lost.py`."""
    assert file_of(plugin).stem == name.replace("-", "_")
    assert plugin.__name__ == "".join(word.capitalize() for word in name.split("-"))


@named
def test_plugin_has_its_mirrored_test(name: str, plugin: type) -> None:
    """`injectors/network/reset.py` is tested by `tests/injectors/network/test_reset.py`, and so on."""
    mirrored = Path("tests", file_of(plugin).parent, f"test_{name.replace('-', '_')}.py")
    assert (REPOSITORY / mirrored).exists(), f"there is no {mirrored}"


def test_every_kind_is_registered_in_the_layer_of_its_folder() -> None:
    """The catalogue names the class of every file in the layers' folders, no other, and each says its layer."""
    files = {source.path for source in sources(*(f"injectors/{layer}" for layer in LAYERS))}
    concepts = {path for path in files if not Path(path).name.startswith("_")}
    assert {file_of(kind).as_posix() for kind in KINDS} == concepts
    assert [kind.kind for kind in KINDS if kind.layer != file_of(kind).parent.name] == []


def test_names_are_given_once() -> None:
    """No two plugins share a name: an argument or a field of a file means one thing."""
    names = [name for name, _ in PLUGINS]
    assert len(names) == len(set(names))


def test_scenario_numbers_are_those_of_the_files() -> None:
    """Every scenario's number is the one its file is named by, within the bands, and no number is there twice."""
    numbers: dict[str, str] = {}
    for path in files_below("scenarios"):
        where = relative(path)
        name = re.fullmatch(r"([1-79]\d\d)-[a-z0-9]+(-[a-z0-9]+)*\.yaml", path.name)
        assert name, f"{where} has to be named like 204-what-happens.yaml, by a number of a band that there is"
        number = re.search(r"^number:\s*(\d+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert number, f"{where} says no number"
        assert number[1] == name[1], f"{where} says number {number[1]}"
        assert number[1] not in numbers, f"{where} and {numbers[number[1]]} share a number"
        numbers[number[1]] = where


def test_no_two_files_differ_in_case_alone() -> None:
    """The tree can be checked out where `A.py` and `a.py` are one file."""
    paths = [relative(path) for folder in (*SHIPPED, "tests", "docs") for path in files_below(folder)]
    assert len({path.lower() for path in paths}) == len(paths)
