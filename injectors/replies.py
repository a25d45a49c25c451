"""Answers that faults make up: provider-true for a model, shaped as the contract says for a tool."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from injectors.moment import Moment, Reply, Request
from traces.providers import Provider, events
from traces.providers.sse import json_bytes
from traces.providers.turn import Turn

_TOOL_ERROR_KINDS = {429: "rate_limited", 502: "bad_gateway", 503: "unavailable", 504: "timeout"}
_RETRYABLE = frozenset({408, 425, 429})


def error_reply(
    request: Request,
    status: int,
    message: str,
    *,
    retry_after_s: int | None = None,
    may_have_taken_effect: bool = False,
) -> Reply:
    """An error answer as the other side itself would write it; `retry_after_s` also becomes the header."""
    provider = request.provider
    wait = () if retry_after_s is None else (("retry-after", str(retry_after_s)),)
    if provider is not None:
        body, headers = provider.error_body(status, message)
        return Reply(status, (*headers.items(), *wait), json_bytes(body))
    error: dict[str, Any] = {
        "kind": _TOOL_ERROR_KINDS.get(status, "internal" if status >= 500 else "rejected"),
        "message": message,
        "retryable": status >= 500 or status in _RETRYABLE,
        "may_have_taken_effect": may_have_taken_effect,
    }
    if retry_after_s is not None:
        error["retry_after_s"] = retry_after_s
    return Reply(status, (("content-type", "application/json"), *wait), json_bytes({"error": error}))


def html_reply(status: int, reason: str) -> Reply:
    """The page that a load balancer puts in front of a service that is gone."""
    page = (
        f"<html>\r\n<head><title>{status} {reason}</title></head>\r\n"
        f"<body>\r\n<center><h1>{status} {reason}</h1></center>\r\n</body>\r\n</html>\r\n"
    )
    return Reply(status, (("content-type", "text/html"),), page.encode())


def said_instead(moment: Moment, turn: Turn) -> Reply | None:
    """The model's reply with another turn in it: same model, same id, streamed or plain as it was."""
    provider, reply = moment.request.provider, moment.reply
    if provider is None or reply is None:
        return None
    if reply.streamed:
        heads = [data for event in events(reply.body) if isinstance(data := event.json(), dict)]
        head = heads[0].get("message") or heads[0] if heads else {}
        usage = any(data.get("usage") for data in heads)
        body = b"".join(_stream(provider, turn, head, usage=usage))
    else:
        body = json_bytes(provider.write_reply(turn, *_model_and_id(json.loads(reply.body))))
    kept = tuple((name, value) for name, value in reply.headers if name != "content-length")
    return Reply(reply.status, kept, body)


def _stream(provider: Provider, turn: Turn, head: dict[str, Any], *, usage: bool) -> list[bytes]:
    model, reply_id = _model_and_id(head)
    return provider.write_stream(turn, model, reply_id, include_usage=usage)


def _model_and_id(head: dict[str, Any]) -> tuple[str, str]:
    return str(head.get("model", "")), str(head.get("id", ""))


def reason_of(status: int) -> str:
    """The usual phrase for a status, such as `Service Unavailable`."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
