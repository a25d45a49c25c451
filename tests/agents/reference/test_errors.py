"""What an answer, or its absence, means."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.reference.errors import Failure, from_loss, from_reply, unreadable
from agents.reference.transport import Loss, Reply


def reply(status: int, error: dict[str, Any] | None = None, **headers: str) -> Reply:
    """An error answer."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, names, json.dumps({"error": error or {}}).encode())


@pytest.mark.parametrize(
    ("status", "retryable", "may_stand", "rejected"),
    [
        (400, False, False, True),
        (401, False, False, True),
        (404, False, False, True),
        (408, True, True, False),
        (409, False, True, False),
        (422, False, False, True),
        (429, True, False, False),
        (500, True, True, False),
        (501, False, False, False),
        (502, True, True, False),
        (503, True, True, False),
        (505, False, True, False),
        (529, True, True, False),
        (302, False, False, False),
    ],
)
def test_statuses(status: int, retryable: bool, may_stand: bool, rejected: bool) -> None:
    """By status alone: what may be repeated, what may have been done, and what other arguments may cure."""
    failure = from_reply(reply(status), 0.0)
    assert (failure.retryable, failure.may_have_taken_effect, failure.rejected) == (retryable, may_stand, rejected)
    assert failure.kind == f"http_{status}"


def test_the_service_knows_better() -> None:
    """What the body says of itself counts for more than the status."""
    said = {"kind": "db", "message": "down", "retryable": False, "may_have_taken_effect": False}
    failure = from_reply(reply(500, said), 0.0)
    assert failure == Failure("db", "down", status=500)
    assert from_reply(reply(409, {"retryable": True, "may_have_taken_effect": False}), 0.0).rejected is False


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error": "text"}', b'{"error": {"kind": 7}}'])
def test_a_body_of_any_kind_is_survived(body: bytes) -> None:
    """An error page, an empty body, another shape: still one failure with a kind."""
    assert from_reply(Reply(502, {}, body), 0.0).kind == "http_502"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("3", 3.0),
        ("0", 0.0),
        (" 2 ", 2.0),
        ("Thu, 01 Jan 1970 00:16:50 GMT", 10.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
    ],
)
def test_retry_after(header: str, expected: float | None) -> None:
    """Seconds and HTTP dates are read; what cannot be read says nothing."""
    assert from_reply(reply(429, retry_after=header), 1000.0).retry_after_s == expected


def test_retry_after_counts_for_three_statuses_only() -> None:
    """429, 503 and 529 may direct the caller; no other status may."""
    for status in (429, 503, 529):
        assert from_reply(reply(status, retry_after="2"), 0.0).retry_after_s == 2.0
    for status in (400, 409, 500, 502):
        assert from_reply(reply(status, retry_after="2"), 0.0).retry_after_s is None
    assert from_reply(reply(429, {"retry_after_s": 4}), 0.0).retry_after_s == 4.0


def test_no_answer_is_no_failure_of_the_call() -> None:
    """Once sent, a request may have been carried out; one that never left was not."""
    assert from_loss(Loss("timeout", "late", sent=True)).may_have_taken_effect is True
    assert from_loss(Loss("connect_refused", "no", sent=False)).may_have_taken_effect is False


def test_a_conflict_is_a_rejection_once_nothing_is_in_flight() -> None:
    """409 may mean a twin under way; where the service knows of none, it is a plain no."""
    assert from_reply(reply(409), 0.0).certain().rejected is True
    assert from_reply(reply(500), 0.0).certain().rejected is False


def test_an_unreadable_success_is_in_doubt() -> None:
    """A result that cannot be read was most likely produced."""
    assert unreadable(Reply(200, {}, b"<")).may_have_taken_effect is True


def test_an_unknown_failure_is_not_retryable() -> None:
    """Nothing is repeated that nobody called repeatable."""
    assert Failure("x", "y").retryable is False


def test_a_doubt_stays_until_it_is_settled() -> None:
    """An attempt that surely did nothing does not clear the one before it."""
    late, refused = Failure("timeout", "", True, True), Failure("connect_refused", "", True)
    assert refused.after(late).may_have_taken_effect is True
    assert refused.after(late.certain()) == refused.after(None) == refused


def test_round_trip() -> None:
    """What is stored of a failure is read back."""
    failure = Failure("k", "m", True, True, 2.0, rejected=True)
    assert Failure.from_json(failure.as_json()) == failure
