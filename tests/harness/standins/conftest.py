"""One process of the stand-ins for a whole test module: each test opens runs and worlds of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.harness.standins.bench import Process, standins

_numbers = count(1)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """The running process."""
    with standins(tmp_path_factory.mktemp("standins")) as started:
        yield started


@pytest.fixture
def run() -> str:
    """A run id that no other test has."""
    return f"run-{next(_numbers)}"
