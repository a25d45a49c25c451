"""`[tool.stormproof]` in `pyproject.toml`: where agent, tools, traces and scenarios of a project are."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.loading import did_you_mean

APPLICATION = Path(__file__).resolve().parent.parent
"""The folder that holds our own `scenarios/` and `traces/`: a checkout's root, or `_app` in a wheel."""

KNOWN = ("agent", "tools", "traces", "scenarios", "sets", "out", "on_alarm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the command line takes where an option is not given. Paths are absolute."""

    agent: str = "reference"
    tools: Path = APPLICATION / "traces" / "recorded" / "tools.yaml"
    traces: tuple[Path, ...] = (APPLICATION / "traces" / "recorded",)
    scenarios: tuple[Path, ...] = (APPLICATION / "scenarios",)
    sets: tuple[str, ...] = ("ci",)
    out: Path = Path("stormproof-results")


def load_settings(folder: Path | None = None) -> Settings:
    """The settings of the nearest `pyproject.toml` at or above `folder` that has a `[tool.stormproof]`.

    Without one, the bundled traces, tools, scenarios and the reference agent. Raises `InputError` where the table
    holds a field nobody knows or a value of the wrong type.
    """
    start = (folder or Path.cwd()).resolve()
    for candidate in (start, *start.parents):
        file = candidate / "pyproject.toml"
        if not file.is_file():
            continue
        try:
            table: Any = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get("stormproof")
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{file}:1: is not valid TOML: {error}") from None
        if table is not None:
            return _settings_from(table, file)
    return Settings()


def _settings_from(table: Any, file: Path) -> Settings:
    faults: list[str] = []
    lines = file.read_text(encoding="utf-8").splitlines()

    def refuse(key: str, message: str) -> None:
        line = next((n for n, text in enumerate(lines, 1) if text.strip().startswith(key)), 1)
        faults.append(f"{file}:{line}: [tool.stormproof] {message}")

    if not isinstance(table, dict):
        raise InputError(f"{file}:1: tool.stormproof has to be a table")
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in KNOWN:
            refuse(key, f"has no field `{key}`{did_you_mean(key, KNOWN)}")
        elif key in ("traces", "scenarios", "sets"):
            items = [value] if isinstance(value, str) else value
            if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
                refuse(key, f"`{key}` has to be a text or a list of texts")
            else:
                values[key] = tuple(items) if key == "sets" else tuple(file.parent / item for item in items)
        elif not isinstance(value, str):
            refuse(key, f"`{key}` has to be a text")
        elif key in ("tools", "out"):
            values[key] = file.parent / value
        elif key == "agent":
            values[key] = str(file.parent / value) if value.endswith((".yaml", ".yml")) else value
    if faults:
        raise InputError(faults)
    return Settings(**values)
