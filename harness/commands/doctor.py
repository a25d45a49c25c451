"""`stormproof doctor`: what is missing on this machine."""

from __future__ import annotations

from dataclasses import asdict

from harness.commands.output import print_json, print_lines
from harness.doctor import checks


def execute(*, json: bool, quiet: bool) -> int:
    """Print every check with its remedy; exit code 3 if something that is needed is missing."""
    done = checks()
    ok = all(check.ok for check in done)
    if json:
        print_json({"ok": ok, "checks": [asdict(check) for check in done]})
        return 0 if ok else 3
    width = max(len(check.name) for check in done)
    lines: list[str] = []
    for check in done:
        if quiet and check.ok:
            continue
        lines.append(f"{'ok     ' if check.ok else 'MISSING'}  {check.name:<{width}}  {check.detail}")
        if check.remedy:
            lines.append(f"         {'':<{width}}  {check.remedy}")
    print_lines(lines)
    return 0 if ok else 3
