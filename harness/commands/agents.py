"""`stormproof agents`: what can be run by name."""

from __future__ import annotations

from typing import Any

from agents.catalogue import AGENTS, AgentEntry
from harness.commands.output import print_json, print_lines


def execute(*, json: bool, quiet: bool) -> int:
    """List the catalogue; `--json` in the shape of contract section 8."""
    entries = [describe(entry) for entry in AGENTS]
    if json:
        print_json(entries)
        return 0
    width = max(len(entry["name"]) for entry in entries)
    lines: list[str] = []
    for group in dict.fromkeys(entry["group"] for entry in entries):
        lines.append(group)
        for entry in (entry for entry in entries if entry["group"] == group):
            must = "" if quiet else _must(entry["must_draw"])
            lines.append(f"  {entry['name']:<{width}}  {entry['summary']}{must}")
    print_lines(lines)
    return 0


def describe(entry: AgentEntry) -> dict[str, Any]:
    """One agent as other tools read it."""
    return {
        "name": entry.name,
        "group": entry.group,
        "summary": entry.summary,
        "must_draw": [dict(item) for item in entry.must_draw],
        "scenarios": list(entry.scenarios),
    }


def _must(items: list[dict[str, str]]) -> str:
    words = [" ".join(item.values()) for item in items]
    return f" (must draw: {', '.join(words)})" if words else ""
