"""`python -m traces.recording` writes the bundled traces and their registry anew; `--cast` draws the people first."""

from __future__ import annotations

import argparse
from pathlib import Path

from traces.recording.cast import draw_cast
from traces.recording.player import play
from traces.recording.stories import stories
from traces.recording.tools import TOOLS
from traces.recording.yaml_text import registry_text
from traces.trace import write_trace

RECORDED = Path(__file__).resolve().parent.parent / "recorded"
HEAD = """The tools of the bundled traces.
Written by `python -m traces.recording` from traces/recording/tools.py; change it there."""


def write_all(folder: Path) -> list[Path]:
    """Writes every bundled trace and `tools.yaml` into a folder; returns the paths."""
    paths = []
    for story in stories():
        paths.append(folder / f"{story.name}.jsonl")
        write_trace(play(story), paths[-1])
    paths.append(folder / "tools.yaml")
    paths[-1].write_text(registry_text(TOOLS, head=HEAD), encoding="utf-8")
    return paths


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m traces.recording", description=__doc__)
    parser.add_argument("--out", type=Path, default=RECORDED, help="folder to write to")
    parser.add_argument("--cast", action="store_true", help="draw other people first (needs faker)")
    chosen = parser.parse_args()
    if chosen.cast:
        draw_cast()
    chosen.out.mkdir(parents=True, exist_ok=True)
    write_all(chosen.out)


if __name__ == "__main__":
    main()
