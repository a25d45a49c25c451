"""Puts the parts of an agent together for one task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agents.reference.breaker import Breakers
from agents.reference.budget import Account, TimePlan
from agents.reference.calls import ToolClient
from agents.reference.clock import Clock
from agents.reference.compensation import Undoer
from agents.reference.decisions import Decisions
from agents.reference.events import Events
from agents.reference.loop import Run
from agents.reference.model import ModelClient
from agents.reference.steps import Steps
from agents.reference.task import Task
from agents.reference.tools import FACTOR, Toolbox
from agents.reference.turn import Wire
from agents.reference.wire_anthropic import AnthropicMessages
from agents.reference.wire_openai import OpenAIChat

_MODEL_P99_SHARE: Final = 0.1
_MODEL_P99_S: Final = (0.5, 10.0)
"""Without a measured profile a model's answer is taken to need a tenth of the wall clock, within these bounds."""


def model_need_s(wall_clock_s: float) -> float:
    """Seconds one model call may take, and must still have before it."""
    least, most = _MODEL_P99_S
    return FACTOR * min(most, max(least, _MODEL_P99_SHARE * wall_clock_s))


def assemble(task: Task, *, events: Events, clock: Clock, decisions: Decisions) -> Run:
    """The agent for `task`, with its ledger open. The run's beginning is fixed here, once for all its processes."""
    limits = task.limits
    ledger = decisions.ledger(task.state_dir, task.run_id)
    started = ledger.fact("started_at")
    if started is None:
        started = min(clock.now(), task.run_started or clock.now())
        ledger.note("started_at", started)
    time = TimePlan(started, limits.wall_clock_s, limits.recovery_s)
    toolbox = Toolbox(task.offers, task.registry)
    account = _account(task)
    account.restore(ledger.fact("spent") or {})
    client = ToolClient(
        url=task.tools_url,
        events=events,
        clock=clock,
        breakers=Breakers(events, clock, probes=limits.half_open_probes),
        decisions=decisions,
        generation=ledger.generation,
    )
    model = ModelClient(
        wire=_wire(task.api),
        url=task.model_url,
        key=task.model_key,
        model=task.model,
        stream=task.stream,
        need_s=model_need_s(limits.wall_clock_s),
        events=events,
        clock=clock,
        account=account,
        decisions=decisions,
        save=lambda spent: ledger.note("spent", spent),
        generation=ledger.generation,
    )
    steps = Steps(
        tenant=task.tenant,
        intent=task.intent_id,
        limits=limits,
        toolbox=toolbox,
        ledger=ledger,
        client=client,
        events=events,
        clock=clock,
        scope=time.forward,
    )
    undoer = Undoer(ledger, toolbox.any, client, events, clock, time.compensation, decisions)
    return Run(task, ledger, events, time, account, toolbox, model, steps, undoer)


def _wire(api: str) -> Wire:
    return OpenAIChat() if api == "openai-chat" else AnthropicMessages()


def _account(task: Task) -> Account:
    prices: Mapping[str, float] = task.prices
    account = Account(task.limits.tokens, task.limits.cost_usd)
    account.input_price = float(prices.get("input_usd_per_mtok", account.input_price))
    account.output_price = float(prices.get("output_usd_per_mtok", account.output_price))
    return account
