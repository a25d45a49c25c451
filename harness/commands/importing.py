"""`stormproof import`: recorded runs of other tools become traces."""

from __future__ import annotations

from pathlib import Path

from harness.commands.output import output_folder, print_json, print_lines
from harness.errors import InputError
from harness.loading import did_you_mean, one_of
from traces.importers import IMPORTERS, ImportFault, ImportReport, importer_named
from traces.mask import find_secrets
from traces.trace import write_trace


def execute(form: str, files: list[Path], *, out: Path, writing_only: bool, json: bool, quiet: bool) -> int:
    """Import, mask and write every trace, and say what was in the files (contract section 8).

    `writing_only` leaves out the traces without a write that succeeded; the report still counts the whole files.
    """
    importer = importer_named(form)
    if importer is None:
        names = [known.name for known in IMPORTERS]
        raise InputError(f"import {form}: the format has to be {one_of(names)}{did_you_mean(form, names)}")
    report, faults = ImportReport(), []
    written: dict[str, Path] = {}
    output_folder(out)
    for file in files:
        try:
            imported = importer.read(file)
        except ImportFault as error:
            faults.append(str(error))
            continue
        except OSError as error:
            faults.append(f"{file}:1: cannot be read: {error.strerror}")
            continue
        report += imported.report
        for trace in imported.traces:
            if writing_only and trace.name not in imported.writing:
                continue
            if trace.name in written:
                faults.append(f"{file}:1: the trace `{trace.name}` is already imported from {written[trace.name]}")
            elif secrets := find_secrets(trace):
                faults.append(f"{file}:1: the trace `{trace.name}` is not written: {secrets[0]}")
            else:
                write_trace(trace, out / f"{trace.name}.jsonl")
                written[trace.name] = file
    if faults:
        raise InputError(faults)
    if json:
        print_json(report.as_json())
    elif not quiet:
        print_lines(
            [
                f"{report.traces} traces: {report.tool_calls} tool calls, {report.writes} of them writes, "
                f"{report.failed_writes} of those failed",
                f"{len(written)} written to {out}",
                *(f"skipped {source}: {why}" for source, why in report.skipped),
                *(f"note    {source}: {why}" for source, why in report.notes[:20]),
            ]
        )
    return 0
