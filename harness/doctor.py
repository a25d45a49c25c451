"""What this machine lacks for the work, and how to get it.

Every check looks at the thing itself (a port is bound, a process is forked, mitmproxy is loaded) and none changes
anything. What only adds comfort is never a fault: it is reported as found or not, and why it would be of use.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from injectors.drivers.process_tree import can_be_subreaper, process_table

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)
"""The Pythons on which the test suite is run."""

MITMPROXY_FROM, MITMPROXY_BELOW = (11, 0, 2), (13,)
"""The releases whose insides the proxy driver knows (the same bounds as in pyproject.toml)."""

DISK_NEEDED = 200 * 1024 * 1024
"""Bytes; a night's results and the state folders of its agents."""

FILES_NEEDED = 512
"""Open files; a run takes about ten in the proxy, and a dozen run side by side."""

_DISTRIBUTION = "stormproof"
_LOAD_LIMIT_S = 60


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. `remedy` is what to do about it, empty where nothing is to be done."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def checks() -> list[Check]:
    """Look at everything. A check that itself fails is reported as missing, with its own error as detail."""
    return [check for look in _LOOKS for check in _guarded(look)]


def _guarded(look: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    try:
        yield from look()
    except Exception as error:  # noqa: BLE001 - the doctor has to get through all of it on the oddest machine
        name = look.__name__.strip("_").replace("_", " ")
        yield Check(name, False, f"could not be looked at: {type(error).__name__}: {error}", "report this as a bug")


# ------------------------------------------------------------------------------------------- software


def _python() -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    supported = f"{OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} to {NEWEST_PYTHON[0]}.{NEWEST_PYTHON[1]}"
    detail = f"{version} at {sys.executable}"
    if sys.version_info < OLDEST_PYTHON:
        yield Check("python", False, detail, f"install Python {supported} and set up again")
    elif sys.version_info[:2] > NEWEST_PYTHON:
        yield Check("python", True, f"{detail}; newer than the tested {supported}")
    else:
        yield Check("python", True, detail)


def _libraries() -> Iterator[Check]:
    missing = []
    for requirement in importlib.metadata.requires(_DISTRIBUTION) or ():
        if "extra ==" in requirement:
            continue
        name = re.match(r"[\w.-]+", requirement)
        if name and not _version(name[0]):
            missing.append(requirement)
    if missing:
        remedy = f"{sys.executable} -m pip install {' '.join(map(repr, missing))}"
        yield Check("libraries", False, f"not installed: {', '.join(missing)}", remedy)
    else:
        yield Check("libraries", True, "all installed")


def _mitmproxy() -> Iterator[Check]:
    wanted = f"mitmproxy>={'.'.join(map(str, MITMPROXY_FROM))},<{MITMPROXY_BELOW[0]}"
    remedy = f"{sys.executable} -m pip install '{wanted}'"
    version = _version("mitmproxy")
    if not version:
        yield Check("mitmproxy", False, "not installed", remedy)
        return
    if not MITMPROXY_FROM <= _numbers(version) < MITMPROXY_BELOW:
        yield Check("mitmproxy", False, f"{version}; the proxy driver knows {wanted}", remedy)
        return
    if error := _load_error("mitmproxy.addons.proxyserver"):
        yield Check("mitmproxy", False, f"{version} cannot be loaded: {error}", f"{remedy} --force-reinstall")
    else:
        yield Check("mitmproxy", True, version)


def _load_error(module: str) -> str:
    """What a process that imports `module` says last, empty where it succeeds.

    A process of its own, because what breaks mitmproxy is mostly a compiled library that does not fit.
    """
    command = [sys.executable, "-P", "-c", f"import {module}"]
    loaded = subprocess.run(command, capture_output=True, text=True, timeout=_LOAD_LIMIT_S, errors="replace")
    return (loaded.stderr.strip().splitlines() or ["no message"])[-1] if loaded.returncode else ""


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


# -------------------------------------------------------------------------------------------- machine


def _processes() -> Iterator[Check]:
    if can_be_subreaper():
        yield Check("process tree", True, "orphans are adopted (prctl, PR_SET_CHILD_SUBREAPER)")
    else:
        detail = f"{sys.platform} adopts no orphans: they are found by the run's mark in their environment"
        yield Check("process tree", True, f"{detail}, which misses those that cleared it")
    if os.getpid() in process_table():
        yield Check("process table", True, f"{len(process_table())} processes seen")
    else:
        yield Check("process table", False, "this process cannot be seen", "mount /proc, or install the ps command")


def _loopback() -> Iterator[Check]:
    remedy = "bring the loopback interface up (ip link set lo up) and allow ports on 127.0.0.1"
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            with socket.create_connection(("127.0.0.1", port), timeout=2) as client, server.accept()[0] as peer:
                client.sendall(b"x")
                heard = peer.recv(1)
    except OSError as error:
        yield Check("loopback", False, f"127.0.0.1 cannot be used: {error.strerror or error}", remedy)
        return
    if heard == b"x":
        yield Check("loopback", True, "ports of 127.0.0.1 can be bound and reached")
    else:
        yield Check("loopback", False, "what is sent to 127.0.0.1 does not arrive", remedy)


def _temporary_folder() -> Iterator[Check]:
    remedy = "set TMPDIR to a writable folder on a disk with room"
    try:
        folder = tempfile.gettempdir()
        with tempfile.TemporaryFile() as file:
            file.write(b"x")
    except OSError as error:
        yield Check("temporary folder", False, f"not writable: {error.strerror or error}", remedy)
        return
    free = shutil.disk_usage(folder).free
    yield Check(
        "temporary folder",
        free >= DISK_NEEDED,
        f"{folder}, {free / 1024**2:,.0f} MiB free",
        "" if free >= DISK_NEEDED else f"{remedy}: {DISK_NEEDED // 1024**2} MiB are needed",
    )


def _open_files() -> Iterator[Check]:
    try:
        import resource
    except ImportError:
        return
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = soft == resource.RLIM_INFINITY or soft >= FILES_NEEDED
    detail = "no limit" if soft == resource.RLIM_INFINITY else f"{soft} at once"
    yield Check("open files", enough, detail, "" if enough else f"ulimit -n {2 * FILES_NEEDED}")


# -------------------------------------------------------------------------------------------- comfort


def _optional() -> Iterator[Check]:
    yield _comfort("uv", shutil.which("uv"), "sets the project up faster", "pip install uv")
    yield _comfort("git", shutil.which("git"), "tells the tests which files belong to the project", "install git")
    yield _comfort("libfaketime", _libfaketime(), "moves an agent's clock", "apt install libfaketime")


def _comfort(name: str, place: str | None, use: str, remedy: str) -> Check:
    if place:
        return Check(name, True, f"{place} (optional: {use})")
    return Check(name, True, f"not found (optional: {use})", remedy)


def _libfaketime() -> str | None:
    patterns = (
        "lib/*/faketime/libfaketime.so.1",
        "lib*/faketime/libfaketime.so.1",
        "local/lib/faketime/libfaketime.so.1",
    )
    found = next((path for pattern in patterns for path in Path("/usr").glob(pattern)), None)
    return str(found) if found else shutil.which("faketime")


_LOOKS = (_python, _libraries, _mitmproxy, _processes, _loopback, _temporary_folder, _open_files, _optional)
