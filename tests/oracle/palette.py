"""What one random history is made of: small pools, so that everything collides, and weights of its own.

Every history draws its palette first (swarm testing): one is nearly tidy, the next has two keys for forty
effects, the third knows nothing but breakers and restarts. No single mixture meets every rule often.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

Fields = dict[str, Any]

GESTURES = (
    "call",
    "undo",
    "rollback",
    "stray_undo",
    "settle",
    "finish",
    "exit",
    "restart",
    "model_call",
    "plan",
    "exhaust",
    "breaker",
    "refuse",
    "queue",
    "lag",
    "exception",
    "partial",
    "model_words",
    "note",
    "fragment",
    "echo",
)
RARE = frozenset({"finish", "exit", "restart", "exception", "exhaust"})


@dataclass(frozen=True, slots=True)
class Palette:
    """The pools and chances of one history."""

    tools: list[str | None]
    claimed: frozenset[str | None]
    steps: int
    keys: int
    intents: int
    digests: list[str | None]
    groups: list[str | None]
    tenants: list[str | None]
    ticks: list[float]
    base: float
    parallel: int
    quota: int
    fresh: float
    drop: float
    swap: float
    disorder: float
    reuse: float
    tidy: float
    limited: float
    deadlines: float
    queued: float
    worded: float
    elsewhere: float
    late: float
    skew: float
    sourced: float
    unstarted: float
    forgetful: float
    weights: dict[str, float]


def palette(rng: Random) -> Palette:
    """One palette, drawn from `rng`."""

    def of(*choices: float) -> float:
        return rng.choice(choices)

    names: list[str | None] = ["charge", "ship", "refund", None]
    tools = names[: rng.randint(1, 3)] + [x for x in (None, "") if rng.random() < 0.15]
    claims = of(0.0, 0.3, 0.6, 1.0)
    claimed = frozenset(tool for tool in tools if rng.random() < claims)
    weights = {name: rng.choice((0.0, 0.3, 1.0, 3.0)) * (0.25 if name in RARE else 1.0) for name in GESTURES}
    if rng.random() < 0.5:  # a history about a few things only
        about = rng.sample(GESTURES, 4)
        weights = {name: of(1.0, 3.0) if name in about else 0.02 for name in GESTURES}
    weights["call"] = of(1.0, 3.0, 6.0)
    weights["queue"] *= 2
    digests: list[list[str | None]] = [["d1"], ["d1", "d2"], ["d1", "d2", None], ["d1", ""], [None]]
    groups: list[list[str | None]] = [[None], ["g"], ["g", "h"], ["g", None], ["g", "", None]]
    tenants: list[list[str | None]] = [[None], [None, "a"], ["a", "b"], ["a", "b", "default", None], ["", "a"]]
    return Palette(
        tools=tools,
        claimed=claimed,
        steps=rng.randint(1, 5),
        keys=rng.randint(1, 4),
        intents=rng.randint(1, 4),
        digests=rng.choice(digests),
        groups=rng.choice(groups),
        tenants=rng.choice(tenants),
        ticks=rng.choice(([0.125], [0.0, 0.125, 1.0], [0.25, 0.5, 4.0], [0.0] * 9 + [4e-7, 0.5], [0.5, 0.5, 32.0])),
        base=of(0.0, -2.0, 1000.0),
        parallel=rng.randint(1, 4),
        quota=rng.choice((4, 10, 25, 60, 400)),
        fresh=of(0.0, 0.5, 1.0),
        drop=of(0.0, 0.0, 0.05, 0.3),
        swap=of(0.0, 0.0, 0.05, 0.3),
        disorder=of(0.0, 0.0, 0.1, 0.4),
        reuse=of(0.0, 0.0, 0.1, 0.4),
        tidy=of(0.0, 0.5, 0.95, 1.0),
        limited=of(0.0, 0.2, 0.6, 1.0),
        deadlines=of(0.0, 0.0, 0.3, 1.0),
        queued=of(0.0, 0.2, 0.8),
        worded=of(0.0, 0.0, 0.5, 0.95),
        elsewhere=of(0.0, 0.1, 0.5),
        late=of(0.0, 0.02, 0.2),
        skew=of(0.0, 0.1),
        sourced=of(0.0, 0.0, 0.2),
        unstarted=of(0.0, 0.1, 0.5),
        forgetful=of(0.0, 0.0, 0.02),
        weights=weights,
    )


def limits(rng: Random, p: Palette) -> Fields | None:
    """The limits of one run; None where it declares none at all."""
    if rng.random() < 0.1:
        return None
    options: list[tuple[str, list[Any]]] = [
        ("steps", [0, 1, 2, 3, 5]),
        ("wall_clock_s", [0, 0.5, 2, 8, 64.0, 1000]),
        ("tokens", [0, 50, 100.5, 400]),
        ("cost_usd", [0, 0.5, 1.25, 8]),
        ("max_concurrency", [0, 1, 2, 4]),
        ("half_open_probes", [0, 1, 2]),
        ("max_tenant_wait_s", [0, 0.25, 1, 16]),
        ("grace_s", [0, 0.25, 2]),
        ("recovery_s", [0, 1, 8, 128]),
    ]
    chosen: Fields = {name: rng.choice(values) for name, values in options if rng.random() < p.limited}
    if rng.random() < p.limited:
        chosen["group_concurrency"] = {
            g: rng.choice((0, 1, 2, 3, None)) for g in ("g", "h", "") if rng.random() < 0.7
        }
    return chosen
