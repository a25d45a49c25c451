"""The shop of the agent's tests: its tools, what undoes what, and an order."""

from __future__ import annotations

from tests.agents.fake_model import Json, Says

REGISTRY: dict[str, Json] = {
    "quote": {"idempotency": "natural", "latency": {"p99_s": 0.4}},
    "charge": {
        "idempotency": "keyed",
        "severity": "money",
        "latency": {"p99_s": 0.4},
        "compensation": {
            "tool": "refund",
            "of": {"arg": "$.charge_id", "result": "$.id"},
            "strength": "strong",
            "until_s": 600,
        },
    },
    "refund": {"idempotency": "keyed", "severity": "money", "latency": {"p99_s": 0.4}},
    "reserve": {
        "idempotency": "keyed",
        "severity": "internal",
        "latency": {"p99_s": 0.4},
        "compensation": {
            "tool": "release",
            "of": {"arg": "$.reservation_id", "result": "$.id"},
            "strength": "strong",
        },
    },
    "release": {"idempotency": "keyed", "severity": "internal", "latency": {"p99_s": 0.4}},
    "ship": {
        "idempotency": "keyed",
        "severity": "visible",
        "latency": {"p99_s": 0.4},
        "compensation": {
            "tool": "cancel_shipment",
            "of": {"arg": "$.shipment_id", "result": "$.id"},
            "strength": "weak",
        },
    },
    "cancel_shipment": {"idempotency": "keyed", "severity": "visible", "latency": {"p99_s": 0.4}},
    "email": {"idempotency": "irreversible", "severity": "visible", "latency": {"p99_s": 0.4}},
    "log": {"idempotency": "keyed", "severity": "internal", "latency": {"p99_s": 0.4}},
}

_SCHEMAS: dict[str, Json] = {
    "quote": {"properties": {"sku": {"type": "string"}}, "required": ["sku"]},
    "charge": {
        "properties": {"order": {"type": "string"}, "amount": {"type": "integer"}},
        "required": ["order", "amount"],
    },
    "refund": {"properties": {"charge_id": {"type": "string"}}, "required": ["charge_id"]},
    "reserve": {"properties": {"sku": {"type": "string"}}, "required": ["sku"]},
    "release": {"properties": {"reservation_id": {"type": "string"}}, "required": ["reservation_id"]},
    "ship": {"properties": {"order": {"type": "string"}}, "required": ["order"]},
    "cancel_shipment": {"properties": {"shipment_id": {"type": "string"}}, "required": ["shipment_id"]},
    "email": {"properties": {"to": {"type": "string"}}, "required": ["to"]},
    "log": {"properties": {"note": {"type": "string"}}},
}

TOOLS = [
    {"name": name, "description": f"{name} something", "input_schema": {"type": "object", **schema}}
    for name, schema in _SCHEMAS.items()
]

CHARGE = ("charge", {"order": "o-1", "amount": 1200})
RESERVE = ("reserve", {"sku": "sku-1"})
SHIP = ("ship", {"order": "o-1"})
EMAIL = ("email", {"to": "a@example.org"})
ORDER = [Says(calls=[CHARGE]), Says(calls=[RESERVE]), Says(calls=[SHIP]), Says(calls=[EMAIL]), Says("All done.")]

UNDOES = {
    way["tool"]: (name, way["of"]["arg"].removeprefix("$."))
    for name, tool in REGISTRY.items()
    if (way := tool.get("compensation"))
}
