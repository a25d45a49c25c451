"""The mask: nothing secret is left, and what a run needs is."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.traces.strategies import searched, texts
from traces.mask import Mask, find_secrets, mask_trace
from traces.providers import anthropic_messages
from traces.providers.sse import events
from traces.providers.turn import Turn, tool_call
from traces.secrets import passes_luhn, replace_in_text
from traces.trace import Exchange, Trace, dump_trace

KEY = b"a key of the tests"
EMAIL = "mia.li@gmail.com"


def tool(arguments: dict[str, Any], headers: dict[str, Any] | None = None) -> Exchange:
    """A tool exchange."""
    request = {"tool": "note", "arguments": arguments, "headers": headers or {}}
    response = {"status": 200, "body": {"echo": json.dumps(arguments)}}
    return Exchange(channel="tool", n=1, t_start=0, t_end=1, request=request, response=response)


def streamed(turn: Turn) -> Exchange:
    """A streamed model exchange."""
    body = b"".join(anthropic_messages.write_stream(turn, "claude-sonnet-4-5", "msg_1"))
    heard = [{"t": n / 10, "event": event.name, "data": event.json()} for n, event in enumerate(events(body))]
    request = {"model": "claude-sonnet-4-5", "messages": []}
    response = {"status": 200, "events": heard}
    return Exchange(
        channel="model", n=1, api=anthropic_messages.api, t_start=0, t_end=9, request=request, response=response
    )


def trace(*exchanges: Exchange, request: str = "do it") -> Trace:
    """A trace of these exchanges."""
    return Trace(name="t", request=request, exchanges=exchanges)


secrets = st.sampled_from(
    [
        EMAIL,
        "Bearer abcdef123456",
        "sk-ant-api03-abcdefghijklmnop",
        "4111 1111 1111 1111",
        "+49 30 9018 2044",
        "https://shop.test/?token=abcdef",
    ]
)


@searched
@given(before=texts, secret=secrets, after=texts)
def test_nothing_is_found_after_masking(before: str, secret: str, after: str) -> None:
    """Whatever stands around a secret, a masked trace passes the search, and masking it again changes nothing."""
    text = f"{before} {secret} {after}"
    masked = mask_trace(trace(tool({"text": text, "nested": json.dumps({"x": [text]})}), request=text), key=KEY)
    assert masked.masked
    assert find_secrets(masked) == []
    assert mask_trace(masked, key=b"another") == masked


def test_same_secret_same_pseudonym() -> None:
    """One address has one pseudonym, in request, arguments and nested JSON, in any case; two addresses have two."""
    masked = mask_trace(
        trace(tool({"to": EMAIL, "cc": EMAIL.upper(), "bcc": "ana@gmail.com"}), request=f"mail {EMAIL}"), key=KEY
    )
    arguments = masked.tool_exchanges[0].arguments
    assert arguments["to"] == arguments["cc"] == masked.request.removeprefix("mail ")
    assert arguments["to"] != arguments["bcc"]
    assert json.loads(masked.tool_exchanges[0].body["echo"]) == arguments
    assert re.fullmatch(r"[a-z0-9.]+@example\.com", arguments["to"])


def test_key_decides() -> None:
    """The same key gives the same pseudonyms in another process; another key gives others."""
    assert Mask(KEY)("email", EMAIL) == Mask(KEY)("email", EMAIL)
    assert Mask(KEY)("email", EMAIL) != Mask(b"other")("email", EMAIL)
    assert Mask()("email", EMAIL) == Mask()("email", EMAIL)


def test_shapes_survive() -> None:
    """A masked card number keeps its layout and is no card number; a phone number is one of the fictional."""
    card = replace_in_text("pay 4111-1111-1111-1111.", Mask(KEY))
    assert re.fullmatch(r"pay \d{4}-\d{4}-\d{4}-\d{4}\.", card)
    assert not passes_luhn(re.sub(r"\D", "", card))
    assert re.fullmatch(r"\+1-[2-9]\d\d-555-01\d\d", Mask(KEY)("phone", "+49 30 901820"))
    number = mask_trace(trace(tool({"card": 4111111111111111})), key=KEY).tool_exchanges[0].arguments["card"]
    assert isinstance(number, int)
    assert not passes_luhn(str(number))


def test_headers_and_business_ids() -> None:
    """Credentials in headers go, keys of idempotency and business ids stay."""
    headers = {"Authorization": "Bearer abc", "Idempotency-Key": "ord-1:charge"}
    masked = mask_trace(trace(tool({"payment": "credit_card_4421486"}, headers)), key=KEY).exchanges[0]
    assert masked.request["headers"]["Authorization"].startswith("masked-")
    assert masked.request["headers"]["Idempotency-Key"] == "ord-1:charge"
    assert masked.arguments == {"payment": "credit_card_4421486"}


def test_secret_in_pieces_of_a_stream() -> None:
    """A secret that a stream brings in pieces, none of which looks like one, is found and masked."""
    turn = Turn(
        text=f"I write to {EMAIL} now.",
        tool_calls=(tool_call("toolu_1", "send_email", {"to": EMAIL, "amount": 1200}),),
        stop_reason="tool_use",
        output_tokens=7,
    )
    exchange = streamed(turn)
    assert EMAIL not in dump_trace(trace(exchange)).replace('"', "")
    assert {secret.kind for secret in find_secrets(trace(exchange))} == {"email"}
    masked = mask_trace(trace(exchange), key=KEY)
    assert find_secrets(masked) == []
    said = masked.model_exchanges[0].turn()
    assert said.tool_calls[0].arguments["to"] == Mask(KEY)("email", EMAIL)
    assert said.tool_calls[0].arguments["amount"] == 1200
    assert replace(said, text="", tool_calls=()) == replace(turn, text="", tool_calls=())
    times = [event["t"] for event in masked.exchanges[0].response["events"]]
    assert times == sorted(times)
    assert (times[0], times[-1]) == (0.0, exchange.response["events"][-1]["t"])


def test_clean_trace_stays_as_it_is() -> None:
    """Where there is nothing to mask, only the mark is set."""
    clean = trace(streamed(Turn("All done.")), tool({"a": ["b", 1, None, {"c": '{"d": "e"}'}]}))
    assert mask_trace(clean, key=KEY) == replace(clean, masked=True)
