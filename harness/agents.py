"""Which agent is under test: a name of the catalogue, or an `agent.yaml` (contract section 6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from agents.catalogue import AGENTS
from harness.errors import InputError
from harness.loading import Document, Fields, did_you_mean, shown
from harness.processes.control import own_command


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """How an agent is started: once per run, and again after an injected crash. `timeout_s` in seconds."""

    name: str
    command: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    restart_after_crash: bool = True
    timeout_s: float = 120.0
    folder: str | None = None
    """Where it is started; `None`: the folder in which stormproof was called."""
    reference: str = ""
    """How the user named it, for the command that repeats a run."""
    ours: bool = False
    """Whether it is of our own catalogue: the bundled scenarios say what its mechanisms have to do."""


def find_agent(name: str) -> AgentSpec:
    """The agent of that name, or of that file. Raises `InputError` if there is neither."""
    known = {entry.name: entry for entry in AGENTS}
    if name in known:
        # Hundreds of starts: let the interpreter keep its compiled files, also where the caller's shell says not to.
        return AgentSpec(
            name=name,
            command=tuple(own_command("_agent", name)),
            env={"PYTHONDONTWRITEBYTECODE": ""},
            reference=name,
            ours=True,
        )
    if not name.strip():
        raise InputError("--agent '': needs the name of an agent (`stormproof agents` lists them) or an agent.yaml")
    path = Path(name)
    if path.suffix in {".yaml", ".yml"} or _is_there(path):
        return load_agent(path)
    raise InputError(f"--agent {name}: there is no agent of that name and no such file{did_you_mean(name, known)}")


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # such as a name that is longer than any file's
        return False


def _environment(fields: Fields) -> dict[str, str]:
    """What `env` adds to the environment of the agent."""
    env: dict[str, str] = {}
    for key in fields.keys():  # noqa: SIM118
        value = fields.anything(key)
        if not key or "=" in key or "\0" in key:
            fields.refuse(key, f"`{shown(key)}` cannot name a variable: it must not be empty nor hold `=` or NUL")
        elif not isinstance(value, str | int | float):
            fields.refuse(
                key, f"`{shown(key)}` has to be text or a number, not {shown(repr(value))}; put it in quotes"
            )
        elif "\0" in str(value):
            fields.refuse(key, f"`{shown(key)}` cannot hold a NUL character")
        else:
            env[key] = str(value)
    return env


def load_agent(path: Path) -> AgentSpec:
    """Read an `agent.yaml`. Raises `InputError` with every fault found in it."""
    document = Document(path)
    document.raise_faults()
    fields = document.root("an agent file")
    name = fields.text("name", path.stem)
    command = fields.texts("command")
    if not command or isinstance(fields.data.get("command"), str):
        # One text would need a shell's rules to be taken apart; a list says what is meant.
        fields.refuse("command", "an agent file needs `command` as a list of words: [python3, my_agent.py]")
    if any("\0" in word for word in command):
        fields.refuse("command", "no word of `command` can hold a NUL character")
    env = _environment(fields.mapping("env"))
    mode = fields.anything("mode")
    if mode not in (None, "process"):
        fields.refuse("mode", "only `mode: process` is offered yet (the agent is started once per run)")
    spec = AgentSpec(
        name=name,
        command=command,
        env=env,
        restart_after_crash=fields.flag("restart_after_crash", True),
        timeout_s=fields.number("timeout_s", 120.0, least=0.1) or 120.0,
        folder=str(path.resolve().parent),
        reference=str(path),
    )
    fields.done()
    document.raise_faults()
    return spec
