"""The tools registry: what is read, and how tools are found."""

from __future__ import annotations

from typing import Any

from traces.registry import Registry
from traces.registry_reading import registry_from

CHARGE: dict[str, Any] = {
    "version": 3,
    "match": {"method": "POST", "path": "/tools/charge"},
    "args": {"type": "object", "from_results": ["order_id"]},
    "environment": "stand-in",
    "idempotency": "keyed",
    "key": {"header": "Idempotency-Key"},
    "intent": {"json": ["$.order_id", "$.amount"]},
    "normalise": {"drop": ["trace_id", "ts"], "trim": True, "casefold": ["currency"]},
    "compensation": {
        "tool": "refund",
        "of": {"arg": "$.charge_id", "result": "$.id"},
        "strength": "strong",
        "until_s": 600,
        "on_failure": "handoff",
    },
    "self_repair": 1,
    "confirm": False,
    "latency": {"p50_s": 0.2, "p95_s": 0.6, "p99_s": 1.2, "samples": 4000},
    "resource_group": "payments",
    "severity": "money",
    "owner": "payments-oncall",
}


def shop(**tools: Any) -> Registry:
    """A registry with charge, its undo, and these tools."""
    return registry_from({"charge": CHARGE, "refund": {"idempotency": "keyed", "severity": "money"}, **tools})


def test_every_field_is_read() -> None:
    """The example of the format is read field by field."""
    tool = shop().tools["charge"]
    assert (tool.version, tool.self_repair, tool.confirm, tool.avoid) == (3, 1, False, False)
    assert (tool.environment, tool.resource_group, tool.severity, tool.owner) == (
        "stand-in",
        "payments",
        "money",
        "payments-oncall",
    )
    assert tool.from_results == ("order_id",)
    assert tool.args == {"type": "object"}
    undo = tool.compensation
    assert undo is not None
    assert (undo.tool, undo.strength, undo.until_s, undo.on_failure) == ("refund", "strong", 600, "handoff")
    assert undo.of_arg is not None
    assert undo.of_result is not None
    assert (undo.of_arg.field, undo.of_result.field) == ("charge_id", "id")
    assert tool.latency is not None
    assert tool.latency.samples == 4000
    assert (tool.effectful, tool.strikeable) == (True, True)


def test_defaults() -> None:
    """What is left out has the format's defaults: natural tools read, others write; keyed ones carry a key header."""
    tools = shop(look={"idempotency": "natural"}, note={"idempotency": "keyed", "avoid": True}).tools
    look, note = tools["look"], tools["note"]
    assert (look.effectful, look.key, look.normalise.auto, look.strikeable) == (False, None, True, False)
    assert (note.severity, note.match.path, note.match.method) == ("internal", "/tools/note", "POST")
    assert note.key_of({}, {"idempotency-key": "k"}) == "k"


def test_digests_follow_the_rules() -> None:
    """Dropped fields, case and blanks do not change a digest, nor other fields that of the intent."""
    tool = shop().tools["charge"]
    one = {"order_id": "o-1", "amount": 5, "currency": "EUR", "ts": 1}
    two = {"order_id": "o-1 ", "amount": 5.0, "currency": "eur", "ts": 2}
    assert tool.args_digest(one) == tool.args_digest(two)
    assert tool.intent_digest({**one, "card": "a"}) == tool.intent_digest({**two, "card": "b"})
    assert tool.args_digest({**one, "card": "a"}) != tool.args_digest({**one, "card": "b"})


def test_key_in_the_arguments_is_no_part_of_their_meaning() -> None:
    """A key that travels in the body is read there, and a fresh one does not make another action of a call."""
    keyed = {"idempotency": "keyed", "key": {"json": "$.meta.request_id"}, "avoid": True}
    tool = shop(note=keyed).tools["note"]
    first, second = ({"text": "x", "meta": {"request_id": each}} for each in ("k-1", "k-2"))
    assert (tool.key_of(first, {}), tool.key_of({"text": "x"}, {})) == ("k-1", None)
    assert tool.args_digest(first) == tool.args_digest(second)


def test_tools_are_found_on_the_wire() -> None:
    """A request finds its tool by method and path, behind a prefix and before a query; MCP tools by name."""
    registry = shop(
        note={"idempotency": "keyed", "avoid": True, "match": {"mcp": "notes.add"}},
        status={"idempotency": "natural", "match": {"method": "GET", "path": "/tools/charge/status"}},
    )
    charge, status = registry.at("post", "/run-1/tools/charge?x=1"), registry.at("GET", "/tools/charge/status")
    assert charge is not None
    assert status is not None
    assert (charge.name, status.name) == ("charge", "status")
    assert registry.at("GET", "/tools/charge") is None
    assert registry.at("POST", "/tools/surcharge") is None
    note = registry.mcp("notes.add")
    assert note is not None
    assert note.name == "note"
    assert [tool.name for tool in registry.undoing("refund")] == ["charge"]
