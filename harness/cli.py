"""The command line: declares every subcommand and its options, imports its work only when it is called.

Exit codes (contract section 1): 0 held, 1 violated, 2 bad input, 3 our own failure, 4 undecided.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.commands.output import print_json
from harness.errors import HarnessError, InputError, told
from reports.text import visible

INTERRUPTED = 130
"""Ctrl-C where there is nothing to judge yet."""

_UsageError: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
"""Newer releases of typer carry a click of their own; this finds the one in use."""

app = typer.Typer(
    name="stormproof",
    help="Proves that an AI agent survives time-outs, retries, crashes and half answers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Machine-readable result on standard output, nothing else there.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Say less.")]
Tools = Annotated[Path | None, typer.Option("--tools", help="The tools registry (tools.yaml).")]


def main(arguments: list[str]) -> int:
    """Run one command line and return its exit code; never a traceback for what a user can cause."""
    wants_json = "--json" in arguments
    try:
        code = app(arguments, standalone_mode=False)
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            sys.stdout.write(error.format_message() + "\n")
            return 2
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "stormproof"
        return _refused([f"{path}: {error.format_message()} (see `{path} --help`)"], 2, wants_json=wants_json)
    except InputError as error:
        return _refused(error.faults, 2, wants_json=wants_json)
    except BrokenPipeError:
        # Whoever reads has heard enough; that is no verdict, neither good nor bad.
        _drop_output()
        return 3
    except (HarnessError, OSError) as error:
        return _refused([f"stormproof could not do its work: {told(error)}"], 3, wants_json=wants_json)
    except (KeyboardInterrupt, typer.Abort):
        return _refused(["interrupted"], INTERRUPTED, wants_json=wants_json)
    except Exception as error:  # noqa: BLE001 - a mistake of ours is told as one, and never as a verdict
        return _refused([f"stormproof failed: {told(error)}"], 3, wants_json=wants_json)
    return code if isinstance(code, int) else 0


def _refused(messages: tuple[str, ...] | list[str], code: int, *, wants_json: bool) -> int:
    try:
        for message in messages:
            sys.stderr.write(f"{visible(message)}\n")
        if wants_json:
            print_json({"errors": list(messages), "exit_code": code})
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        # A full or closed output cannot be told of; the exit code is what is left to say.
        _drop_output()
    return code


def _drop_output() -> None:
    """Keep the interpreter from trying once more at its end, which would change the exit code."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)


@app.callback(invoke_without_command=True)
def _top(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the version and end.")] = False,
) -> None:
    if version:
        from stormproof import __version__

        sys.stdout.write(f"stormproof {__version__}\n")
        raise typer.Exit


@app.command()
def run(
    sets: Annotated[list[str] | None, typer.Option("--set", help="Sets of scenarios; default: ci.")] = None,
    scenario: Annotated[
        list[str] | None, typer.Option("--scenario", help="Numbers, such as 204 or 101+204 (joined into one run).")
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="A name of `stormproof agents`, or an agent.yaml.")
    ] = None,
    trace: Annotated[list[str] | None, typer.Option("--trace", help="Traces by name or pattern.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Where the results go.")] = None,
    tools: Tools = None,
    scenarios: Annotated[
        list[Path] | None,
        typer.Option("--scenarios", help="Folders or files of scenarios, in place of the configured."),
    ] = None,
    traces: Annotated[
        list[Path] | None, typer.Option("--traces", help="Folders or files of traces, in place of the configured.")
    ] = None,
    parallel: Annotated[int | None, typer.Option("--parallel", min=1, help="Runs side by side.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an earlier run into --out stopped.")] = False,
    shard: Annotated[str, typer.Option("--shard", help="Only part I of N, such as 1/4.")] = "1/1",
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, help="Only so many scenarios, chosen by --seed.")
    ] = None,
    combine: Annotated[
        int, typer.Option("--combine", min=1, max=5, help="Join so many scenarios into each run.")
    ] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Chooses the sample, nothing else.")] = 0,
    max_time: Annotated[
        str | None, typer.Option("--max-time", help="Stop cleanly after, say, 90s, 10m or 1h.")
    ] = None,
    last_failed: Annotated[bool, typer.Option("--last-failed", help="Only what was not fine in --out.")] = False,
    only: Annotated[Path | None, typer.Option("--only", help="A file of run ids, as --dry-run prints them.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be run, and end.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Replay traces under scenarios against the agent, through a real proxy, and judge every run."""
    from harness.commands import run as command
    from harness.planning import Selection

    request = command.RunRequest(
        selection=Selection(
            sets=_words(sets),
            numbers=_words(scenario),
            traces=_words(trace),
            sample=sample,
            combine=combine,
            seed=seed,
            shard=command.shard_from(shard),
        ),
        agent=agent,
        out=out,
        tools=tools,
        scenarios=tuple(scenarios or ()),
        trace_places=tuple(traces or ()),
        parallel=parallel,
        resume=resume,
        last_failed=last_failed,
        only=only,
        max_time_s=command.seconds_from(max_time),
        quiet=quiet or json,
    )
    if dry_run:
        pairs = command.pairs(command.prepare(request))
        if json:
            print_json(pairs)
        else:
            sys.stdout.writelines(f"{pair['run_id']}\n" for pair in pairs)
        return 0
    summary = command.execute(request)
    return command.show(summary, json=json, quiet=quiet, directory=request.folder())


@app.command()
def check(
    files: Annotated[list[str], typer.Argument(help="Histories (JSON Lines); - is standard input.")],
    sort: Annotated[bool, typer.Option("--sort", help="Sort by time first.")] = False,
    tools: Tools = None,
    limits: Annotated[Path | None, typer.Option("--limits", help="Limits for runs that state none.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Judge recorded histories by the invariants, offline."""
    from harness.commands import check as command

    return command.execute(files, sort=sort, tools=tools, limits=limits, json=json, quiet=quiet)


@app.command()
def scenarios(
    action: Annotated[str, typer.Argument(help="list, kinds, show or validate.")] = "list",
    what: Annotated[list[str] | None, typer.Argument(help="A number to show, or files to validate.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """The catalogue: scenarios, fault kinds, one scenario in full, or a check of scenario files."""
    from harness.commands import scenarios as command

    return command.execute(action, what or [], json=json, quiet=quiet)


@app.command()
def agents(json: Json = False, quiet: Quiet = False) -> int:
    """The agents that can be run by name, and what each known-bad one must draw."""
    from harness.commands import agents as command

    return command.execute(json=json, quiet=quiet)


@app.command(name="import")
def import_(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help="tau-bench.")],
    files: Annotated[list[Path], typer.Argument(help="Recorded runs in that format.")],
    out: Annotated[Path, typer.Option("--out", help="Where the traces go.")],
    writing_only: Annotated[
        bool, typer.Option("--writing-only", help="Only runs in which at least one write succeeded.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Turn recorded runs of other tools into traces."""
    from harness.commands import importing as command

    return command.execute(form, files, out=out, writing_only=writing_only, json=json, quiet=quiet)


@app.command()
def mask(
    files: Annotated[list[Path], typer.Argument(help="Traces.")],
    out: Annotated[Path, typer.Option("--out", help="Where the masked traces go.")],
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Mask traces again; one that would still hold a secret is not written."""
    from harness.commands import masking as command

    return command.execute(files, out=out, json=json, quiet=quiet)


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(help="A result directory.")],
    html: Annotated[Path | None, typer.Option("--html", help="Write the page there as well.")] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write the JUnit file there as well.")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="Write the Markdown there as well.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Render the results of a run again."""
    from harness.commands import reporting as command

    return command.execute(directory, html=html, junit=junit, markdown=markdown, json=json, quiet=quiet)


@app.command()
def compare(
    old: Annotated[Path, typer.Argument(help="The earlier result directory.")],
    new: Annotated[Path, typer.Argument(help="The later one.")],
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """What changed between two result directories."""
    from harness.commands import comparing as command

    return command.execute(old, new, json=json, quiet=quiet)


@app.command()
def doctor(json: Json = False, quiet: Quiet = False) -> int:
    """What is missing on this machine, and how to get it."""
    from harness.commands import doctor as command

    return command.execute(json=json, quiet=quiet)


def _words(given: list[str] | None) -> tuple[str, ...]:
    """What an option says that may be repeated and may hold several, separated by commas."""
    return tuple(word for value in given or () for part in value.split(",") if (word := part.strip()))
