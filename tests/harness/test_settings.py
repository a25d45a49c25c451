"""`[tool.stormproof]` is found upwards, read strictly, and optional."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import InputError
from harness.settings import Settings, load_settings


def project(folder: Path, table: str) -> Path:
    """A project with that table, and a folder deep inside of it."""
    (folder / "pyproject.toml").write_text(f'[project]\nname = "x"\n\n{table}')
    inside = folder / "a" / "b"
    inside.mkdir(parents=True)
    return inside


def test_found_upwards(tmp_path: Path) -> None:
    """Paths are relative to the file that names them."""
    inside = project(tmp_path, '[tool.stormproof]\nagent = "agent.yaml"\ntraces = "runs"\ntools = "tools.yaml"\n')
    settings = load_settings(inside)
    assert settings.agent == str(tmp_path / "agent.yaml")
    assert settings.traces == (tmp_path / "runs",)
    assert settings.tools == tmp_path / "tools.yaml"
    assert settings.sets == ("ci",)


def test_without_a_table(tmp_path: Path) -> None:
    """A project without the table gets the bundled traces and the reference agent."""
    assert load_settings(project(tmp_path, "")) == Settings()


def test_refusals(tmp_path: Path) -> None:
    """Unknown fields and wrong types are named with file and line."""
    inside = project(tmp_path, '[tool.stormproof]\nagnet = "x"\nsets = 3\n')
    with pytest.raises(InputError) as refused:
        load_settings(inside)
    file = tmp_path / "pyproject.toml"
    assert list(refused.value.faults) == [
        f"{file}:5: [tool.stormproof] has no field `agnet`; did you mean `agent`?",
        f"{file}:6: [tool.stormproof] `sets` has to be a text or a list of texts",
    ]
