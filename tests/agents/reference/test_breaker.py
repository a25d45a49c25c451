"""The breaker of a tool."""

from __future__ import annotations

from pathlib import Path

from agents.reference.breaker import COOL_DOWN_S, Breakers, Ticket
from agents.reference.events import Events
from tests.agents.fake_clock import FakeClock
from tests.agents.fake_world import events


class Bench:
    """Breakers with a virtual clock, and the changes they announced."""

    def __init__(self, folder: Path, probes: int = 0) -> None:
        self.clock = FakeClock()
        self.folder = folder
        self.breakers = Breakers(
            Events(folder / "events.jsonl", self.clock, {}), self.clock, probes=probes, threshold=3
        )

    def ask(self) -> Ticket | None:
        """Ask for leave."""
        with self.breakers.entrance("t") as ticket:
            return ticket

    def call(self, healthy: bool) -> bool:
        """One call; false where it was refused."""
        ticket = self.ask()
        if ticket is None:
            return False
        self.breakers.report(ticket, healthy=healthy)
        return True

    def changes(self) -> list[str]:
        """States announced, in order."""
        return [event["to"] for event in events(self.folder)]


def test_a_run_of_failures_opens(tmp_path: Path) -> None:
    """Three in a row open; a success in between starts the count anew."""
    bench = Bench(tmp_path)
    for healthy in (False, False, True, False, False):
        assert bench.call(healthy)
    assert bench.changes() == []
    bench.call(False)
    assert bench.changes() == ["open"]
    assert bench.call(True) is False


def test_without_probes_it_stays_open(tmp_path: Path) -> None:
    """No probes granted: the strict reading of the contract lets nothing through for the rest of the run."""
    bench = Bench(tmp_path)
    for _ in range(3):
        bench.call(False)
    bench.clock.time += 10 * COOL_DOWN_S
    assert bench.call(True) is False


def test_a_probe_closes_or_opens_again(tmp_path: Path) -> None:
    """After the pause one probe: failing opens for another pause, succeeding closes."""
    bench = Bench(tmp_path, probes=1)
    for _ in range(3):
        bench.call(False)
    assert bench.call(True) is False
    bench.clock.time += COOL_DOWN_S
    assert bench.call(False) is True
    assert bench.call(True) is False
    bench.clock.time += COOL_DOWN_S
    assert bench.call(True) is True
    assert bench.changes() == ["open", "half_open", "open", "half_open", "closed"]


def test_half_open_lets_no_more_through_than_it_may(tmp_path: Path) -> None:
    """Two probes allowed: the third who asks while both are under way is refused."""
    bench = Bench(tmp_path, probes=2)
    for _ in range(3):
        bench.call(False)
    bench.clock.time += COOL_DOWN_S
    assert [bench.ask() is not None for _ in range(3)] == [True, True, False]


def test_a_late_success_of_an_old_call_closes_nothing(tmp_path: Path) -> None:
    """A call begun before the opening comes back well: the breaker stays as it is, and opens once it is back."""
    bench = Bench(tmp_path, probes=1)
    old = bench.ask()
    assert old is not None
    for _ in range(3):
        bench.call(False)
    assert bench.changes() == [], "announced only when nothing is under way any more"
    assert bench.call(True) is False, "but nothing new is let in meanwhile"
    bench.breakers.report(old, healthy=True)
    assert bench.changes() == ["open"]


def test_tools_do_not_share_a_breaker(tmp_path: Path) -> None:
    """One broken tool closes no other."""
    bench = Bench(tmp_path)
    for _ in range(3):
        bench.call(False)
    with bench.breakers.entrance("other") as ticket:
        assert ticket is not None
