"""Reads everything a run is made of, and says all that is wrong with it at once (DESIGN section 5, step 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.loading import Document
from harness.planning import TraceFile, describe_trace
from traces.mask import find_secrets
from traces.registry import Registry, RegistryError
from traces.registry_reading import registry_from
from traces.trace import TraceError, read_trace


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsFile:
    """A `tools.yaml`: typed, and as the plain data that other processes are sent."""

    path: Path
    registry: Registry
    data: dict[str, Any]


def load_tools(path: Path) -> ToolsFile:
    """Read a `tools.yaml`. Raises `InputError` with every fault and its line."""
    document = Document(path)
    document.raise_faults()
    data = document.data or {}
    try:
        registry = registry_from(data)
    except RegistryError as error:
        for fault in error.faults:
            document.refuse(tuple(fault.path), fault.message)
        document.raise_faults()
        raise
    return ToolsFile(path=path, registry=registry, data=data)


def require_stand_ins(tools: ToolsFile) -> None:
    """Refuse effectful tools that faults could meet for real. Raises `InputError`."""
    document = Document(tools.path)
    for name, tool in tools.registry.tools.items():
        if tool.effectful and not tool.strikeable:
            document.refuse(
                (name,),
                f"`{name}` changes the world and its environment is {tool.environment or 'not declared'}; "
                "faults only ever meet `environment: stand-in` or `environment: sandbox`",
            )
    document.raise_faults()


def load_traces(places: Sequence[Path], registry: Registry) -> list[TraceFile]:
    """Read trace files, folders of them, and patterns such as `runs/*.jsonl`, ordered by name.

    Raises `InputError` with every fault: files that are no traces, that still hold secrets, names used twice.
    """
    faults: list[str] = []
    found: dict[str, TraceFile] = {}
    for path in _files(places, faults):
        try:
            trace = read_trace(path)
        except TraceError as error:
            faults += [f"{path}:{line}: {text}" for line, text in error.faults]
            continue
        except OSError as error:
            faults.append(f"{path}:1: cannot be read: {error.strerror}")
            continue
        if not trace.masked:
            faults.append(f"{path}:1: is not masked; run `stormproof mask {path} --out DIR` and use what it writes")
            continue
        if secrets := find_secrets(trace):
            faults.append(f"{path}:1: says it is masked, but {secrets[0]}; mask it again with `stormproof mask`")
            continue
        if trace.name in found:
            faults.append(f"{path}:1: the name `{trace.name}` is already taken by {found[trace.name].path}")
        found.setdefault(trace.name, describe_trace(path.resolve(), trace, registry))
    if faults:
        raise InputError(faults)
    return sorted(found.values(), key=lambda source: source.name)


def _files(places: Sequence[Path], faults: list[str]) -> list[Path]:
    files: list[Path] = []
    for place in places:
        if place.is_dir():
            inside = sorted(place.glob("*.jsonl"))
            if not inside:
                faults.append(f"{place}:1: holds no trace (a file named *.jsonl)")
            files += inside
        elif place.is_file():
            files.append(place)
        else:
            parent = place.parent
            matching = sorted(parent.glob(place.name)) if parent.is_dir() else []
            if not matching:
                faults.append(f"{place}:1: there is no such trace, folder or pattern")
            files += matching
    return files
