"""Pages of `docs/` that are written from the code, so that they cannot say anything else (`make docs`)."""

from __future__ import annotations

import inspect
from pathlib import Path

from harness.settings import APPLICATION
from injectors.catalogue import KINDS, described
from injectors.core import Fault

LAYERS = {
    "network": "Network: bytes on the way to a tool or a model.",
    "tool": "Tool adapter: what a tool answers, against what it did.",
    "model": "Model gateway: what the model's provider answers.",
    "crash": "Crash: the agent's own processes.",
}


def faults_page() -> str:
    """`docs/faults.md`: every kind of fault, with its parameters, what the agent sees and what the world sees."""
    lines = [
        "# Faults",
        "",
        "Written from the code by `make docs`. `stormproof scenarios kinds` prints them in short; the files are in",
        "`injectors/<layer>/`, one for each kind.",
    ]
    for layer, title in LAYERS.items():
        lines += ["", f"## {title}"]
        for kind in KINDS:
            if kind.layer == layer:
                lines += ["", *_section(kind)]
    return "\n".join(lines) + "\n"


def write_pages(folder: Path = APPLICATION / "docs") -> None:
    """Write every generated page into the folder."""
    (folder / "faults.md").write_text(faults_page(), encoding="utf-8")


def _section(kind: type[Fault]) -> list[str]:
    told = described(kind)
    lines = [f"### {kind.kind}", "", inspect.cleandoc(kind.__doc__ or ""), ""]
    lines += [f"- The agent sees: {told['agent_sees']}", f"- The world sees: {told['world_sees']}"]
    if told["parameters"]:
        lines += ["", "| parameter | values | unit | default |", "|---|---|---|---|"]
    for name, parameter in told["parameters"].items():
        choices = ", ".join(f"`{choice}`" for choice in parameter.get("choices") or ())
        bounds = " to ".join(f"{parameter[end]:g}" for end in ("least", "most") if end in parameter)
        values = choices or parameter["type"].replace("|", " or ")
        values = f"{values}, {bounds if 'most' in parameter else f'{bounds} or more'}" if bounds else values
        default = "none" if parameter["default"] is None else f"`{parameter['default']}`"
        lines.append(f"| `{name}` | {values} | {parameter['unit'] or ''} | {default} |")
    return lines


if __name__ == "__main__":
    write_pages()
