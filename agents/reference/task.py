"""What the agent is told: environment variables and the task file (contract section 6)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

DEFAULT_WALL_CLOCK_S: Final = 600.0
DEFAULT_STEPS: Final = 100
DEFAULT_CONCURRENCY: Final = 8


class TaskError(Exception):
    """The environment or the task file lacks something the agent cannot do without."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Hard limits of the run. What the task leaves open gets a local default; `None` is not limited."""

    steps: int = DEFAULT_STEPS
    wall_clock_s: float = DEFAULT_WALL_CLOCK_S
    tokens: int | None = None
    cost_usd: float | None = None
    max_concurrency: int = DEFAULT_CONCURRENCY
    group_concurrency: Mapping[str, int] | None = None
    half_open_probes: int = 0
    recovery_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Offer:
    """One tool as the model sees it."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """One run: who, what, where, within which limits."""

    run_id: str
    intent_id: str
    tenant: str
    state_dir: Path
    events_path: Path | None
    tools_url: str
    model_url: str
    model_key: str
    api: str
    model: str
    stream: bool
    request: str
    limits: Limits
    offers: tuple[Offer, ...]
    registry: Mapping[str, Mapping[str, Any]]
    prices: Mapping[str, float]
    run_started: float | None


_URL_OF: Final = {"anthropic-messages": "ANTHROPIC_BASE_URL", "openai-chat": "OPENAI_BASE_URL"}
_KEY_OF: Final = {"anthropic-messages": "ANTHROPIC_API_KEY", "openai-chat": "OPENAI_API_KEY"}


def read_task(env: Mapping[str, str]) -> Task:
    """Read the task that the environment points at. Raises `TaskError`, saying what is missing or wrong."""

    def needed(name: str) -> str:
        if not env.get(name):
            raise TaskError(f"{name} is not set")
        return env[name]

    path = Path(needed("STORMPROOF_TASK"))
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise TaskError(f"cannot read the task {path}: {fault}") from fault
    if not isinstance(data, dict) or not isinstance(data.get("request"), str):
        raise TaskError(f"{path}: a task is an object with a request")
    api = data.get("api", "anthropic-messages")
    if api not in _URL_OF:
        raise TaskError(f"{path}: api {api!r} is not spoken here, only {', '.join(_URL_OF)}")
    run_id = needed("STORMPROOF_RUN_ID")
    events = env.get("STORMPROOF_EVENTS")
    return Task(
        run_id=run_id,
        intent_id=env.get("STORMPROOF_INTENT_ID") or run_id,
        tenant=env.get("STORMPROOF_TENANT") or "default",
        state_dir=Path(needed("STORMPROOF_STATE_DIR")),
        events_path=Path(events) if events else None,
        tools_url=needed("STORMPROOF_TOOLS_URL").rstrip("/"),
        model_url=needed(_URL_OF[api]).rstrip("/"),
        model_key=env.get(_KEY_OF[api]) or "unused",
        api=api,
        model=str(data.get("model") or "default"),
        stream=bool(data.get("stream", False)),
        request=data["request"],
        limits=_limits(data.get("limits") or {}),
        offers=tuple(_offer(tool) for tool in data.get("tools") or ()),
        registry=data.get("registry") or {},
        prices=data.get("prices") or {},
        run_started=_number(env.get("STORMPROOF_RUN_STARTED")),
    )


def _offer(tool: Mapping[str, Any]) -> Offer:
    return Offer(str(tool["name"]), str(tool.get("description") or ""), tool.get("input_schema") or {})


def _limits(data: Mapping[str, Any]) -> Limits:
    steps, tokens, parallel = data.get("steps"), data.get("tokens"), data.get("max_concurrency")
    return Limits(
        steps=DEFAULT_STEPS if steps is None else int(steps),
        wall_clock_s=_number(data.get("wall_clock_s")) or DEFAULT_WALL_CLOCK_S,
        tokens=None if tokens is None else int(tokens),
        cost_usd=_number(data.get("cost_usd")),
        max_concurrency=DEFAULT_CONCURRENCY if parallel is None else max(1, int(parallel)),
        group_concurrency=data.get("group_concurrency"),
        half_open_probes=int(data.get("half_open_probes") or 0),
        recovery_s=_number(data.get("recovery_s")) or 0.0,
    )


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
