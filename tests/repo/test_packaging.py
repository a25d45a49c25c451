"""The wheel: one importable name, everything the application needs beneath it, and the main job runs from it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.repo.sources import REPOSITORY, SHIPPED, files_below, relative

OFFLINE = re.compile(
    r"NewConnectionError|ConnectTimeout|ReadTimeout|ProxyError|Name or service not known|Temporary failure in name"
    r"|Network is unreachable|Connection refused|dns error|error sending request"
)
"""What pip and uv say when the index cannot be reached."""

INSTALL_LIMIT_S = 900

RESULT_FILES = {
    "history.jsonl",
    "verdicts.jsonl",
    "activations.csv",
    "summary.json",
    "junit.xml",
    "summary.md",
    "report.html",
}
"""What a run leaves in its folder (contract section 1)."""


def declared() -> dict[str, str]:
    """The packages of pyproject.toml and the folder of each, from the repository's root."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    places: dict[str, str] = settings["package-dir"]
    found = {}
    for package in settings["packages"]:
        root = max((name for name in places if f"{package}.".startswith(f"{name}.")), key=len)
        found[package] = places[root] + package.removeprefix(root).replace(".", "/")
    return found


def shipped_name(path: str) -> str:
    """Where a file of the repository stands in the wheel."""
    return path if path.startswith("stormproof/") else f"stormproof/_app/{path}"


def test_list_of_packages_is_the_tree() -> None:
    """Every folder with code in it is in the list of packages, and the list names no folder that is not there."""
    code = (path for floor in SHIPPED for path in files_below(floor) if path.suffix == ".py")
    folders = {"scenarios", *(relative(path.parent) for path in code)}
    wanted = {shipped_name(f"{folder}/").rstrip("/").replace("/", "."): folder for folder in folders}
    assert declared() == wanted


# ----------------------------------------------------------------------------------------- the wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the tree as it is, built in a copy: a build leaves folders behind that later builds would read."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for floor in SHIPPED:
        for path in files_below(floor):
            copy = source / relative(path)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(REPOSITORY / name, source / name)
    code = f"from setuptools import build_meta; build_meta.build_wheel({str(folder)!r})"
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    [built] = folder.glob("*.whl")
    return built


def test_wheel_holds_every_file(wheel: Path) -> None:
    """Code, scenarios, recorded traces, templates: no file of the tree is left out, and none is there that is not."""
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert inside == {shipped_name(relative(path)) for floor in SHIPPED for path in files_below(floor)}


def test_wheel_has_one_importable_name(wheel: Path) -> None:
    """The record of the wheel knows one top-level name, `stormproof`; nothing squats on `reports` or `traces`."""
    archive = zipfile.ZipFile(wheel)
    [record] = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD")]
    files = [line.split(",")[0] for line in archive.read(record).decode().splitlines()]
    assert {name.split("/")[0] for name in files if ".dist-info/" not in name} == {"stormproof"}
    assert archive.read(record.replace("RECORD", "top_level.txt")).decode().split() == ["stormproof"]


def test_wheel_says_its_licence(wheel: Path) -> None:
    """The wheel carries the licence's text, its name, and the mark that its types can be relied on."""
    archive = zipfile.ZipFile(wheel)
    [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    assert "License-Expression: Apache-2.0" in archive.read(metadata).decode()
    assert any(name.endswith("licenses/LICENSE") for name in archive.namelist())
    assert "stormproof/py.typed" in archive.namelist()


# ------------------------------------------------------------------------------------- the installation


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of a clean environment with the wheel and its dependencies in it."""
    environment = tmp_path_factory.mktemp("clean") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    command = [*installer(environment / "bin" / "python"), str(wheel)]
    done = subprocess.run(command, cwd=environment, capture_output=True, text=True, timeout=INSTALL_LIMIT_S)
    if done.returncode and OFFLINE.search(done.stdout + done.stderr):
        pytest.skip(f"the package index cannot be reached: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    assert done.returncode == 0, done.stdout + done.stderr
    return environment / "bin"


def installer(python: Path) -> list[str]:
    """The beginning of a command that installs into the environment of `python`: uv where it is there, else pip."""
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--quiet", "--python", str(python)]
    for own in (sys.executable, str(Path(sys.base_prefix, "bin", "python3"))):
        if subprocess.run([own, "-m", "pip", "--version"], capture_output=True).returncode == 0:
            options = ["install", "--quiet", "--no-compile", "--disable-pip-version-check"]
            return [own, "-m", "pip", "--python", str(python), *options]
    pytest.skip("there is neither uv nor pip to install the wheel with")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A project of somebody else, with packages of its own that are called like ours and fail when imported by us."""
    for name in ("reports", "harness", "traces"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f'raise RuntimeError("this is somebody else\'s {name}")\n')
    return tmp_path


def plain_environment() -> dict[str, str]:
    """The environment without anything that points at the repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}


def test_installation_hides_the_application(installed: Path, tmp_path: Path) -> None:
    """In the environment of the wheel an agent can import `stormproof` and none of the folders below it."""
    code = f"""
import importlib.util, json
print(json.dumps([name for name in {SHIPPED!r} if importlib.util.find_spec(name)]))
"""
    done = subprocess.run(
        [installed / "python", "-c", code], cwd=tmp_path, env=plain_environment(), capture_output=True, text=True
    )
    assert json.loads(done.stdout) == ["stormproof"], done.stderr


def test_main_job_runs_from_elsewhere(installed: Path, elsewhere: Path) -> None:
    """The installed command plays a bundled scenario in a foreign folder and leaves all the files of a result."""
    command = [
        str(installed / "stormproof"),
        "run",
        "--scenario",
        "101",
        "--trace",
        "order-small",
        "--out",
        "out",
        "--json",
    ]
    done = subprocess.run(
        command, cwd=elsewhere, env=plain_environment(), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads(done.stdout)
    assert summary["exit_code"] == 0
    assert summary["runs"] >= 1
    assert summary["violations"] == []
    assert {path.name for path in (elsewhere / "out").iterdir()} >= RESULT_FILES
    assert json.loads((elsewhere / "out" / "summary.json").read_text()) == summary


def test_module_form_runs_from_elsewhere(installed: Path, elsewhere: Path) -> None:
    """`python -m stormproof`, which puts the current folder on the path, still loads our packages and not theirs."""
    done = subprocess.run(
        [installed / "python", "-m", "stormproof", "scenarios", "list", "--json"],
        cwd=elsewhere,
        env=plain_environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert 101 in [int(scenario["number"]) for scenario in json.loads(done.stdout)]
