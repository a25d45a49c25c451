"""The doctor: says what is missing and how to get it, and never falls ill itself."""

from __future__ import annotations

import importlib.metadata
import re
import socket
from dataclasses import asdict
from typing import Any

import pytest

from harness import doctor


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spares the test the second that loading mitmproxy takes."""
    monkeypatch.setattr(doctor, "_load_error", lambda _module: "")


def by_name() -> dict[str, doctor.Check]:
    """All checks, by name."""
    return {check.name: check for check in doctor.checks()}


def test_machine_that_runs_the_tests_is_well() -> None:
    """Where this suite runs, nothing that is needed is missing, and every check has the contract's four fields."""
    done = doctor.checks()
    assert [check for check in done if not check.ok] == []
    assert {field for check in done for field in asdict(check)} == {"name", "ok", "detail", "remedy"}
    assert len({check.name for check in done}) == len(done)


@pytest.mark.usefixtures("quick")
def test_what_is_missing_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without mitmproxy both the library and the list of libraries name it, each with a command that installs it."""
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name == "mitmproxy":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    found = by_name()
    assert not found["mitmproxy"].ok
    assert not found["libraries"].ok
    assert "pip install 'mitmproxy>=11.0.2,<13'" in found["mitmproxy"].remedy
    assert "mitmproxy" in found["libraries"].detail


@pytest.mark.parametrize(
    ("version", "ok"), [("11.0.1", False), ("11.0.2", True), ("12.3.1", True), ("13.0.0", False), ("10.4", False)]
)
@pytest.mark.usefixtures("quick")
def test_releases_of_mitmproxy(monkeypatch: pytest.MonkeyPatch, version: str, ok: bool) -> None:
    """A release outside the bounds is refused, though it may be installed and load."""
    monkeypatch.setattr(doctor, "_version", lambda _name: version)
    assert by_name()["mitmproxy"].ok is ok


def test_bounds_are_those_of_the_package() -> None:
    """The doctor asks for the same releases of mitmproxy as the package's own requirements."""
    [requirement] = [line for line in importlib.metadata.requires("stormproof") or () if line.startswith("mitmproxy")]
    told = {tuple(map(int, number.split("."))) for number in re.findall(r"[\d.]+", requirement)}
    assert told == {doctor.MITMPROXY_FROM, doctor.MITMPROXY_BELOW}


def test_broken_installation_is_told_from_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """mitmproxy that is there and cannot be loaded is reported with the last line of its error."""
    real = doctor._load_error
    monkeypatch.setattr(doctor, "_load_error", lambda _module: real("no_such_module"))
    check = by_name()["mitmproxy"]
    assert not check.ok
    assert check.detail.endswith("cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'")


@pytest.mark.usefixtures("quick")
def test_closed_loopback_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which 127.0.0.1 cannot be bound is told so, with the system's own reason."""

    def refuse(*_: Any, **__: Any) -> socket.socket:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket, "create_server", refuse)
    assert by_name()["loopback"].detail == "127.0.0.1 cannot be used: Permission denied"


@pytest.mark.usefixtures("quick")
def test_full_disk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too little room for results is missing, with the amount that is needed."""
    usage = type("Usage", (), {"free": 1024 * 1024})()
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)
    check = by_name()["temporary folder"]
    assert not check.ok
    assert "200 MiB are needed" in check.remedy


@pytest.mark.usefixtures("quick")
def test_what_adds_comfort_is_never_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without uv, git and libfaketime everything is well; the doctor only says what they would be good for."""
    monkeypatch.setattr("shutil.which", lambda _name: None)
    monkeypatch.setattr(doctor, "_libfaketime", lambda: None)
    found = by_name()
    for name in ("uv", "git", "libfaketime"):
        assert found[name].ok
        assert found[name].detail.startswith("not found (optional: ")
        assert found[name].remedy


@pytest.mark.usefixtures("quick")
def test_check_that_fails_is_reported_and_the_rest_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that raises becomes a missing item of its own, and all the others are still made."""
    monkeypatch.setattr(doctor, "process_table", lambda: 1 / 0)
    found = by_name()
    assert not found["processes"].ok
    assert "ZeroDivisionError" in found["processes"].detail
    assert found["loopback"].ok
