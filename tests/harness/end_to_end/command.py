"""Runs the command line as a user does: a process of its own, from a folder of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STORMPROOF = (sys.executable, "-P", "-m", "stormproof")


@dataclass(frozen=True)
class Done:
    """A finished command line."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which has to be one JSON document."""
        return json.loads(self.out)


def stormproof(*words: object, cwd: Path, limit_s: float = 120.0) -> Done:
    """Run one command line to its end; never a traceback."""
    done = subprocess.run(
        [*STORMPROOF, *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=limit_s, check=False
    )
    if "Traceback" in done.stderr:
        raise RuntimeError(done.stderr)
    return Done(done.returncode, done.stdout, done.stderr)


def results(folder: Path) -> dict[str, Any]:
    """The lines of `verdicts.jsonl` by run."""
    lines = (folder / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    return {result["run_id"]: result for result in map(json.loads, lines)}


def alive(marker: str) -> list[str]:
    """Processes whose command line or environment holds a text."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if marker.encode() in text and state != "Z":
            found.append(process.name)
    return found
