"""The runs that are open in the stand-ins, found by the header that the proxy puts on every request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest

from harness.standins.recording import Recording
from harness.standins.traffic import Traffic
from traces.registry import Registry

RUN_HEADER = "x-stormproof-run"
WIRE_HEADER = "x-stormproof-wire"
CALL_HEADER = "x-stormproof-call"
CAUSE_HEADER = "x-stormproof-caused-by"
SECRET_HEADER = "x-stormproof-secret"


@dataclass(slots=True, kw_only=True)
class Run:
    """One open run. `latency_s`: seconds that the service works on a call of a tool, none where it is not named."""

    run_id: str
    world: str
    intent_id: str
    tenant: str
    recording: Recording
    policy: str
    latency_s: Mapping[str, float] = field(default_factory=dict)
    secret: str = field(default="", repr=False)
    """What every request has to carry, as only the proxy knows it; empty where it is not asked for."""
    traffic: Traffic = field(default_factory=Traffic)
    refusals: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """Recorded failures given so far, by tool, digest of arguments and number of the logical call."""
    failure: str | None = None
    """What went wrong in the stand-ins themselves; it makes the run a harness error."""
    over: bool = False
    """Its world is closed: what still arrives has no effect."""

    def admits(self, secret: str) -> bool:
        """Whether a request with this secret came through the proxy."""
        return not self.secret or compare_digest(self.secret.encode(), secret.encode("utf-8", "surrogateescape"))

    @property
    def registry(self) -> Registry:
        """The tools that this run may call."""
        return self.recording.registry


class Runs:
    """Open runs by id."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def open(self, run: Run) -> None:
        """Opens a run; one that is open already keeps its traffic (the harness asks again after a restart)."""
        before = self._runs.get(run.run_id)
        if before is not None and before.world == run.world:
            run.traffic, run.refusals, run.failure = before.traffic, before.refusals, before.failure
        self._runs[run.run_id] = run

    def get(self, run_id: str | None) -> Run | None:
        """The open run of this id."""
        return self._runs.get(run_id) if run_id else None

    def close_world(self, world: str) -> None:
        """Forgets the runs of a world."""
        for run in [run for run in self._runs.values() if run.world == world]:
            run.over = True
            del self._runs[run.run_id]
