"""What the command line and the main job cost: start-up, one clean run, the whole `ci` set.

    python benchmarks/main_job.py [--repeats 5] [--without-ci]

Start-up is processor time of a whole process (user and system, children included); the main job is wall time from
the command to the verdict. Medians over the repeats; the `ci` set is played once. Exits 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

STORMPROOF = (sys.executable, "-P", "-m", "stormproof")
HISTORY = "".join(
    json.dumps(record) + "\n"
    for record in (
        {"type": "run_started", "t": 0.0, "run_id": "r", "limits": {"steps": 3}},
        {"type": "effect", "t": 1.0, "run_id": "r", "tool": "charge", "idempotency_key": "a", "effect_id": "e1",
         "outcome": "applied", "intent_id": "i", "step": 1},
        {"type": "run_finished", "t": 2.0, "run_id": "r", "status": "succeeded"},
    )
)  # fmt: skip


def main() -> int:
    """Measure, print a table, and say whether every target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--without-ci", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(Path(folder), repeats=options.repeats, with_ci=not options.without_ci)
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f}")
    for name, value, target, unit in rows:
        print(f"{name:<48} {value:8.3f} {unit}   target {target:g} {unit}   {'ok' if value <= target else 'MISSED'}")
    return 0 if all(value <= target for _, value, target, _ in rows) else 1


def measured(folder: Path, *, repeats: int, with_ci: bool) -> list[tuple[str, float, float, str]]:
    """Rows of (what, value, target, unit)."""
    history = folder / "history.jsonl"
    history.write_text(HISTORY)

    def median(cost: Callable[[], float]) -> float:
        cost()
        return statistics.median(cost() for _ in range(repeats))

    one = ("run", "--scenario", "100", "--trace", "order-small", "--out", str(folder / "one"), "-q")
    rows = [
        ("stormproof --help, processor time", median(lambda: processor_s("--help")), 0.3, "s"),
        ("check of a small file, processor time", median(lambda: processor_s("check", str(history))), 0.4, "s"),
        ("one clean run, command to verdict", median(lambda: wall_s(*one)), 4.0, "s"),
    ]
    if with_ci:
        rows.append(
            (
                "the ci set, command to verdict",
                wall_s("run", "--set", "ci", "--out", str(folder / "ci"), "-q"),
                120.0,
                "s",
            )
        )
        lines = (folder / "ci" / "verdicts.jsonl").read_text().splitlines()
        own = [json.loads(line)["harness_s"] for line in lines]
        rows.append((f"harness time of a run, median of {len(own)}", statistics.median(own), 0.25, "s"))
    return rows


def wall_s(*words: str) -> float:
    """Seconds by the wall of one command."""
    began = time.perf_counter()
    subprocess.run([*STORMPROOF, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def processor_s(*words: str) -> float:
    """Seconds of processor time of one command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*STORMPROOF, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
