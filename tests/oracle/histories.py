"""Random histories in which everything collides, valid by contract section 3.

`history(rng, size)` tells a story: a few runs at a time, each with threads of records that are interleaved
at random, so that calls overlap, restarts come in the middle and effects land after the end. It is driven by
any `random.Random`: a seeded one for long histories, hypothesis' own for small ones that it can shrink.

What section 3 forbids is never made: a late first `run_started`, time running backwards by more than 0.05 s
in a run, an effect id that stands for two effects of one world, a record of a world after its `world_finished`.
"""

from __future__ import annotations

from collections import deque
from random import Random

from tests.oracle.gestures import gesture
from tests.oracle.palette import Fields, Palette, limits, palette


class Run:
    """One run as it is being told."""

    def __init__(self, name: str, *, world: str, started: bool) -> None:
        self.name = name
        self.world = world
        self.started = started
        self.threads: list[deque[Fields]] = []
        self.told: list[Fields] = []
        self.effects: list[Fields] = []
        self.attempts = 0
        self.deadline = 0.0


class Story:
    """The state of one history: its clock, worlds and runs."""

    def __init__(self, rng: Random, size: int) -> None:
        self.rng = rng
        self.size = size
        self.palette: Palette = palette(rng)
        self.clock = self.palette.base
        self.records: list[Fields] = []
        self.runs: list[Run] = []
        self.active: list[Run] = []
        self.worlds = [f"w{i}" if i else "" for i in range(rng.randint(1, 3))]
        self.worlds_made = len(self.worlds)
        self.effect_ids: dict[str, int] = {}
        self.fresh = 0

    def tell(self) -> list[Fields]:
        """The whole history."""
        rng, p = self.rng, self.palette
        while len(self.records) < self.size:
            if not self.active or (len(self.active) < p.parallel and rng.random() < 0.3):
                self.open_run()
                continue
            run = rng.choice(self.active)
            if rng.random() < p.late:
                run = rng.choice([r for r in self.runs if r.world in self.worlds])
            if run.threads and rng.random() < 0.75:
                self.advance(run)
            else:
                run.threads += [deque(thread) for thread in gesture(self, run) if thread]
            if run in self.active and len(run.told) > p.quota * (0.5 + rng.random()):
                self.close(run)
            if rng.random() < p.forgetful:
                self.forget_world()
        for run in self.active:
            if rng.random() < 0.7:
                self.close(run)
        while len(self.worlds) > 1 and rng.random() < p.forgetful * 10:
            self.forget_world()
        return self.records

    def effect_id(self, world: str) -> str:
        """The next effect id of a world; two worlds have the same ones."""
        self.effect_ids[world] = self.effect_ids.get(world, 0) + 1
        return f"e{self.effect_ids[world]}"

    def open_run(self) -> None:
        """A new run, mostly begun by its `run_started`."""
        rng, p = self.rng, self.palette
        started = not (rng.random() < p.unstarted and "" in self.worlds)
        world = rng.choice(self.worlds) if started else ""
        run = Run(f"r{len(self.runs)}", world=world, started=started)
        self.runs.append(run)
        self.active.append(run)
        run.deadline = self.clock + rng.choice((1.0, 4.0, 16.0))
        if started:
            self.emit(run, self.start_record(run))

    def start_record(self, run: Run) -> Fields:
        """A `run_started` of the run (a further one may name another world: it is ignored)."""
        rng, p = self.rng, self.palette
        fields: Fields = {"type": "run_started"}
        if run.world or rng.random() < 0.5:
            fields["world"] = run.world
        fields["tenant"] = rng.choice(p.tenants)
        fields["limits"] = limits(rng, p)
        return fields

    def advance(self, run: Run) -> None:
        """The next record of one of the run's threads."""
        thread = self.rng.choice(run.threads)
        fields = thread.popleft()
        if not thread:
            run.threads.remove(thread)
        target = fields.pop("@run", run)
        if target.world in self.worlds:
            self.emit(target, fields)

    def close(self, run: Run) -> None:
        """No more new gestures of this run: flush what it was doing, and mostly end it."""
        rng = self.rng
        while run.threads and rng.random() < 0.9:
            self.advance(run)
        if rng.random() < 0.8:
            for thread in gesture(self, run, rng.choice(("finish", "finish", "rollback"))):
                for fields in thread:
                    target = fields.pop("@run", run)
                    if target.world in self.worlds:
                        self.emit(target, fields)
        self.active = [r for r in self.active if r is not run]

    def forget_world(self) -> None:
        """`world_finished` for a world in which no run is active; a new world takes its place."""
        idle = [w for w in self.worlds if all(r.world != w for r in self.active)]
        if not idle:
            return
        world = self.rng.choice(idle)
        self.worlds.remove(world)
        self.worlds.append(f"w{self.worlds_made}")
        self.worlds_made += 1
        name = self.rng.choice(["stormproof", *(r.name for r in self.runs)])
        self.put({"type": "world_finished", "run_id": name, "world": world or self.rng.choice((None, ""))})

    def emit(self, run: Run, fields: Fields) -> None:
        """Puts one record of a run, with its time."""
        rng, p = self.rng, self.palette
        self.clock += rng.choice(p.ticks)
        t = self.clock - (1 / 32 if rng.random() < p.skew else 0)
        fields = {k: v for k, v in fields.items() if v is not None}
        if "@deadline" in fields:
            fields["deadline_remaining_s"] = fields.pop("@deadline") - t
        if rng.random() < p.sourced:
            fields["source"] = rng.choice(("wire", "service", "harness", "agent"))
        run.told.append(fields)
        self.put({**fields, "run_id": run.name, "t": t})

    def put(self, fields: Fields) -> None:
        """Appends one record as it will stand in the file."""
        whole = {"type": fields["type"], "t": fields.get("t", self.clock), **fields}
        self.records.append({k: v for k, v in whole.items() if v is not None})


def history(rng: Random, size: int) -> list[Fields]:
    """One random history of about `size` records, as JSON objects in file order."""
    return Story(rng, size).tell()
