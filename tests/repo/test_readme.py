"""The pages a reader meets first: every command on them runs, every link leads somewhere."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.repo.sources import REPOSITORY, files_below

PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    *(f"docs/{path.name}" for path in files_below("docs") if path.suffix == ".md"),
)

COPIED = ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml", "docs", "scenarios", "tests")
"""What a command of a page may read in the folder it is run in; a page may write there as it likes."""

LIMIT_S = 120

COMMENT = re.compile(r"<!-- (?:not run: (?P<reason>\S.*)|exits (?P<code>\d+)) -->")


@dataclass(frozen=True, slots=True)
class Block:
    """One block of commands of a page."""

    page: str
    line: int
    script: str
    reason: str | None
    """Why it is not run, where its page says so."""
    code: int

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def targets(self) -> list[str]:
        """The targets of make, where the block calls nothing else; they are not run from within the tests."""
        lines = self.script.splitlines()
        found = [match[1] for match in (re.fullmatch(r"make ([a-z-]+)", line) for line in lines) if match]
        return found if len(found) == len(lines) else []


def blocks(page: str) -> Iterator[Block]:
    """The `console` and `bash` blocks of a page. A comment in the line before says what is special about one."""
    lines = (REPOSITORY / page).read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        opened = re.fullmatch(r"```(\w+)", lines[number])
        if not opened:
            number += 1
            continue
        end = lines.index("```", number + 1)
        if opened[1] in ("console", "bash", "sh", "shell"):
            body = lines[number + 1 : end]
            if opened[1] == "console":  # what does not begin with a prompt is output
                body = [line[2:] for line in body if line.startswith(("$ ", "> "))]
            comment = COMMENT.fullmatch(lines[number - 1])
            reason, code = (comment["reason"], comment["code"]) if comment else (None, None)
            yield Block(page, number + 1, "\n".join(body), reason, int(code or 0))
        number = end + 1


ALL = [block for page in PAGES for block in blocks(page)]


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A function from a page to the folder in which its blocks are run, one after the other as they stand there."""

    @functools.cache
    def copy(page: str) -> Path:
        folder = tmp_path_factory.mktemp("reader")
        for name in COPIED:
            if (REPOSITORY / name).is_dir():
                shutil.copytree(REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(REPOSITORY / name, folder / name)
        (folder / ".venv").symlink_to(sys.prefix)
        return folder

    yield copy


@pytest.mark.parametrize("block", ALL, ids=str)
def test_commands_run_as_printed(block: Block, copies: functools._lru_cache_wrapper[Path]) -> None:
    """A block runs as it stands, with the exit code its page states; targets of make are there."""
    if block.reason:
        pytest.skip(block.reason)
    if block.targets:
        rules = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert set(block.targets) <= set(rules)
        return
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "MAKE"))}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.script],
        cwd=copies(block.page),
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == block.code, f"{block}\n{block.script}\n{done.stdout}{done.stderr}"


def test_first_page_names_the_two_commands() -> None:
    """The README's first block is the two commands that set everything up."""
    first = next(blocks("README.md"))
    assert first.targets == ["run", "test"]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    """Every link to a file of the repository leads to one that is there."""
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    missing = [link for link in links if not (REPOSITORY / page).parent.joinpath(link).exists()]
    assert missing == []


def test_reading_of_a_page() -> None:
    """The reader itself: on this page's own rules, it finds commands, leaves output out, and heeds comments."""
    found = {block.script.split()[0]: block for block in ALL if block.page == "README.md"}
    assert found["mkdir"].script.splitlines()[-1].startswith(".venv/bin/stormproof run --scenarios my-scenarios")
    assert any(block.reason for block in ALL)
    assert {block.code for block in ALL} >= {0, 1}
