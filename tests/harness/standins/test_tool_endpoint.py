"""The tool service on a real socket: paths, methods, status queries, bodies."""

from __future__ import annotations

import pytest

from tests.harness.standins.bench import Process
from tests.harness.standins.shop import CHARGE, HTTP, REGISTRY


@pytest.fixture
def opened(process: Process, run: str) -> str:
    """A run that is open in a world of its own."""
    process.open(run, world=run)
    return run


def test_call_and_repeat_over_http(process: Process, opened: str) -> None:
    """200 and JSON, then the same bytes with the header of a replay; the ledger has both with their wire ids."""
    first = process.call("charge", CHARGE.args, run=opened, key="k", wire="w1")
    again = process.call("charge", CHARGE.args, run=opened, key="k", wire="w2")
    assert (first.status_code, first.json(), first.headers["content-type"]) == (
        *(200, CHARGE.body, "application/json; charset=utf-8"),
    )
    assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
    assert "idempotent-replayed" not in first.headers
    effects = process.effects(opened, ["w1", "w2"])
    assert [(e["outcome"], e["wire"], e["effect_id"]) for e in effects] == [
        ("applied", "w1", "e1"),
        ("deduplicated", "w2", "e1"),
    ]
    assert all("compensates" not in e and e["source"] == "service" and e["type"] == "effect" for e in effects)


def test_slashes_are_collapsed(process: Process, opened: str) -> None:
    """A base URL with a slash at its end gives `/tools//charge`, which is the same tool."""
    url = process.tools.replace("/tools", "//tools//charge/")
    answer = HTTP.post(url, json=CHARGE.args, headers={"x-stormproof-run": opened})
    assert answer.json() == CHARGE.body


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/tools/charg", "did you mean charge?"),
        ("/tools/fly", "tools: charge, refund, reserve"),
        ("/tools", "tools are called with POST /tools/TOOL"),
        ("/", "there is no POST / here"),
        ("/charge", "there is no POST /charge here"),
        ("/tools/charge/refund", "there is no POST /tools/charge/refund here"),
    ],
)
def test_unknown_paths_are_refused_in_words(process: Process, opened: str, path: str, words: str) -> None:
    """404 as JSON that says what there is; nothing is guessed, nothing recorded."""
    url = process.tools.removesuffix("/tools") + path
    answer = HTTP.post(url, json={}, headers={"x-stormproof-run": opened})
    assert answer.status_code == 404
    assert answer.json()["error"]["kind"] == "unknown_tool"
    assert words in answer.json()["error"]["message"]
    assert process.effects(opened) == []


def test_tool_with_a_route_of_its_own_is_found_there(process: Process, run: str) -> None:
    """What the registry says about method and path holds here too."""
    registry = REGISTRY | {"email": REGISTRY["email"] | {"match": {"method": "PUT", "path": "/v2/mails"}}}
    process.open(run, world=run, registry=registry)
    url = process.tools.removesuffix("/tools") + "/v2/mails"
    headers = {"x-stormproof-run": run}
    assert HTTP.put(url, json={"to": "a@example.org"}, headers=headers).json() == {"sent": True}
    assert HTTP.post(url, json={}, headers=headers).status_code == 404
    assert [effect["tool"] for effect in process.effects(run)] == ["email"]


def test_other_methods_are_refused(process: Process, opened: str) -> None:
    """A tool is called with POST."""
    answer = HTTP.get(f"{process.tools}/charge", headers={"x-stormproof-run": opened})
    assert (answer.status_code, answer.json()["error"]["kind"]) == (405, "method_not_allowed")


def test_status_query(process: Process, opened: str) -> None:
    """The state of a key, unknown before and applied with the result afterwards; a query without a key is refused."""
    url, headers = f"{process.tools}/charge/status", {"x-stormproof-run": opened, "x-stormproof-wire": "w9"}
    assert HTTP.get(url, params={"key": "k"}, headers=headers).json() == {"state": "unknown", "result": None}
    process.call("charge", CHARGE.args, run=opened, key="k")
    assert HTTP.get(url, params={"key": "k"}, headers=headers).json() == {"state": "applied", "result": CHARGE.body}
    assert HTTP.get(url, headers=headers).status_code == 400
    assert len(process.effects(opened, ["w9"])) == 1


@pytest.mark.parametrize(
    "content",
    [
        *(b"{broken", b"[1]", b"\xff\xfe", b'"text"', b"[" * 100_000, b'{"to":' + b"[" * 900 + b"]" * 900 + b"}"),
        *('{"to":"a"}'.encode(encoding) for encoding in ("utf-16", "utf-16-le", "utf-32", "utf-8-sig")),
        *(b'{"to":NaN}', b'{"to":"\\ud800"}'),
    ],
    ids=[
        *("broken", "list", "no UTF-8", "text", "far too deep", "too deep"),
        *("UTF-16", "UTF-16 without a mark", "UTF-32", "byte order mark", "NaN", "lone surrogate"),
    ],
)
def test_body_that_is_no_object_is_refused(process: Process, opened: str, content: bytes) -> None:
    """400 in words, and a `rejected` record of the tool."""
    answer = HTTP.post(f"{process.tools}/email", content=content, headers={"x-stormproof-run": opened})
    assert answer.status_code == 400
    assert "JSON object" in answer.json()["error"]["message"]
    assert [effect["outcome"] for effect in process.effects(opened)] == ["rejected"]


def test_empty_body_is_a_call_without_arguments(process: Process, opened: str) -> None:
    """Clients send calls without arguments with no body at all."""
    answer = HTTP.post(f"{process.tools}/email", headers={"x-stormproof-run": opened})
    assert answer.json() == {"id": "email-1", "status": "ok"}


def test_arguments_in_the_query_are_those_on_record(process: Process, opened: str) -> None:
    """Without a body the query has the arguments, here as in the proxy."""
    in_query = HTTP.post(f"{process.tools}/charge", params=CHARGE.args, headers={"x-stormproof-run": opened})
    in_body = process.call("charge", {name: str(value) for name, value in CHARGE.args.items()}, run=opened)
    assert (in_query.status_code, in_query.json()) == (in_body.status_code, in_body.json())
