"""Which agent is under test: a name of the catalogue, or an `agent.yaml` (contract section 6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from agents.catalogue import AGENTS
from harness.errors import InputError
from harness.loading import Document, did_you_mean
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
    path = Path(name)
    if path.suffix in {".yaml", ".yml"} or path.exists():
        return load_agent(path)
    raise InputError(f"--agent {name}: there is no agent of that name and no such file{did_you_mean(name, known)}")


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
    environment = fields.mapping("env")
    env = {key: str(environment.anything(key)) for key in environment.keys()}  # noqa: SIM118
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
