"""What the tool service decides: one effect per key, honest refusals, undoing by id."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.standins.ledger import Ledger
from harness.standins.recording import recording_of
from harness.standins.runs import Run
from harness.standins.service import Response, ToolService
from tests.harness.standins.shop import CHARGE, REGISTRY, Done, recorded
from traces.history import Record
from traces.registry_reading import registry_from
from traces.trace import Trace

ARGS = CHARGE.args


class Shop:
    """A tool service with one ledger, and runs opened on it."""

    def __init__(self, path: Path) -> None:
        self.ledger = Ledger(path / "effects.sqlite3")
        self.service = ToolService(self.ledger)
        self.run = self.open()

    def open(self, trace: Trace | None = None, /, **fields: Any) -> Run:
        """A run of the world `w`."""
        recording = recording_of(trace or recorded(), registry_from(REGISTRY))
        given = {"run_id": "r", "world": "w", "intent_id": "i", "tenant": "t", "policy": "continue"}
        return Run(**(given | {"recording": recording} | fields))

    def call(self, tool: str, args: Any, *, key: str | None = None, run: Run | None = None, **more: str) -> Response:
        """One call, with the headers of the proxy by their short names."""
        return asyncio.run(self.acall(tool, args, key=key, run=run, **more))

    async def acall(
        self, tool: str, args: Any, *, key: str | None = None, run: Run | None = None, **more: str
    ) -> Response:
        """The same inside a running loop."""
        headers = {f"x-stormproof-{name.replace('_', '-')}": text for name, text in more.items()}
        headers |= {} if key is None else {"Idempotency-Key": key}
        chosen = run or self.run
        return await self.service.call(chosen, chosen.registry.tools[tool], args, headers=headers)

    def effects(self, run_id: str = "r") -> list[Record]:
        """The effects of a run."""
        return self.ledger.effects(run_id)

    def outcomes(self, run_id: str = "r") -> list[tuple[str | None, str | None, str | None]]:
        """Tool, outcome and effect id of each effect of a run."""
        return [(record.tool, record.outcome, record.effect_id) for record in self.effects(run_id)]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A shop with an empty ledger and one run."""
    opened = Shop(tmp_path)
    yield opened
    opened.ledger.close()


def body(response: Response) -> Any:
    """The JSON of a response."""
    return json.loads(response.body)


def kind(response: Response) -> str:
    """The kind of error that a response reports, after a look at its shape."""
    error: Mapping[str, Any] = body(response)["error"]
    assert set(error) == {"kind", "message", "retryable", "retry_after_s", "may_have_taken_effect"}
    return str(error["kind"])


def test_recorded_call_gets_the_recorded_answer(shop: Shop) -> None:
    """A call of the recording is executed, answered as recorded, and on the ledger with its wire id."""
    answer = shop.call("charge", ARGS, key="k1", wire="w7")
    assert (answer.status, body(answer)) == (200, CHARGE.body)
    (effect,) = shop.effects()
    assert (effect.outcome, effect.wire, effect.idempotency_key, effect.compensates) == ("applied", "w7", "k1", None)


def test_repeated_key_is_answered_from_memory(shop: Shop) -> None:
    """The same key and meaning: the same body, a mark in the header, one effect, and a record that names it."""
    first = shop.call("charge", ARGS, key="k1")
    again = shop.call("charge", {"amount": 1200.0, "order_id": " o1", "trace_id": "new"}, key="k1")
    assert (again.status, again.body, again.headers) == (200, first.body, {"Idempotent-Replayed": "true"})
    assert shop.outcomes() == [("charge", "applied", "e1"), ("charge", "deduplicated", "e1")]


def test_key_with_other_arguments_is_refused(shop: Shop) -> None:
    """422, nothing done, and a `rejected` record under that key; the first answer is still remembered."""
    shop.call("charge", ARGS, key="k1")
    assert kind(shop.call("charge", ARGS | {"amount": 1}, key="k1")) == "key_reused"
    assert shop.call("charge", ARGS | {"amount": 1}, key="k1").status == 422
    assert shop.call("charge", ARGS, key="k1").status == 200
    assert [outcome for _, outcome, _ in shop.outcomes()] == ["applied", "rejected", "rejected", "deduplicated"]
    assert {effect.idempotency_key for effect in shop.effects()} == {"k1"}


def test_keys_of_tools_tenants_and_worlds_are_apart(shop: Shop) -> None:
    """One key collapses within one world, tenant and tool, across runs."""
    shop.call("charge", ARGS, key="k1")
    shop.call("refund", {"charge_id": "ch_1"}, key="k1")
    for fields in ({"tenant": "u"}, {"world": "x"}, {"run_id": "r2"}):
        run = shop.open(**({"run_id": "other"} | fields))
        shop.call("charge", ARGS, key="k1", run=run)
    assert [outcome for _, outcome, _ in shop.outcomes()] == ["applied", "applied"]
    assert [outcome for _, outcome, _ in shop.outcomes("other")] == ["applied", "applied"]
    assert shop.outcomes("r2") == [("charge", "deduplicated", "e1")]


def test_key_in_the_body_collapses_too(shop: Shop) -> None:
    """Where the registry reads the key from the arguments, the header counts for nothing."""
    for request_id, header in (("a", "1"), ("a", "2"), ("b", "1")):
        shop.call("reserve", {"sku": "s1", "request_id": request_id}, key=header)
    assert [outcome for _, outcome, _ in shop.outcomes()] == ["applied", "deduplicated", "applied"]
    assert [effect.idempotency_key for effect in shop.effects()] == ["a", "a", "b"]


@pytest.mark.parametrize("key", [None, ""])
def test_call_without_a_key_is_executed_each_time(shop: Shop, key: str | None) -> None:
    """As a real service does: an agent that sends no key charges twice, under two ids."""
    ids = [body(shop.call("charge", ARGS, key=key))["charge_id"] for _ in range(3)]
    assert ids == ["ch_1", "ch_1-2", "ch_1-3"]
    assert [outcome for _, outcome, _ in shop.outcomes()] == ["applied"] * 3
    assert {effect.idempotency_key for effect in shop.effects()} == {None}


def test_key_per_attempt_charges_twice(shop: Shop) -> None:
    """A fresh key is a fresh effect, and its answer is remembered with the id it was given."""
    shop.call("charge", ARGS, key="a")
    second = shop.call("charge", ARGS, key="b")
    assert body(second)["charge_id"] == "ch_1-2"
    assert shop.call("charge", ARGS, key="b").body == second.body


def test_irreversible_tool_takes_no_key(shop: Shop) -> None:
    """A service without idempotency ignores the header: two mails are two effects without a key."""
    for _ in range(2):
        shop.call("email", {"to": "a@example.org"}, key="k1")
    assert [(e.outcome, e.idempotency_key) for e in shop.effects()] == [("applied", None)] * 2


def test_natural_tool_changes_nothing_the_second_time(shop: Shop) -> None:
    """Setting what is set already is answered like a repeat; setting something else is an effect."""
    home, work = {"street": "A"}, {"street": "B"}
    answers = [shop.call("set_address", args) for args in (home, home, work)]
    assert [answer.headers for answer in answers] == [{}, {"Idempotent-Replayed": "true"}, {}]
    assert [outcome for _, outcome, _ in shop.outcomes()] == ["applied", "deduplicated", "applied"]


def test_read_leaves_no_trace(shop: Shop) -> None:
    """A tool that changes nothing is answered, also with bad arguments, without any record."""
    assert body(shop.call("stock", {"sku": "s1"})) == {"id": "stock-1", "status": "ok", "sku": "s1"}
    assert kind(shop.call("stock", {})) == "invalid_arguments"
    assert kind(shop.call("stock", ["s1"])) == "invalid_arguments"
    assert shop.outcomes() == []


@pytest.mark.parametrize("args", [{"order_id": "o1"}, {"order_id": "o1", "amount": "12"}, [], None, "x"])
def test_bad_arguments_are_refused(shop: Shop, args: Any) -> None:
    """400 with what is wrong, and a `rejected` record; the key stays free for a right call."""
    refused = shop.call("charge", args, key="k1")
    assert (refused.status, kind(refused)) == (400, "invalid_arguments")
    assert shop.call("charge", ARGS, key="k1").status == 200
    assert shop.outcomes() == [("charge", "rejected", None), ("charge", "applied", "e1")]


def test_arguments_of_the_recording_need_no_schema(tmp_path: Path) -> None:
    """What a real service took is taken, even where the registry's schema would refuse it."""
    odd = Done("charge", {"order_id": "o1", "amount": "1200"}, {"charge_id": "ch_1"})
    shop = Shop(tmp_path)
    assert shop.call("charge", odd.args, key="k", run=shop.open(recorded([[odd]]))).status == 200
    shop.ledger.close()


def test_changed_arguments_get_a_made_up_answer(shop: Shop) -> None:
    """A call that the recording lacks is executed; its result can be named by a compensation."""
    answer = body(shop.call("charge", {"order_id": "o1", "amount": 12}, key="k1"))
    assert answer == {"id": "charge-1", "status": "ok", "order_id": "o1", "amount": 12, "charge_id": "charge-1"}
    assert body(shop.call("refund", {"charge_id": "charge-1"}, key="k2"))["id"] == "refund-1"
    assert shop.effects()[1].compensates == "e1"


def test_recorded_failure_is_a_refusal(shop: Shop) -> None:
    """A recorded 4xx or 5xx is answered as it was, without effect, however often it is tried."""
    declined = Done("charge", ARGS, {"error": {"kind": "declined"}}, 402)
    run = shop.open(recorded([[declined]]))
    for _ in range(3):
        answer = shop.call("charge", ARGS, key="k1", run=run)
        assert (answer.status, body(answer)) == (402, declined.body)
    assert [outcome for _, outcome, _ in shop.outcomes()] == ["rejected"] * 3


def test_equal_calls_are_told_apart_by_their_number(shop: Shop) -> None:
    """The n-th logical call gets the n-th recorded answer, later ones the last."""
    gifts = [[CHARGE], [replace(CHARGE, body={"charge_id": "ch_2"})], [Done("charge", ARGS, {"e": 1}, 409)]]
    run = shop.open(recorded(gifts))
    answers = [shop.call("charge", ARGS, key=f"k{n}", run=run, call=str(n)) for n in (1, 2, 3, 4)]
    assert [answer.status for answer in answers] == [200, 200, 409, 409]
    assert [body(answer)["charge_id"] for answer in answers[:2]] == ["ch_1", "ch_2"]


def test_failure_that_the_recorded_agent_retried_passes_on_the_next_attempt(shop: Shop) -> None:
    """A recorded 503 with a recorded retry is met once: the second attempt of the same call succeeds."""
    trace = recorded()
    n = next(i for i, e in enumerate(trace.exchanges) if e.channel == "tool")
    busy = replace(trace.exchanges[n], response={"status": 503, "body": {"error": {"kind": "busy"}}})
    run = shop.open(replace(trace, exchanges=(*trace.exchanges[:n], busy, *trace.exchanges[n:])))
    assert [shop.call("charge", ARGS, key="k1", run=run).status for _ in range(3)] == [503, 200, 200]
    assert [outcome for _, outcome, _ in shop.outcomes()] == ["rejected", "applied", "deduplicated"]


def test_refund_names_the_charge_that_it_undoes(shop: Shop) -> None:
    """A compensating effect names the effect whose result has the id that was sent, of this tenant and world."""
    shop.call("charge", ARGS, key="a")
    shop.call("charge", ARGS, key="b")
    shop.call("refund", {"charge_id": "ch_1-2"}, key="c")
    assert [(e.tool, e.compensates) for e in shop.effects()] == [("charge", None), ("charge", None), ("refund", "e2")]
    for fields in ({"tenant": "u"}, {"world": "x"}):
        run = shop.open(run_id="other", **fields)
        assert kind(shop.call("refund", {"charge_id": "ch_1-2"}, key="d", run=run)) == "not_found"


def test_another_run_of_the_tenant_may_undo(shop: Shop) -> None:
    """Undoing is found by tenant and world, not by run."""
    shop.call("charge", ARGS, key="a")
    shop.call("refund", {"charge_id": "ch_1"}, key="b", run=shop.open(run_id="r2"))
    assert shop.effects("r2")[0].compensates == "e1"


@pytest.mark.parametrize("args", [{"charge_id": "ch_9"}, {}, {"charge_id": None}])
def test_refund_of_nothing_is_not_found(shop: Shop, args: dict[str, Any]) -> None:
    """404 and a `rejected` record, where neither an effect nor the recording knows what is meant."""
    shop.call("charge", ARGS, key="a")
    refused = shop.call("refund", args, key="b")
    assert (refused.status, kind(refused)) == (404, "not_found")
    assert shop.outcomes()[1:] == [("refund", "rejected", None)]


def test_recorded_refund_of_an_old_charge_is_an_effect_of_its_own(shop: Shop) -> None:
    """A recording may refund what was charged before it began: that is no undoing of ours."""
    old = Done("refund", {"charge_id": "ch_0"}, {"refund_id": "re_1"})
    run = shop.open(recorded([[old]]))
    assert body(shop.call("refund", old.args, key="k", run=run)) == old.body
    assert [(e.outcome, e.compensates) for e in shop.effects()] == [("applied", None)]


def test_second_refund_is_counted_or_collapsed_by_its_key(shop: Shop) -> None:
    """The same key refunds once; another key, or none, refunds again and names the same charge."""
    shop.call("charge", ARGS, key="a")
    for key in ("b", "b", "c", None):
        shop.call("refund", {"charge_id": "ch_1"}, key=key)
    assert [(e.outcome, e.compensates) for e in shop.effects()[1:]] == [
        ("applied", "e1"),
        ("deduplicated", "e1"),
        ("applied", "e1"),
        ("applied", "e1"),
    ]


def test_undo_after_its_time_is_refused(shop: Shop) -> None:
    """`until_s` is kept by the service: afterwards an undo is refused as expired."""
    hold = body(shop.call("reserve", {"sku": "s1", "request_id": "a"}))["hold"]["id"]
    refused = shop.call("release", {"hold": hold})
    assert (refused.status, kind(refused)) == (410, "expired")
    assert shop.outcomes()[1] == ("release", "rejected", None)


def test_what_the_fault_did_is_marked(shop: Shop) -> None:
    """A delivery that the fault itself makes is recorded as caused by it, whatever comes of it."""
    shop.call("charge", ARGS, key="a", caused_by="fault")
    shop.call("charge", ARGS, key="a")
    shop.call("charge", ARGS, key="a", caused_by="fault")
    assert [(e.outcome, e.caused_by) for e in shop.effects()] == [
        ("applied", "fault"),
        ("deduplicated", None),
        ("deduplicated", "fault"),
    ]


def test_twin_under_way_is_refused(shop: Shop) -> None:
    """While a call works, a second with its key gets 409 (or 422 for other arguments), and the state is in_flight."""
    run = shop.open(latency_s={"charge": 0.05})
    tool = run.registry.tools["charge"]

    async def scenario() -> tuple[Any, Any, Any, str]:
        first = asyncio.create_task(shop.acall("charge", ARGS, key="a", run=run))
        await asyncio.sleep(0.01)
        twin = await shop.acall("charge", ARGS, key="a", run=run)
        other = await shop.acall("charge", ARGS | {"amount": 1}, key="a", run=run)
        state = body(shop.service.status(run, tool, "a"))["state"]
        return await first, twin, other, state

    first, twin, other, state = asyncio.run(scenario())
    assert (first.status, twin.status, other.status, state) == (200, 409, 422, "in_flight")
    assert kind(twin) == "in_flight"
    assert (body(twin)["error"]["retryable"], twin.headers) == (True, {"Retry-After": "1"})
    assert [outcome for _, outcome, _ in shop.outcomes()] == ["rejected", "rejected", "applied"]


def test_status_tells_what_is_known_of_a_key(shop: Shop) -> None:
    """Applied with its result, else unknown; a refused call leaves nothing to be known."""
    tool = shop.run.registry.tools["charge"]
    assert body(shop.service.status(shop.run, tool, "a")) == {"state": "unknown", "result": None}
    shop.call("charge", {}, key="a")
    assert body(shop.service.status(shop.run, tool, "a"))["state"] == "unknown"
    shop.call("charge", ARGS, key="a")
    assert body(shop.service.status(shop.run, tool, "a")) == {"state": "applied", "result": CHARGE.body}


def test_run_that_is_over_has_no_more_effects(shop: Shop) -> None:
    """A call that works while its world is closed is refused and leaves nothing behind."""
    shop.run.over = True
    assert kind(shop.call("charge", ARGS, key="a")) == "run_over"
    assert shop.outcomes() == []


@pytest.mark.parametrize("spoil", [lambda s: s + "\ud800", lambda s: s * 5000])
def test_strange_keys_do_no_harm(shop: Shop, spoil: Callable[[str], str]) -> None:
    """Keys that no encoding can carry, and very long ones, collapse like others."""
    key = spoil("k")
    for _ in range(2):
        assert shop.call("reserve", {"sku": "s1", "request_id": key}).status == 200
    assert [outcome for _, outcome, _ in shop.outcomes()] == ["applied", "deduplicated"]
