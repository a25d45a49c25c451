"""What counts as a secret, and what does not."""

from __future__ import annotations

import pytest

from traces.secrets import find_secrets, passes_luhn, replace_in, replace_in_headers, replace_in_text
from traces.trace import Trace


def kinds(text: str) -> list[tuple[str, str]]:
    """The secrets in a text."""
    found: list[tuple[str, str]] = []

    def note(kind: str, secret: str) -> str:
        found.append((kind, secret))
        return secret

    assert replace_in_text(text, note) == text
    return found


@pytest.mark.parametrize(
    ("text", "kind", "secret"),
    [
        ("write to mia.li@gmail.com.", "email", "mia.li@gmail.com"),
        ("MIA+shop@mail.shop.co.uk", "email", "MIA+shop@mail.shop.co.uk"),
        ("call +49 30 901820 today", "phone", "+49 30 901820"),
        ("(415) 867-5309", "phone", "(415) 867-5309"),
        ("415-867-5309", "phone", "415-867-5309"),
        ("card 4111 1111 1111 1111", "card", "4111 1111 1111 1111"),
        ("378282246310005", "card", "378282246310005"),
        ("sk-ant-api03-abcdefghijklmnop", "key", "sk-ant-api03-abcdefghijklmnop"),
        ("AKIAIOSFODNN7EXAMPLE", "key", "AKIAIOSFODNN7EXAMPLE"),
        ("Authorization: Bearer abc123def456", "key", "abc123def456"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK", "key", "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK"),
        ("https://shop.test/x?page=2&api_key=s3cr3t#top", "query", "s3cr3t"),
        ("postgres://anna:hunter22@db.test/x", "query", "hunter22"),
    ],
)
def test_secrets_are_found(text: str, kind: str, secret: str) -> None:
    """Keys, tokens, addresses, phone and card numbers are found within texts."""
    assert kinds(text) == [(kind, secret)]


@pytest.mark.parametrize(
    "text",
    [
        "credit_card_4421486",
        "gift_card_3481935 #W2378156 HATHAT",
        "item 4202497723, tracking 689944590938",
        "2024-05-15T15:00:00 1760000000000 0.1234567890123",
        "4111111111111112",
        "anna@example.com bob@shop.example.org eve@shop.test",
        "+1-212-555-0123 (415) 555-0199",
        "max_tokens=2048&page=key",
        "call_oIHazX6yQrB8hUwl4cRilFKj toolu_019P95AL5DFCUyhtgQDcWJ3x",
        "550e8400-e29b-41d4-a716-446655440000",
        "(152 + 103) * 2 - 305",
        "3f786850e387550fdab836ed7e6dc881de23001b",
    ],
)
def test_business_data_is_left_alone(text: str) -> None:
    """Identifiers, dates, sums, digests and what is reserved for examples are no secrets."""
    assert kinds(text) == []


def test_nested_json_and_fields() -> None:
    """Secrets are found in fields that name them, in texts that are JSON, and in numbers."""
    found: list[tuple[str, str]] = []

    def note(kind: str, secret: str) -> str:
        found.append((kind, secret))
        return secret

    value = {
        "arguments": '{"password": "hunter2", "to": "mia@gmail.com"}',
        "API-Key": "x",
        "card": 4111111111111111,
        "max_tokens": 5,
    }
    assert replace_in(value, note) == value
    assert set(found) == {
        ("field", "hunter2"),
        ("email", "mia@gmail.com"),
        ("field", "x"),
        ("card", "4111111111111111"),
    }


def test_headers() -> None:
    """Headers that carry credentials are secret as a whole; business headers stay."""
    found: list[str] = []

    def note(kind: str, secret: str) -> str:
        found.append(kind)
        return "gone"

    headers = {"Authorization": "Bearer abc", "Cookie": "a=b", "Idempotency-Key": "k-1", "X-Step": "3"}
    assert replace_in_headers(headers, note) == {
        "Authorization": "gone",
        "Cookie": "gone",
        "Idempotency-Key": "k-1",
        "X-Step": "3",
    }
    assert found == ["header", "header"]


def test_places_are_told_and_secrets_not() -> None:
    """A find says where it is and what kind it is, and its sentence does not repeat it."""
    trace = Trace(name="x", request="mail mia@gmail.com", exchanges=())
    [secret] = find_secrets(trace)
    assert str(secret) == "the header holds an e-mail address"


def test_luhn() -> None:
    """The check digit rule, on a documented number and its neighbour."""
    assert passes_luhn("4242424242424242")
    assert not passes_luhn("4242424242424241")
