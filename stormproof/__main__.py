"""The door of the installed package: puts the application on a private path and starts it.

Everything but this package lives in `stormproof/_app/` of a wheel, or beside this folder in a checkout. Only
processes that come through here see it: an agent under test must not find our packages.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

_PROCESSES = {
    "_proxy": "harness.processes.proxy",
    "_standins": "harness.processes.standins",
    "_launcher": "harness.processes.launcher",
}
"""Our own child processes: hidden first word of the command line, and the module whose `main` runs it."""


def application_path() -> Path:
    """The folder that holds `harness/` and its neighbours: `_app` in a wheel, the checkout's root else."""
    here = Path(__file__).resolve().parent
    shipped = here / "_app"
    return shipped if shipped.is_dir() else here.parent


def main(argv: list[str] | None = None) -> int:
    """Run the command line (or one of our child processes) and return its exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    sys.path.insert(0, str(application_path()))
    word = arguments[0] if arguments else ""
    if word == "_agent":
        return int(import_module("agents.catalogue").run_agent(arguments[1]))
    if word in _PROCESSES:
        return int(import_module(_PROCESSES[word]).main(arguments[1:]))
    try:
        # By name: the application is no module of ours, it is only on the path of this process.
        return int(import_module("harness.cli").main(arguments))
    except KeyboardInterrupt:  # while everything is being loaded
        sys.stderr.write("interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
