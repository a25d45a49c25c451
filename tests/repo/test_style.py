"""How code is written here, as far as a machine can tell. Each test lists all places that break its rule."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator

import pytest

from tests.repo.sources import FLOORS, REPOSITORY, Source, refuse, sources

MOST_LINES = 400
MOST_BY_POSITION = 3
LEFT_OVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")

EVERYTHING = (*FLOORS, "tests", "benchmarks")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


def test_files_are_not_too_long() -> None:
    """A file of more than 400 lines holds more than one concept and wants splitting."""
    lengths = {source.path: source.text.count("\n") for source in sources(*EVERYTHING)}
    refuse(f"{path}: {length} lines" for path, length in lengths.items() if length > MOST_LINES)


def test_what_is_public_says_what_it_is() -> None:
    """Every module, public class and public function to ship has a docstring."""
    modules = [
        f"{source.path}:1" for source in sources(*FLOORS) if source.tree.body and not ast.get_docstring(source.tree)
    ]
    inner = [where for where, node in public() if not ast.get_docstring(node)]
    refuse(modules + inner)


def test_more_than_three_arguments_go_by_name() -> None:
    """A public function takes at most three arguments by position, the rest by name.

    Decorated ones are left out: what calls a command of the command line is not a person.
    """
    found = [
        where
        for where, node in public()
        if isinstance(node, Function) and not node.decorator_list and len(by_position(node)) > MOST_BY_POSITION
    ]
    refuse(found)


def test_no_assert_carries_behaviour() -> None:
    """`python -O` removes asserts: outside tests there are none."""
    nodes = ((source, node) for source in sources(*FLOORS) for node in ast.walk(source.tree))
    refuse(f"{source.path}:{node.lineno}" for source, node in nodes if isinstance(node, ast.Assert))


def test_nothing_is_left_to_do() -> None:
    """No comment puts work off: it is done, or it stands in the tracker."""
    comments = ((source, token) for source in sources(*EVERYTHING) for token in comments_of(source))
    refuse(f"{source.path}:{token.start[0]}" for source, token in comments if LEFT_OVER.search(token.string))


def test_tests_state_their_claim() -> None:
    """Every test has a docstring, whose first line is its claim."""
    functions = (
        (source, node) for source in sources("tests") for node in ast.walk(source.tree) if isinstance(node, Function)
    )
    found = [
        f"{source.path}:{node.lineno} {node.name}"
        for source, node in functions
        if node.name.startswith("test_") and not (ast.get_docstring(node) or "").strip()
    ]
    refuse(found)


@pytest.mark.parametrize("arguments", [("check", "."), ("format", "--check", ".")], ids=["rules", "format"])
def test_ruff_is_content(arguments: tuple[str, ...]) -> None:
    """ruff finds nothing to say, neither about rules nor about format."""
    done = subprocess.run([sys.executable, "-m", "ruff", *arguments], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_hold() -> None:
    """mypy, at its strictest, finds no fault in code and tests."""
    done = subprocess.run([sys.executable, "-m", "mypy"], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# --------------------------------------------------------------------------------- reading the sources


def public() -> Iterator[tuple[str, Definition]]:
    """Classes and functions of the modules to ship, and methods of their public classes, that a reader may use.

    Left out are names with an underscore, the methods of a class with bases, and methods that a decorator hands to
    somebody else (a hook of mitmproxy): they keep a contract that is described where it is made.
    """
    for source in sources(*FLOORS):
        for node in visible(source.tree):
            yield f"{source.path}:{node.lineno} {node.name}", node
            if isinstance(node, ast.ClassDef) and not node.bases:
                for inner in visible(node):
                    if handed_over(inner):
                        continue
                    yield f"{source.path}:{inner.lineno} {node.name}.{inner.name}", inner


def visible(body: ast.Module | ast.ClassDef) -> list[Definition]:
    """What a module or class defines under a name without an underscore."""
    return [node for node in body.body if isinstance(node, Definition) and not node.name.startswith("_")]


def handed_over(node: Definition) -> bool:
    """Whether a decorator of the project's own stands before a method."""
    known = {"property", "cached_property", "classmethod", "staticmethod"}
    return any(not (isinstance(name, ast.Name) and name.id in known) for name in node.decorator_list)


def by_position(node: Function) -> list[ast.arg]:
    """The arguments that can be given by position, without `self`."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    return [argument for argument in arguments if argument.arg not in ("self", "cls")]


def comments_of(source: Source) -> Iterator[tokenize.TokenInfo]:
    """The comments of a file."""
    tokens = tokenize.generate_tokens(io.StringIO(source.text).readline)
    return (token for token in tokens if token.type == tokenize.COMMENT)
