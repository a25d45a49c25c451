"""What results rest on: everything that decides how a run goes, and nothing that does not."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from harness.agents import AgentSpec, load_agent
from harness.inputs import load_tools, load_traces
from harness.planning import Selection, plan_runs
from harness.scenario import load_scenario
from harness.session import Session, read_session, session_of, write_session
from harness.settings import Settings

TOOLS = load_tools(Settings().tools)
SCENARIO = "number: 150\nversion: 1\ntitle: t\nfaults: [{kind: hang, at: {tool: charge}}]\n"


def session(folder: Path, *, scenario: str = SCENARIO, agent: AgentSpec | None = None) -> Session:
    """The session of one scenario on one trace, which lies in the folder."""
    traces = load_traces([folder / "order-small.jsonl"], TOOLS.registry)
    plan = plan_runs(
        [load_scenario(folder / "150-t.yaml", scenario)], traces, registry=TOOLS.registry, selection=Selection()
    )
    return session_of(plan, agent=agent or AgentSpec(name="mine", command=("mine",)), tools=TOOLS)


def prepared(folder: Path) -> Path:
    """The folder with a trace in it."""
    shutil.copy(Settings().traces[0] / "order-small.jsonl", folder)
    return folder


def test_it_is_the_same_again(tmp_path: Path) -> None:
    """Also after it was written and read, and where words change that decide nothing."""
    first = session(prepared(tmp_path))
    write_session(tmp_path, first)
    assert read_session(tmp_path) == first
    assert session(tmp_path, scenario=SCENARIO.replace("title: t", "title: u\nwhy: w")) == first


def test_what_a_scenario_does_decides(tmp_path: Path) -> None:
    """Version, faults, limits, the model's reaction and expectations each make another scenario of it."""
    folder = prepared(tmp_path)
    changed = (
        SCENARIO.replace("version: 1", "version: 2"),
        SCENARIO.replace("hang", "reset"),
        SCENARIO + "limits: {steps: 3}\n",
        SCENARIO + "model: {on_tool_error: give_up}\n",
        SCENARIO + "expect: {mechanisms: {retry: 0.5}}\n",
    )
    digests = {session(folder, scenario=text).scenarios["150"] for text in (SCENARIO, *changed)}
    assert len(digests) == 1 + len(changed)


def test_what_a_trace_holds_decides(tmp_path: Path) -> None:
    """A trace of the same name with other contents is another one."""
    first = session(prepared(tmp_path))
    with (tmp_path / "order-small.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n")
    assert session(tmp_path).traces != first.traces


def test_how_an_agent_is_started_decides(tmp_path: Path) -> None:
    """Command, environment, folder and the program in it; not the way in which its file is named."""
    folder = prepared(tmp_path)
    (folder / "agent.yaml").write_text("name: mine\ncommand: [python, agent.py]\nenv: {TOKEN: hush}\n")
    (folder / "agent.py").write_text("1\n")
    agent = load_agent(folder / "agent.yaml")
    first = session(folder, agent=agent)
    assert session(folder, agent=replace(agent, reference="elsewhere/agent.yaml")) == first
    changed = (
        replace(agent, command=("python", "-O", "agent.py")),
        replace(agent, env={"TOKEN": "other"}),
        replace(agent, restart_after_crash=False),
        replace(agent, folder=str(tmp_path / "elsewhere")),
    )
    starts = {session(folder, agent=spec).start for spec in (agent, *changed)}
    (folder / "agent.py").write_text("2\n")
    starts.add(session(folder, agent=agent).start)
    assert len(starts) == 2 + len(changed)
    write_session(folder, first)
    assert "hush" not in (folder / "session.json").read_text()
