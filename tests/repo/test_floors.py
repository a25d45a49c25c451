"""Who may import whom: the floors of the house, and the one door of each third party."""

from __future__ import annotations

import ast
import sys

import pytest

from tests.repo.sources import FLOORS, Source, refuse, sources

BELOW = {
    "harness": {"reports", "injectors", "invariants", "traces", "stormproof"},
    "reports": {"invariants", "traces"},
    "injectors": {"traces"},
    "invariants": {"traces"},
    "traces": set(),
    "agents": set(),
    "stormproof": {"harness", "agents"},
}
"""What each floor may import of ours, besides itself. (`stormproof` only starts the application.)"""

CATALOGUE = ("harness", "agents.catalogue")
"""The one exception: the command line lists the agents that can be run by name, and starts them as processes."""

STANDARD_LIBRARY_ONLY = {"agents": set(), "stormproof": {"pytest", "_pytest"}}
"""Floors that do without third parties, but for those named: they run in other people's environments."""

DOORS = {
    "mitmproxy": ("injectors/drivers/proxy",),
    "pandas": ("reports/tables",),
    "faker": ("traces/mask", "traces/recording/"),
    "yaml": ("harness/loading", "traces/importers/cassette"),
    "dask": ("harness/cluster",),
    "distributed": ("harness/cluster",),
}
"""Third parties with one door, and the beginnings of the paths where that door is."""


@pytest.mark.parametrize("floor", FLOORS)
def test_floor_imports_only_what_is_below(floor: str) -> None:
    """No file imports from a floor above its own or beside it."""
    allowed = BELOW[floor] | {floor}
    wrong = [
        f"{source.path}:{line} imports {name}"
        for source in sources(floor)
        for line, name in source.imports
        if name.partition(".")[0] in {*FLOORS, "tests", "scenarios", "benchmarks"} - allowed
        and (floor, name) != CATALOGUE
    ]
    refuse(wrong)


@pytest.mark.parametrize("floor", STANDARD_LIBRARY_ONLY)
def test_floor_does_without_third_parties(floor: str) -> None:
    """The reference agent and the installed face need the standard library, and the plugin pytest, alone."""
    allowed = STANDARD_LIBRARY_ONLY[floor] | sys.stdlib_module_names | BELOW[floor] | {floor}
    wrong = [
        f"{source.path}:{line} imports {name}"
        for source in sources(floor)
        for line, name in source.imports
        if name.partition(".")[0] not in allowed
    ]
    refuse(wrong)


@pytest.mark.parametrize("library", DOORS)
def test_third_party_comes_in_by_its_door(library: str) -> None:
    """A library that has a door is imported nowhere else: it can be replaced, or left unloaded, in one place."""
    wrong = [
        f"{source.path}:{line} imports {name}"
        for source in sources(*FLOORS)
        for line, name in source.imports
        if name.partition(".")[0] == library and not source.path.startswith(DOORS[library])
    ]
    refuse(wrong)


def test_rule_sees_imports_inside_functions() -> None:
    """The rule itself: an import that is hidden in a function is seen, and its line is told."""
    text = "def late():\n    from harness.cli import main\n    import pandas as pd\n"
    assert Source("traces/x.py", text, ast.parse(text)).imports == [(2, "harness.cli"), (3, "pandas")]
