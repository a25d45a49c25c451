"""What the agent under test is given: its environment and its task file (contract section 6)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness.agents import AgentSpec
from harness.planning import RunPlan

# Variables that would lead an agent past the proxy or into our own modules, or that are the user's own secrets.
_NOT_PASSED_ON = frozenset(
    {
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "ALL_PROXY",
        "all_proxy",
        "OPENAI_API_BASE",
        "OPENAI_ORG_ID",
        "OPENAI_PROJECT_ID",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_CUSTOM_HEADERS",
    }
)
_NO_SUCH_PREFIX = ("OTEL_EXPORTER_",)
"""The user's collector is a real system, and its headers hold a key."""


def agent_environment(plan: RunPlan, *, folder: Path, port: int, agent: AgentSpec, started: float) -> dict[str, str]:
    """The whole environment of the agent's process. `started` is the Unix time at which its wall clock began.

    What the agent's own `env` says goes before all that is set or left out here.
    """
    door = f"http://127.0.0.1:{port}"
    environment = {
        key: value
        for key, value in os.environ.items()
        if key not in _NOT_PASSED_ON and not key.startswith(_NO_SUCH_PREFIX)
    }
    environment.update(
        {
            "STORMPROOF_RUN_ID": plan.run_id,
            "STORMPROOF_INTENT_ID": plan.intent_id,
            "STORMPROOF_TENANT": plan.tenant,
            "STORMPROOF_STATE_DIR": str((folder / "state").resolve()),
            "STORMPROOF_TASK": str((folder / "task.json").resolve()),
            "STORMPROOF_EVENTS": str((folder / "events.jsonl").resolve()),
            "STORMPROOF_RUN_STARTED": f"{started:.6f}",
            "STORMPROOF_TOOLS_URL": f"{door}/tools",
            "ANTHROPIC_BASE_URL": door,
            "OPENAI_BASE_URL": f"{door}/v1",
            "HTTP_PROXY": door,
            "HTTPS_PROXY": door,
            # curl and what is built on it read the lower-case form only.
            "http_proxy": door,
            "https_proxy": door,
            # An inherited exception for the loopback address would lead every call past the proxy.
            "NO_PROXY": "",
            "no_proxy": "",
            # The SDKs refuse to start without a key. The user's own is none of the agent's business here.
            "ANTHROPIC_API_KEY": "stand-in",
            "OPENAI_API_KEY": "stand-in",
        }
    )
    environment.update(agent.env)
    return environment


def write_task(path: Path, *, plan: RunPlan, registry: Mapping[str, Any]) -> None:
    """Write the task of a run: what the user asked, over which API, with which tools and limits."""
    task = {
        "request": plan.trace.request,
        "api": plan.trace.api,
        "model": plan.trace.model or "stand-in",
        "stream": plan.trace.stream,
        "limits": plan.limits,
        "tools": plan.trace.tools,
        "registry": registry,
    }
    path.write_bytes(msgspec.json.encode(task))
