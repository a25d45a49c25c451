"""Small stories told in records, and small result directories, for the tests of `reports/`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from reports.mechanisms.attempts import Line
from reports.mechanisms.catalogue import detect
from reports.results import HISTORY, VERDICTS, Activation, Bound, FaultUse, Finding, Ruling, RunResult
from traces.history import Record
from traces.registry import Registry
from traces.registry_reading import registry_from

TOOLS: dict[str, Any] = {
    "lookup": {
        "match": {"method": "POST", "path": "/tools/lookup"},
        "environment": "stand-in",
        "idempotency": "natural",
        "severity": "none",
        "args": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        "latency": {"p50_s": 0.2, "p95_s": 0.6, "p99_s": 1.0, "samples": 4000},
    },
    "charge": {
        "match": {"method": "POST", "path": "/tools/charge"},
        "environment": "stand-in",
        "idempotency": "keyed",
        "severity": "money",
        "compensation": {"tool": "refund", "of": {"arg": "$.charge_id", "result": "$.id"}, "strength": "strong"},
        "resource_group": "payments",
        "self_repair": 1,
    },
    "refund": {
        "match": {"method": "POST", "path": "/tools/refund"},
        "environment": "stand-in",
        "idempotency": "keyed",
        "severity": "money",
        "compensation": {"tool": None, "strength": "none"},
    },
    "mail": {
        "match": {"method": "POST", "path": "/tools/mail"},
        "environment": "stand-in",
        "idempotency": "irreversible",
        "severity": "visible",
        "avoid": True,
    },
}


def registry() -> Registry:
    """The registry of the stories: a read, a keyed write that can be undone, its undo, an irreversible write."""
    return registry_from(TOOLS)


class Story:
    """Tells one run record by record; every telling moves the clock on by 0.1 s unless told otherwise."""

    def __init__(self, run_id: str = "r1", *, tenant: str = "a", **limits: Any) -> None:
        self.run_id, self.tenant, self.t = run_id, tenant, 0.0
        self.records: list[Record] = []
        self._calls = 0
        self.add("run_started", source="harness", tenant=tenant, task_type="order", limits=limits)

    def add(self, kind: str, /, *, after: float = 0.1, **fields: Any) -> Story:
        """Adds one record `after` seconds later."""
        self.t = round(self.t + after, 6)
        data = {"type": kind, "t": self.t, "run_id": self.run_id, **fields}
        self.records.append(msgspec.convert(data, Record))
        return self

    def asks(self, tool: str, digest: str = "d1", **fields: Any) -> Story:
        """The model asks for a call."""
        said: dict[str, Any] = {"complete": True, "tool": tool, "args_digest": digest}
        return self.add("model_tool_call", source="wire", **said | fields)

    def breaker(self, before: str, to: str, *, tool: str = "lookup", **fields: Any) -> Story:
        """A tool's breaker changes."""
        changed: dict[str, Any] = {"from": before, "to": to, "tool": tool}
        return self.add("breaker_state_changed", **changed | fields)

    def model(self, outcome: str = "ok", *, takes: float = 0.1, tokens: int = 100, **finish: Any) -> Story:
        """A model call and its end."""
        self._calls += 1
        call = f"m{self._calls}"
        self.add("model_call_started", source="wire", attempt_id=call)
        return self.add(
            "model_call_finished",
            after=takes,
            source="wire",
            attempt_id=call,
            outcome=outcome,
            **{"input_tokens": tokens, "output_tokens": 0, "http_status": 200} | finish,
        )

    def start(self, tool: str, *, digest: str = "d1", after: float = 0.1, **fields: Any) -> str:
        """The start of a tool call on the wire; returns its attempt id."""
        self._calls += 1
        call = f"a{self._calls}"
        begun: dict[str, Any] = {
            "source": "wire",
            "attempt_id": call,
            "wire": f"w{self._calls}",
            "tool": tool,
            "args_digest": digest,
            "step": 1,
            "effectful": tool != "lookup",
        }
        self.add("tool_call_started", after=after, **begun | fields)
        return call

    def end(self, call: str, tool: str, outcome: str = "ok", *, after: float = 0.1, **fields: Any) -> Story:
        """The end of a tool call on the wire."""
        return self.add(
            "tool_call_finished", after=after, source="wire", attempt_id=call, tool=tool, outcome=outcome, **fields
        )

    def call(
        self, tool: str, outcome: str = "ok", *, digest: str = "d1", key: str | None = None, step: int = 1,
        effect: str | None = None, finish: dict[str, Any] | None = None, **fields: Any,
    ) -> Story:  # fmt: skip
        """A whole tool call; `effect` is what the service did: an effect id, or `=id` for an answer from memory."""
        call = self.start(tool, digest=digest, idempotency_key=key, step=step, **fields)
        if effect is not None:
            self.effect(tool, effect, digest=digest, key=key, step=step, attempt_id=call)
        return self.end(call, tool, outcome, **finish or {})

    def effect(
        self, tool: str, effect: str, *, digest: str = "d1", key: str | None = None, step: int = 1, **more: Any
    ) -> Story:
        """What the service says it did."""
        outcome = "deduplicated" if effect.startswith("=") else "applied"
        return self.add(
            "effect",
            after=0.01,
            source="service",
            tool=tool,
            effect_id=effect.lstrip("="),
            outcome=outcome,
            args_digest=digest,
            idempotency_key=key,
            step=step,
            **more,
        )

    def done(self, status: str = "succeeded", **fields: Any) -> Story:
        """The end of the run as the agent states it."""
        return self.add("run_finished", source="agent", status=status, **fields)

    def lines(self, first: int = 1) -> list[Line]:
        """The records with line numbers."""
        return list(enumerate(self.records, start=first))


def seen(story: Story | Sequence[Line], mechanism: str, *, run_id: str | None = None) -> list[bool]:
    """For each opportunity of a mechanism in a story whether it acted, in order."""
    lines = story.lines() if isinstance(story, Story) else story
    found = detect(lines, run_id=run_id, registry=registry())
    return [observation.acted for observation in found if observation.mechanism == mechanism]


def held(*except_for: str) -> list[Ruling]:
    """Seven verdicts `held`, without those named."""
    names = (
        "single-effect", "budgets", "no-dangling-effect", "no-escaped-exception", "breaker-respected",
        "reverse-compensation", "bounded-concurrency",
    )  # fmt: skip
    return [Ruling(invariant=name, verdict="held") for name in names if name not in except_for]


def violated(reason: str = "duplicate-key", *evidence: int, message: str = "charge was executed twice.") -> Ruling:
    """A violated verdict of `single-effect`."""
    return Ruling(
        invariant="single-effect",
        verdict="violated",
        reason=reason,
        evidence=list(evidence),
        message=message,
        owner="payments-oncall",
    )


def result(run_id: str = "r1", *, number: int | str = 204, trace: str = "order-small", **fields: Any) -> RunResult:
    """A run result: held throughout unless told otherwise."""
    defaults: dict[str, Any] = {
        "scenario": "The charge is executed, its answer says it failed",
        "agent": "reference",
        "status": "succeeded",
        "layers": ["tool"],
        "verdicts": held(),
        "faults": [FaultUse(kind="executed-but-failed", layer="tool", site="charge#1/1", fired=1)],
        "replay": f"stormproof run --scenario {number} --trace {trace}",
        "wall_s": 1.5,
        "agent_s": 1.2,
        "harness_s": 0.1,
        "started": 1000.0,
    }
    return RunResult(run_id=run_id, number=number, trace=trace, **defaults | fields)


def acts(opportunities: int, activations: int, tool: str = "charge") -> Activation:
    """Counts of a mechanism on one tool."""
    return Activation(
        opportunities=opportunities, activations=activations, by_tool={tool: (opportunities, activations)}
    )


def directory(path: Path, *runs: RunResult, history: Iterable[Record] = ()) -> Path:
    """Writes a result directory as the harness would."""
    path.mkdir(parents=True, exist_ok=True)
    for name, items in ((HISTORY, history), (VERDICTS, runs)):
        (path / name).write_bytes(b"".join(msgspec.json.encode(item) + b"\n" for item in items))
    return path


def double_charge(run_id: str = "r1", trace: str = "order-small") -> tuple[RunResult, list[Record]]:
    """A run that charges twice, with its history: the violation that every report has to show well."""
    story = Story(run_id, steps=6, wall_clock_s=30, tokens=1000)
    story.model().asks("charge", step=1)
    story.call("charge", "error", key="k1", effect=f"{run_id}-e1", args={"amount": 1200, "order_id": "o-7"},
               finish={"http_status": 500, "error": {"kind": "downstream", "retryable": True}})  # fmt: skip
    story.add(
        "fault_injected", source="harness", layer="tool", kind="executed-but-failed", site="charge#1/1", after=0
    )
    story.call("charge", key="k2", effect=f"{run_id}-e2", args={"amount": 1200, "order_id": "o-7"})
    story.done()
    first, second = (n for n, r in story.lines() if r.type == "effect")
    run = result(
        run_id,
        trace=trace,
        lines=(1, len(story.records)),
        verdicts=[violated("duplicate-intent", first, second), *held("single-effect")],
        activations={"retry": acts(1, 1), "dedup": acts(0, 0)},
        expect={"retry": Bound(min=1.0)},
        findings=[Finding(code="keyless-write", fact="A fact.", advice="An advice.", lines=[first])],
    )
    return run, story.records
