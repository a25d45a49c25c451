"""The history: one record per line, from everybody's point of view (contract section 3).

`Record` is the shape in which the rest of the house sees a line of a history. Field names are the
contract's; a field that a line does not carry is `None`. Times are seconds (Unix time in live runs),
tokens and counts are numbers, `cost_usd` is US dollars.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Limits(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The budgets of a run; `None` means not limited. Seconds, tokens, dollars, counts."""

    steps: int | None = None
    wall_clock_s: float | None = None
    tokens: float | None = None
    cost_usd: float | None = None
    max_concurrency: float | None = None
    group_concurrency: dict[str, float | None] | None = None
    half_open_probes: float | None = None
    max_tenant_wait_s: float | None = None
    grace_s: float | None = None
    recovery_s: float | None = None


class ErrorInfo(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Why a call or a run failed, in the terms of contract section 3."""

    kind: str | None = None
    message: str | None = None
    retryable: bool | None = None
    retry_after_s: float | None = None
    may_have_taken_effect: bool | None = None
    model_message: str | None = None


class PlannedAction(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One action of `plan_created`."""

    step: int | None = None
    tool: str | None = None
    args_digest: str | None = None


class FailedStep(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One failed step of `partial_success_returned`."""

    step: int | None = None
    reason: str | None = None


class Degradation(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One thing that the outcome leaves out, and why."""

    what: str | None = None
    why: str | None = None


class CoreRecord(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    kw_only=True,
    gc=False,  # a decoded line never holds a cycle, and judging a history makes millions of them
    forbid_unknown_fields=True,
    rename={"from_": "from"},
):
    """The fields that judging needs, and those that mostly stand beside them on a line.

    It exists for speed alone: an object of more than 512 bytes is no longer a small one to Python's allocator, and a
    whole `Record` is. A line that has other fields as well is decoded as a `Record`.
    """

    # In the order in which lines mostly name them: the decoder looks for a field from where it found the last one.
    type: str
    t: float
    run_id: str
    source: str | None = None
    world: str | None = None
    tenant: str | None = None
    task_type: str | None = None
    limits: Limits | None = None
    # calls and effects
    effect_id: str | None = None
    outcome: str | None = None
    compensates: str | None = None
    caused_by: str | None = None
    effectful: bool | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    cost_usd: float | None = None
    tool: str | None = None
    tool_version: str | None = None
    step: int | None = None
    attempt_id: str | None = None
    intent_id: str | None = None
    args_digest: str | None = None
    intent_digest: str | None = None
    idempotency_key: str | None = None
    resource_group: str | None = None
    scope: str | None = None
    deadline_remaining_s: float | None = None
    complete: bool | None = None
    error: ErrorInfo | None = None
    # ends, plans and budgets
    status: str | None = None
    completed: list[int] | None = None
    recoverable: bool | None = None
    from_step: int | None = None
    skipped: list[int] | None = None
    actions: list[PlannedAction] | None = None
    budget: str | None = None
    # compensation, retries and breakers
    disposition: str | None = None
    strength: str | None = None
    reason: str | None = None
    delay_s: float | None = None
    attempt: int | None = None
    from_: str | None = None
    to: str | None = None
    failures: float | None = None
    threshold: float | None = None
    # words and processes
    name: str | None = None
    message: str | None = None
    handled: bool | None = None
    max_s: float | None = None
    pid: int | None = None
    exit_code: int | None = None
    signal: int | str | None = None
    injected: bool | None = None


class Record(
    CoreRecord,
    frozen=True,
    omit_defaults=True,
    kw_only=True,
    gc=False,
    forbid_unknown_fields=False,
    rename={"from_": "from"},
):
    """One line of a history, with all fields that contract section 3 names.

    Their types are what the strict codec (`traces/codec.py`) demands of a line, whatever the record's type is;
    integers may be written with an empty fraction (`1.0`).
    """

    parent_run_id: str | None = None
    degraded: list[Degradation] | None = None
    allotted_s: float | None = None
    remaining_s: float | None = None
    rule: str | None = None
    parent: str | None = None
    cap_s: float | None = None
    server_directed: bool | None = None
    retry_budget_left: float | None = None
    ledger_id: str | None = None
    failed: list[FailedStep] | None = None
    advice: Any = None
    grounds: Any = None
    timeline: Any = None
    certain: Any = None
    uncertain: Any = None
    tried: Any = None
    untried: Any = None
    in_flight: Any = None
    scenario: Any = None
    layer: str | None = None
    kind: str | None = None
    site: Any = None
    generation: int | None = None
    # Ours, beyond the contract: foreign histories may use these names for anything, so nothing is demanded.
    wire: Any = None
    """Id of the forwarded request (text), given by the proxy and stored by the service with its effect."""
    http_status: Any = None
    """Status code of an answer (integer)."""
    retry_after_s: Any = None
    """What a `Retry-After` on this answer said, in seconds from `t`."""
    args: Any = None
    """The arguments as sent, so that a report can show them side by side."""
    result: Any = None
    """The result as received."""
