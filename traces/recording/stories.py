"""The bundled stories: what a customer asks, what the model does about it, what the tools answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from traces.digest import digest
from traces.recording.cast import Person, read_cast
from traces.recording.player import Act, Story, declined

ANTHROPIC = "anthropic-messages"
OPENAI = "openai-chat"


def stories(cast: Sequence[Person] | None = None) -> tuple[Story, ...]:
    """All stories, told of these people."""
    people = tuple(cast) if cast is not None else read_cast()
    return (
        _order_small(people[0]),
        _order_large(people[1]),
        _order_gift_twins(people[2]),
        _order_declined(people[3]),
        _refund(people[4]),
        _delivery_date_change(people[5]),
        _address_change(people[6]),
        _subscription_cancel(people[7]),
        _question_read_only(people[8]),
        _fan_out(),
        _long_task(),
        _two_tenants(people[9], "a"),
        _two_tenants(people[9], "b"),
    )


def _id(prefix: str, *parts: Any) -> str:
    return f"{prefix}_{digest(list(parts))[:12]}"


def _lookup(person: Person) -> Act:
    found = {"customer_id": person.customer_id, "email": person.email, "address": person.address}
    return Act("lookup_customer", {"customer_id": person.customer_id}, found)


def _stock(sku: str, available: int) -> Act:
    return Act("check_stock", {"sku": sku}, {"sku": sku, "available": available})


def _charge(order: str, person: Person, amount: int, *, nth: int = 1, card: str | None = None) -> Act:
    arguments = {"order_id": order, "customer_id": person.customer_id, "currency": "EUR"}
    arguments |= {"card": card} if card else {}
    result = {"id": _id("ch", order, nth), "order_id": order, "amount": amount, "status": "captured"}
    # The amount stands last: a text cut inside it looks like a whole call for less money.
    return Act("charge", {**arguments, "amount": amount}, result)


def _reserve(order: str, sku: str, quantity: int) -> Act:
    result = {"reservation_id": _id("rsv", order, sku), "sku": sku, "quantity": quantity}
    return Act("reserve_stock", {"order_id": order, "sku": sku, "quantity": quantity}, result)


def _ship(order: str, person: Person, grams: int, *, parcels: int = 1, nth: int = 1) -> Act:
    arguments = {"order_id": order, "address": person.address, "parcels": parcels, "weight_grams": grams}
    result = {"shipment_id": _id("shp", order, nth), "carrier": "Paketpost", "arrives": "2026-12-04"}
    return Act("create_shipment", arguments, result)


def _mail(order: str, person: Person, template: str) -> Act:
    arguments = {"to": person.email, "template": template, "order_id": order}
    return Act("send_email", arguments, {"message_id": _id("mail", order, template), "accepted": True})


def _show(order: str, person: Person, amount: int, **more: Any) -> Act:
    found = {
        "order_id": order,
        "customer_id": person.customer_id,
        "email": person.email,
        "charge_id": _id("ch", order, 1),
        "amount": amount,
        "currency": "EUR",
    }
    return Act("get_order", {"order_id": order}, found | more)


def _order_small(person: Person) -> Story:
    order = "ord-20417"
    return Story(
        name="order-small",
        api=ANTHROPIC,
        stream=True,
        task_type="order",
        about="one order: charge, reserve, ship, e-mail, one after the other, streamed",
        request=f"Please place order {order} for customer {person.customer_id}: one espresso machine (sku "
        "esp-310, 1299.00 EUR, 11400 g). Charge it, reserve it, ship it and confirm by e-mail.",
        turns=(
            ("I'll look the customer up first.", (_lookup(person),)),
            ("", (_charge(order, person, 129900),)),
            ("", (_reserve(order, "esp-310", 1),)),
            ("Paid and reserved. Now the parcel.", (_ship(order, person, 11400),)),
            ("", (_mail(order, person, "order-confirmation"),)),
        ),
        closing=f"Order {order} is paid (1299.00 EUR), reserved and on its way; {person.first_name} has got a "
        "confirmation.",
    )


def _order_large(person: Person) -> Story:
    order = "ord-20460"
    items = (("dsk-120", 2, 48000), ("chr-045", 12, 15900), ("lmp-007", 12, 3450))
    total = sum(quantity * price for _, quantity, price in items)
    return Story(
        name="order-large",
        api=OPENAI,
        stream=True,
        task_type="order",
        about="several articles: stock read side by side, reservations written side by side, streamed",
        request=f"Order {order} for customer {person.customer_id}: 2 desks (dsk-120, 480.00 EUR each), 12 chairs "
        "(chr-045, 159.00 EUR each), 12 lamps (lmp-007, 34.50 EUR each). Check that all is in stock, charge the sum, "
        "reserve everything, ship it in 5 parcels (184000 g) and confirm by e-mail.",
        turns=(
            ("", (_lookup(person), *(_stock(sku, quantity + 30) for sku, quantity, _ in items))),
            ("Everything is in stock.", (_charge(order, person, total),)),
            ("", tuple(_reserve(order, sku, quantity) for sku, quantity, _ in items)),
            ("", (_ship(order, person, 184000, parcels=5),)),
            ("", (_mail(order, person, "order-confirmation"),)),
        ),
        closing=f"Order {order} is complete: {total / 100:.2f} EUR charged, 26 pieces reserved, 5 parcels sent.",
    )


def _order_gift_twins(person: Person) -> Story:
    order = "ord-20533"
    return Story(
        name="order-gift-twins",
        api=OPENAI,
        stream=False,
        task_type="order",
        about="two equal gifts: the same charge and the same parcel twice, on purpose",
        request=f"Customer {person.customer_id} wants two gift boxes under order {order}, both to the same address, "
        "as two separate gifts: charge 4990 cents twice and send two equal parcels (1250 g each). Then confirm.",
        turns=(
            ("", (_lookup(person),)),
            ("Two gifts, so two payments.", tuple(_charge(order, person, 4990, nth=n) for n in (1, 2))),
            ("And two parcels.", tuple(_ship(order, person, 1250, nth=n) for n in (1, 2))),
            ("", (_mail(order, person, "gift-confirmation"),)),
        ),
        closing="Both gifts are paid (2 x 49.90 EUR) and on their way as two parcels.",
    )


def _order_declined(person: Person) -> Story:
    order = "ord-20588"
    refused = _charge(order, person, 25900, card="card-main")
    return Story(
        name="order-declined",
        api=OPENAI,
        stream=False,
        task_type="order",
        about="a recorded failing write: the first card is declined, the second pays",
        request=f"Place order {order} for customer {person.customer_id}: one trekking tent (tnt-220, 259.00 EUR, "
        "4300 g). Pay with card-main; if that is declined, with card-spare. Reserve, ship, confirm by e-mail.",
        turns=(
            ("", (_lookup(person),)),
            (
                "",
                (Act("charge", refused.arguments, declined("card_declined", "the issuer declined card-main"), 402),),
            ),
            (
                "The first card was declined; I use the other one.",
                (_charge(order, person, 25900, card="card-spare"),),
            ),
            ("", (_reserve(order, "tnt-220", 1),)),
            ("", (_ship(order, person, 4300),)),
            ("", (_mail(order, person, "order-confirmation"),)),
        ),
        closing="card-main was declined, card-spare has paid 259.00 EUR. The tent is reserved and on its way.",
    )


def _refund(person: Person) -> Story:
    order = "ord-19872"
    charge = _id("ch", order, 1)
    give_back = Act(
        "refund",
        {"charge_id": charge, "reason": "arrived broken", "amount": 18450},
        {"id": _id("re", charge), "charge_id": charge, "amount": 18450, "status": "succeeded"},
    )
    return Story(
        name="refund",
        api=ANTHROPIC,
        stream=False,
        task_type="refund",
        about="a payment is given back and the customer told",
        request=f"The blender of order {order} arrived broken. Give the full amount back and tell the customer.",
        turns=(
            ("Let me see the order.", (_show(order, person, 18450, status="delivered"),)),
            ("", (give_back,)),
            ("", (_mail(order, person, "refund-issued"),)),
        ),
        closing=f"184.50 EUR went back to {person.first_name}, who has been told by e-mail.",
    )


def _delivery_date_change(person: Person) -> Story:
    order = "ord-20301"
    move = Act(
        "update_delivery_date",
        {"order_id": order, "delivery_date": "2026-12-18"},
        {"change_id": _id("chg", order), "before": "2026-12-11", "delivery_date": "2026-12-18"},
    )
    return Story(
        name="delivery-date-change",
        api=OPENAI,
        stream=True,
        task_type="delivery",
        about="a delivery is moved and the customer told, streamed",
        request=f"Move the delivery of order {order} to 18 December 2026 and let the customer know.",
        turns=(
            ("", (_show(order, person, 74900, status="packed", delivery_date="2026-12-11"),)),
            ("It is not on its way yet, so it can be moved.", (move,)),
            ("", (_mail(order, person, "delivery-moved"),)),
        ),
        closing=f"Order {order} now comes on 18 December instead of 11 December; the customer knows.",
    )


def _address_change(person: Person) -> Story:
    street, city, postcode = "48 Harbour Walk", person.city, person.postcode
    change = Act(
        "update_address",
        {"customer_id": person.customer_id, "street": street, "city": city, "postcode": postcode},
        {"change_id": _id("chg", person.customer_id), "street": street, "city": city, "postcode": postcode},
    )
    return Story(
        name="address-change",
        api=ANTHROPIC,
        stream=False,
        task_type="account",
        about="a postal address is changed and confirmed",
        request=f"Customer {person.customer_id} has moved within town, to {street}. Change the address and confirm "
        "it by e-mail (reference acc-7741).",
        turns=(
            ("", (_lookup(person),)),
            ("", (change,)),
            ("", (_mail("acc-7741", person, "address-changed"),)),
        ),
        closing=f"The address of {person.name} is now {street}, {city}.",
    )


def _subscription_cancel(person: Person) -> Story:
    subscription = "sub-6120"
    charge = _id("ch", subscription, 1)
    shown = {
        "subscription_id": subscription,
        "plan": "coffee-monthly",
        "email": person.email,
        "charge_id": charge,
        "price": 23900,
        "paid_until": "2027-06-30",
    }
    end = Act(
        "cancel_subscription",
        {"subscription_id": subscription, "ends_on": "2026-12-31"},
        {"cancellation_id": _id("can", subscription), "ends_on": "2026-12-31", "credit": 11950},
    )
    give_back = Act(
        "refund",
        {"charge_id": charge, "reason": "unused months", "amount": 11950},
        {"id": _id("re", charge), "charge_id": charge, "amount": 11950, "status": "succeeded"},
    )
    return Story(
        name="subscription-cancel",
        api=OPENAI,
        stream=True,
        task_type="subscription",
        about="a subscription is ended and the unused part given back, streamed",
        request=f"End subscription {subscription} on 31 December 2026, give back what is paid for later months and "
        "confirm by e-mail.",
        turns=(
            ("", (Act("get_subscription", {"subscription_id": subscription}, shown),)),
            ("", (end,)),
            ("Six unused months are 119.50 EUR.", (give_back,)),
            ("", (_mail(subscription, person, "subscription-ended"),)),
        ),
        closing=f"Subscription {subscription} ends on 31 December; 119.50 EUR go back to {person.first_name}.",
    )


def _question_read_only(person: Person) -> Story:
    order = "ord-20244"
    return Story(
        name="question-read-only",
        api=ANTHROPIC,
        stream=False,
        task_type="question",
        about="a question that is answered by reading; nothing may change",
        request=f"When does order {order} arrive, and could I still get two more of the shelves (shl-031)?",
        turns=(
            (
                "",
                (_show(order, person, 31200, status="shipped", delivery_date="2026-12-03"), _stock("shl-031", 14)),
            ),
        ),
        closing=f"Order {order} arrives on 3 December. 14 shelves are in stock, so two more are no problem.",
        offered=("charge", "reserve_stock", "send_email"),
    )


def _fan_out() -> Story:
    order, sku, quantity = "ord-20610", "cbl-900", 250
    suppliers = [f"sup-{n:03d}" for n in range(1, 37)]
    prices = {supplier: 1180 + (n * 37) % 211 for n, supplier in enumerate(suppliers)}
    best = min(suppliers, key=lambda supplier: prices[supplier])
    quotes = tuple(
        Act(
            "quote_price",
            {"supplier_id": supplier, "sku": sku, "quantity": quantity},
            {"supplier_id": supplier, "price": prices[supplier], "currency": "EUR", "valid_days": 7},
        )
        for supplier in suppliers
    )
    return Story(
        name="fan-out",
        api=ANTHROPIC,
        stream=True,
        task_type="purchasing",
        about="36 suppliers asked in one turn, then one reservation, streamed",
        request=f"Ask suppliers {suppliers[0]} to {suppliers[-1]} for the price of {quantity} {sku}, then reserve "
        f"{quantity} pieces from our own stock for order {order} and name the cheapest supplier.",
        turns=(
            ("I ask all 36 suppliers at once.", quotes),
            (f"{best} is the cheapest.", (_reserve(order, sku, quantity),)),
        ),
        closing=f"{best} asks {prices[best]} cents a piece, the least of 36. {quantity} pieces are reserved.",
        limits={"max_concurrency": 8},
    )


def _long_task() -> Story:
    job = _id("job", "revenue", "2026-11")
    begin = Act("start_export", {"report": "revenue", "month": "2026-11"}, {"job_id": job, "state": "queued"})
    steps: tuple[dict[str, Any], ...] = (
        {"job_id": job, "state": "running", "percent": 15},
        {"job_id": job, "state": "running", "percent": 70},
        {"job_id": job, "state": "done", "percent": 100},
    )
    fetched = {"job_id": job, "rows": 4812, "total_cents": 918245500, "file": "revenue-2026-11.csv"}
    return Story(
        name="long-task",
        api=OPENAI,
        stream=False,
        task_type="reporting",
        about="a long job: started, asked for until it is done, fetched",
        request="Write the revenue report of November 2026, wait until it is ready and tell me the total.",
        turns=(
            ("", (begin,)),
            *(("", (Act("get_export", {"job_id": job}, step),)) for step in steps),
            ("It is ready.", (Act("fetch_export", {"job_id": job}, fetched),)),
        ),
        closing="November 2026: 4812 rows, 9182455.00 EUR in total (revenue-2026-11.csv).",
    )


def _two_tenants(person: Person, tenant: str) -> Story:
    order = "ord-10001"
    return Story(
        name=f"two-tenants-{tenant}",
        api=ANTHROPIC,
        stream=True,
        task_type="order",
        tenant=tenant,
        about="the same order number, customer and amount at two tenants: four effects, none of them a duplicate",
        request=f"Charge order {order} of customer {person.customer_id} with 7500 cents and reserve 3 pieces of "
        "mug-012.",
        turns=(
            ("", (_charge(order, person, 7500, nth=1 if tenant == "a" else 2),)),
            ("", (_reserve(order, "mug-012", 3),)),
        ),
        closing=f"Order {order} is charged (75.00 EUR) and three mugs are reserved.",
    )
