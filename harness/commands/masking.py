"""`stormproof mask`: traces without secrets."""

from __future__ import annotations

from pathlib import Path

from harness.commands.output import output_folder, print_json, print_lines
from harness.errors import InputError
from traces.mask import find_secrets, mask_trace
from traces.trace import TraceError, read_trace, write_trace


def execute(files: list[Path], *, out: Path, json: bool, quiet: bool) -> int:
    """Mask each trace into `out`; one that would still hold a secret is refused, exit code 2."""
    faults: list[str] = []
    written: list[str] = []
    output_folder(out)
    for file in files:
        try:
            masked = mask_trace(read_trace(file))
        except TraceError as error:
            faults += [f"{file}:{line}: {text}" for line, text in error.faults]
            continue
        except OSError as error:
            faults.append(f"{file}:1: cannot be read: {error.strerror}")
            continue
        if secrets := find_secrets(masked):
            faults.append(f"{file}:1: is not written: even masked, {secrets[0]}")
            continue
        write_trace(masked, out / file.name)
        written.append(str(out / file.name))
    if faults:
        raise InputError(faults)
    if json:
        print_json({"written": written})
    elif not quiet:
        print_lines(written)
    return 0
