"""The shop's tools: what they take, what they change and how that is undone. `tools.yaml` is written from this."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 1}
_CENTS = {"type": "integer", "minimum": 1, "description": "in cents"}
_DAY = {"type": "string", "format": "date"}
_ADDRESS = {
    "type": "object",
    "required": ["name", "street", "city", "postcode"],
    "properties": {"name": _TEXT, "street": _TEXT, "city": _TEXT, "postcode": _TEXT},
}
_READ = {"p50_s": 0.04, "p95_s": 0.12, "p99_s": 0.25, "samples": 12000}
_WRITE = {"p50_s": 0.08, "p95_s": 0.2, "p99_s": 0.3, "samples": 6000}
_NOISE = {"drop": ["trace_id", "request_id", "ts"], "trim": True}


def _tool(
    description: str,
    args: dict[str, Any],
    *,
    group: str,
    owner: str,
    optional: dict[str, Any] | None = None,
    from_results: list[str] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """One entry, with what all tools of the shop have in common."""
    schema: dict[str, Any] = {"type": "object", "required": list(args), "properties": args | (optional or {})}
    if not args:
        del schema["required"]
    if from_results:
        schema["from_results"] = from_results
    entry: dict[str, Any] = {"description": description, "version": 1, "args": schema, "environment": "stand-in"}
    natural = fields.get("idempotency") == "natural"
    entry |= {"severity": "none"} if natural else {}
    entry |= {"normalise": _NOISE, "latency": _READ if natural else _WRITE, "resource_group": group, "owner": owner}
    return entry | fields


def _read(description: str, args: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return _tool(description, args, idempotency="natural", **fields)


def _write(description: str, args: dict[str, Any], *, severity: str, **fields: Any) -> dict[str, Any]:
    keyed = {"idempotency": "keyed", "key": {"header": "Idempotency-Key"}, "severity": severity}
    return _tool(description, args, **(keyed | fields))


def _undo(tool: str, arg: str, result: str, *, strength: str = "strong", until_s: int = 3600) -> dict[str, Any]:
    of = {"arg": f"$.{arg}", "result": f"$.{result}"}
    return {"tool": tool, "of": of, "strength": strength, "until_s": until_s, "on_failure": "handoff"}


TOOLS: dict[str, dict[str, Any]] = {
    "lookup_customer": _read(
        "Finds a customer: name, e-mail and address.",
        {"customer_id": _TEXT},
        group="customers",
        owner="crm-team",
    ),
    "get_order": _read(
        "Shows an order: items, payment, delivery date.", {"order_id": _TEXT}, group="orders", owner="orders-team"
    ),
    "check_stock": _read(
        "Says how many pieces of an article are in stock.", {"sku": _TEXT}, group="warehouse", owner="warehouse-team"
    ),
    "charge": _write(
        "Charges a customer for an order.",
        {"order_id": _TEXT, "customer_id": _TEXT, "currency": _TEXT, "amount": _CENTS},
        optional={"card": _TEXT},
        severity="money",
        version=3,
        intent={"json": ["$.order_id", "$.customer_id", "$.amount"]},
        normalise={**_NOISE, "casefold": ["currency"]},
        compensation=_undo("refund", "charge_id", "id", until_s=86400),
        group="payments",
        owner="payments-oncall",
    ),
    "refund": _write(
        "Gives a charge back, in whole or in part.",
        {"charge_id": _TEXT},
        optional={"amount": _CENTS, "reason": _TEXT},
        severity="money",
        version=2,
        from_results=["charge_id"],
        intent={"json": ["$.charge_id", "$.amount"]},
        group="payments",
        owner="payments-oncall",
    ),
    "reserve_stock": _write(
        "Sets pieces of an article aside for an order.",
        {"order_id": _TEXT, "sku": _TEXT, "quantity": _COUNT},
        severity="internal",
        compensation=_undo("release_stock", "reservation_id", "reservation_id"),
        group="warehouse",
        owner="warehouse-team",
    ),
    "release_stock": _write(
        "Gives reserved pieces free again.",
        {"reservation_id": _TEXT},
        severity="internal",
        from_results=["reservation_id"],
        group="warehouse",
        owner="warehouse-team",
    ),
    "create_shipment": _write(
        "Hands a parcel to the carrier.",
        {"order_id": _TEXT, "address": _ADDRESS, "parcels": _COUNT, "weight_grams": _COUNT},
        severity="visible",
        compensation=_undo("cancel_shipment", "shipment_id", "shipment_id", strength="weak", until_s=1800),
        group="shipping",
        owner="logistics-team",
    ),
    "cancel_shipment": _write(
        "Calls a parcel back, as long as the carrier has not taken it.",
        {"shipment_id": _TEXT},
        severity="visible",
        from_results=["shipment_id"],
        group="shipping",
        owner="logistics-team",
    ),
    "send_email": _tool(
        "Sends a customer an e-mail. It cannot be called back: send it last.",
        {"to": _TEXT, "template": _TEXT, "order_id": _TEXT},
        idempotency="irreversible",
        avoid=True,
        severity="visible",
        compensation={"strength": "none", "on_failure": "handoff"},
        self_repair=0,
        latency=_WRITE,
        group="mail",
        owner="crm-team",
    ),
    "update_delivery_date": _write(
        "Moves the delivery of an order to another day.",
        {"order_id": _TEXT, "delivery_date": _DAY},
        severity="visible",
        compensation=_undo("restore_delivery_date", "change_id", "change_id"),
        group="orders",
        owner="orders-team",
    ),
    "restore_delivery_date": _write(
        "Takes a change of the delivery date back.",
        {"change_id": _TEXT},
        severity="visible",
        from_results=["change_id"],
        group="orders",
        owner="orders-team",
    ),
    "update_address": _write(
        "Changes the postal address of a customer.",
        {"customer_id": _TEXT, "street": _TEXT, "city": _TEXT, "postcode": _TEXT},
        severity="internal",
        normalise={**_NOISE, "casefold": ["street", "city"]},
        compensation=_undo("revert_address", "change_id", "change_id", until_s=604800),
        group="customers",
        owner="crm-team",
    ),
    "revert_address": _write(
        "Takes a change of address back.",
        {"change_id": _TEXT},
        severity="internal",
        from_results=["change_id"],
        group="customers",
        owner="crm-team",
    ),
    "get_subscription": _read(
        "Shows a subscription: plan, price, paid until.",
        {"subscription_id": _TEXT},
        group="subscriptions",
        owner="billing-team",
    ),
    "cancel_subscription": _write(
        "Ends a subscription on a day.",
        {"subscription_id": _TEXT, "ends_on": _DAY},
        severity="money",
        compensation=_undo("reinstate_subscription", "cancellation_id", "cancellation_id", until_s=604800),
        confirm=False,
        group="subscriptions",
        owner="billing-team",
    ),
    "reinstate_subscription": _write(
        "Lets a cancelled subscription go on.",
        {"cancellation_id": _TEXT},
        severity="money",
        from_results=["cancellation_id"],
        group="subscriptions",
        owner="billing-team",
    ),
    "quote_price": _read(
        "Asks one supplier for the price of an article.",
        {"supplier_id": _TEXT, "sku": _TEXT, "quantity": _COUNT},
        group="suppliers",
        owner="purchasing-team",
    ),
    "start_export": _write(
        "Begins to write a report; it is ready some time later.",
        {"report": _TEXT, "month": _TEXT},
        severity="internal",
        compensation=_undo("cancel_export", "job_id", "job_id"),
        group="reports",
        owner="data-team",
    ),
    "cancel_export": _write(
        "Stops a report and deletes what is written of it.",
        {"job_id": _TEXT},
        severity="internal",
        from_results=["job_id"],
        group="reports",
        owner="data-team",
    ),
    "get_export": _read("Says how far a report is.", {"job_id": _TEXT}, group="reports", owner="data-team"),
    "fetch_export": _read("Fetches a finished report.", {"job_id": _TEXT}, group="reports", owner="data-team"),
}


def declared(names: list[str]) -> tuple[dict[str, Any], ...]:
    """The tools as a model gets them: name, description, JSON Schema."""
    return tuple(
        {
            "name": name,
            "description": TOOLS[name]["description"],
            "input_schema": {k: v for k, v in TOOLS[name]["args"].items() if k != "from_results"},
        }
        for name in names
    )
