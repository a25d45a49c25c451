"""How much judging costs beyond reading: `stormproof check` against decoding the same file.

    python benchmarks/check_speed.py [--records 400000] [--runs 20000] [--pairs 7]

Both are whole processes, measured by the wall, in interleaved pairs; the medians are compared. The other process
decodes the file line by line with msgspec into one struct type that has the fields the file uses, and does nothing
else. The file is a realistic mix: runs that interleave, retries, deduplicated effects, time-outs that took effect,
compensations, deadlines, tokens, a few hundred worlds, and ids as long as real ones.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TARGET = 5.0
ABREAST = 40
"""So many runs interleave."""
RUNS_PER_WORLD = 100
TOOLS = (("reserve", "stock"), ("charge", "payments"), ("ship", "carrier"))

DECODE = """
import sys
import msgspec

class Limits(msgspec.Struct):
    steps: int | None = None
    wall_clock_s: float | None = None
    tokens: float | None = None
    max_concurrency: float | None = None

class Error(msgspec.Struct):
    kind: str | None = None
    message: str | None = None
    retryable: bool | None = None

class Line(msgspec.Struct):
    type: str
    t: float
    run_id: str
    source: str | None = None
    world: str | None = None
    tenant: str | None = None
    step: int | None = None
    tool: str | None = None
    attempt_id: str | None = None
    intent_id: str | None = None
    idempotency_key: str | None = None
    args_digest: str | None = None
    effectful: bool | None = None
    resource_group: str | None = None
    deadline_remaining_s: float | None = None
    outcome: str | None = None
    effect_id: str | None = None
    compensates: str | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    disposition: str | None = None
    strength: str | None = None
    status: str | None = None
    error: Error | None = None
    limits: Limits | None = None
    exit_code: int | None = None

decode = msgspec.json.Decoder(Line).decode
lines = 0
with open(sys.argv[1], "rb") as file:
    for line in file:
        decode(line)
        lines += 1
print(lines)
"""


def run_records(number: int, random: Random) -> Iterator[dict[str, Any]]:
    """The records of one run without their times, in order."""
    run = f"run-{number:06d}"
    common = {"run_id": run, "tenant": f"tenant-{number % 7}"}
    limits = {"steps": 12, "wall_clock_s": 3600, "tokens": 20_000, "max_concurrency": 2}
    world = f"world-{number // RUNS_PER_WORLD}"
    yield {"type": "run_started", **common, "world": world, "limits": limits}
    undo: list[dict[str, Any]] = []
    left = 3000.0
    for step, (tool, group) in enumerate(TOOLS, start=1):
        yield {"type": "model_call_finished", **common, "step": step, "input_tokens": 812, "output_tokens": 64}
        call = {
            **common,
            "tool": tool,
            "step": step,
            "intent_id": f"{run}:{tool}:{step}",
            "args_digest": sha256(f"{run}{tool}".encode()).hexdigest(),
            "idempotency_key": f"{run}-{tool}-{step}",
        }
        outcomes = random.choice((["ok"], ["ok"], ["ok"], ["timeout", "deduplicated"], ["error", "ok"]))
        for attempt, outcome in enumerate(outcomes, start=1):
            left -= 60.0
            this = {**call, "attempt_id": f"{run}-{step}-{attempt}"}
            started = {"resource_group": group, "deadline_remaining_s": left}
            yield {"type": "tool_call_started", **this, "source": "wire", "effectful": True, **started}
            if outcome != "error":
                effect = {"effect_id": f"{run}-e{step}", "compensates": None}
                applied = "deduplicated" if outcome == "deduplicated" else "applied"
                yield {"type": "effect", **this, "source": "service", "outcome": applied, **effect}
            yield {"type": "tool_call_finished", **this, "source": "wire", "outcome": outcome}
        undo.append({**call, "effect": f"{run}-e{step}"})
    if random.random() < 0.1:
        for call in reversed(undo):
            undoing = {**common, "step": call["step"], "tool": f"undo-{call['tool']}", "strength": "strong"}
            yield {"type": "compensation_started", **undoing}
            done = {"effect_id": f"{call['effect']}-undone", "outcome": "applied", "compensates": call["effect"]}
            yield {"type": "effect", **common, "source": "service", "tool": undoing["tool"], **done}
            yield {"type": "compensation_finished", **undoing, "outcome": "ok"}
        yield {"type": "run_finished", **common, "status": "rolled_back"}
    else:
        yield {"type": "run_finished", **common, "status": "succeeded", "error": None}
    yield {"type": "process_exited", **common, "source": "harness", "exit_code": 0}


def write_history(path: Path, *, records: int, runs: int) -> int:
    """Writes interleaved runs until there are so many records; gives how many were written.

    What the runs themselves do not fill, late model calls of theirs do.
    """
    random = Random(7)
    waiting = (run_records(number, random) for number in range(runs))
    abreast = [run for _, run in zip(range(ABREAST), waiting, strict=False)]
    written, t = 0, 1_700_000_000.0
    with path.open("w", encoding="utf-8") as file:
        while abreast:
            place = random.randrange(len(abreast))
            record = next(abreast[place], None)
            if record is None:
                following = next(waiting, None)
                if following is None:
                    abreast.pop(place)
                else:
                    abreast[place] = following
                continue
            t += 0.004
            file.write(json.dumps({"t": round(t, 3), **record}) + "\n")
            written += 1
    if written > records:
        raise SystemExit(f"{runs} runs make {written} records, more than the {records} asked for: ask for fewer runs")
    with path.open("a", encoding="utf-8") as file:
        for number in range(records - written):
            t += 0.004
            record = {"type": "model_call_finished", "run_id": f"run-{number % runs:06d}", "input_tokens": 1}
            file.write(json.dumps({"t": round(t, 3), **record, "output_tokens": 0}) + "\n")
    return records


def wall_s(command: list[str]) -> float:
    """Wall time of a whole process, its output thrown away."""
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    return time.perf_counter() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="judge with --json, which lists every verdict")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        history = Path(folder) / "history.jsonl"
        count = write_history(history, records=options.records, runs=options.runs)
        check = [sys.executable, "-P", "-m", "stormproof", "check", str(history)] + ["--json"] * options.json
        decode = [sys.executable, "-c", DECODE, str(history)]
        checks: list[float] = []
        decodes: list[float] = []
        for _ in range(options.pairs):
            decodes.append(wall_s(decode))
            checks.append(wall_s(check))
        size = history.stat().st_size / 1e6
    judged, read = statistics.median(checks), statistics.median(decodes)
    ratio = judged / read
    print(f"{count:,} records in {options.runs:,} runs, {size:.0f} MB; medians of {options.pairs} interleaved pairs")
    print(f"  check   {judged:.2f} s  ({', '.join(f'{value:.2f}' for value in checks)})")
    print(f"  decode  {read:.2f} s  ({', '.join(f'{value:.2f}' for value in decodes)})")
    print(f"  ratio   {ratio:.2f}  (at most {TARGET:g})")
    return 0 if ratio <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
