"""A ledger written too late."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agents.known_bad.ledger_after_call import LateLedger
from agents.reference import calls
from agents.reference.__main__ import run
from agents.reference.clock import SystemClock
from agents.reference.decisions import REFERENCE
from agents.reference.transport import Reply, exchange
from tests.agents.fake_shop import ORDER
from tests.agents.fake_world import events, world
from tests.agents.test_crashes import Killed


def test_a_crash_after_the_mail_sends_it_again(tmp_path: Path) -> None:
    """The process dies between the mail and its answer: nothing of it is on record, and it goes out twice."""

    def die_after_the_mail(method: str, url: str, **named: object) -> Reply:
        reply = exchange(method, url, **named)  # type: ignore[arg-type]
        if url.endswith("/email"):
            raise Killed
        return reply

    decisions = replace(REFERENCE, ledger=LateLedger)
    with world(ORDER) as there:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(calls, "exchange", die_after_the_mail)
            with pytest.raises(Killed):
                run(there.environment(tmp_path), SystemClock(), decisions)
        outcome = run(there.environment(tmp_path), SystemClock(), decisions)
    assert outcome.status == "succeeded"
    assert [effect.tool for effect in there.effects].count("email") == 2


def test_it_claims_no_write_ahead(tmp_path: Path) -> None:
    """It does not say of itself that it wrote before the call."""
    with world(ORDER) as there:
        run(there.environment(tmp_path), SystemClock(), replace(REFERENCE, ledger=LateLedger))
    assert not [event for event in events(tmp_path) if event.get("name") == "write_ahead"]
