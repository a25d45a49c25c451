"""`stormproof doctor`: what is missing on this machine."""

from __future__ import annotations

import sys
from dataclasses import asdict

import msgspec

from harness.doctor import checks


def execute(*, json: bool, quiet: bool) -> int:
    """Print every check with its remedy; exit code 3 if something that is needed is missing."""
    done = checks()
    ok = all(check.ok for check in done)
    if json:
        answer = {"ok": ok, "checks": [asdict(check) for check in done]}
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(answer), indent=1) + b"\n")
        return 0 if ok else 3
    width = max(len(check.name) for check in done)
    for check in done:
        if quiet and check.ok:
            continue
        sys.stdout.write(f"{'ok     ' if check.ok else 'MISSING'}  {check.name:<{width}}  {check.detail}\n")
        if check.remedy:
            sys.stdout.write(f"         {'':<{width}}  {check.remedy}\n")
    return 0 if ok else 3
