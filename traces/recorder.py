"""Builds a trace from what crossed the boundary: model and tool requests with their answers.

It is a pure builder that the recording proxy feeds; it neither listens nor writes until `finish`. What the agent or
the service put into headers beyond the contract's own (section 6) is not kept: it says who recorded, not what
happened.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from traces.mask import mask_trace
from traces.providers import EventReader, for_path
from traces.trace import Exchange, Trace, numbered

KEPT_HEADERS = frozenset(
    {
        "idempotency-key",
        "x-intent-id",
        "x-attempt-id",
        "x-step",
        "x-agent-deadline-ms",
        "retry-after",
        "idempotent-replayed",
        "request-id",
        "x-request-id",
    }
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes of a streamed body as they arrived, `t` seconds after the request began."""

    t: float
    data: bytes


def model_exchange(
    path: str,
    request: bytes,
    *,
    status: int,
    content_type: str,
    chunks: Iterable[Chunk],
    t_start: float,
    t_end: float,
) -> Exchange:
    """The exchange of a model call as the wire saw it; raises `ValueError` where the endpoint or body is not known.

    A streamed answer becomes its events, each with the offset of the chunk that completed it. A final event that
    never became whole is kept in `rest` as it came, so that a recorded cut stays a cut.
    """
    provider = for_path(path)
    if provider is None:
        raise ValueError(f"{path} is the endpoint of no known model API")
    sent = list(chunks)
    response: dict[str, Any] = {"status": status}
    if "event-stream" in content_type:
        reader = EventReader()
        seen: list[dict[str, Any]] = []
        for n, chunk in enumerate(sent):
            for event in reader.feed(chunk.data, last=n == len(sent) - 1):
                data = event.json()
                seen.append({"t": chunk.t, "event": event.name, "data": event.data if data is None else data})
        response["events"] = seen
        if reader.rest:
            body = b"".join(chunk.data for chunk in sent)
            response["rest"] = body[-reader.rest :].decode("utf-8", "replace")
    else:
        response["body"] = _json_or_text(b"".join(chunk.data for chunk in sent))
    asked = _json_or_text(request)
    if not isinstance(asked, dict):
        raise ValueError(f"the request to {path} is no JSON object")
    return Exchange(
        channel="model", n=0, t_start=t_start, t_end=t_end, request=asked, response=response, api=provider.api
    )


def tool_exchange(
    tool: str,
    arguments: Mapping[str, Any],
    *,
    status: int,
    body: Any,
    t_start: float,
    t_end: float,
    headers: Mapping[str, str] | None = None,
) -> Exchange:
    """The exchange of a tool call; `headers` are those of the request."""
    kept = {name: value for name, value in (headers or {}).items() if name.lower() in KEPT_HEADERS}
    request = {"tool": tool, "arguments": dict(arguments), "headers": kept}
    response = {"status": status, "body": body}
    return Exchange(channel="tool", n=0, t_start=t_start, t_end=t_end, request=request, response=response)


def _json_or_text(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")


class Recorder:
    """Collects the exchanges of one run; `finish` gives the masked trace.

    `request` and `tools` are read from the first model request where they are not given. `mask_key` makes
    pseudonyms repeatable (see `traces.mask`).
    """

    def __init__(
        self,
        name: str,
        *,
        task_type: str = "task",
        tenant: str = "default",
        request: str | None = None,
        tools: Iterable[dict[str, Any]] | None = None,
        limits: Mapping[str, Any] | None = None,
        provenance: Mapping[str, Any] | None = None,
        mask_key: bytes | None = None,
    ) -> None:
        self._header = Trace(
            name=name,
            request=request or "",
            exchanges=(),
            task_type=task_type,
            tenant=tenant,
            limits=dict(limits or {}),
            provenance=dict(provenance or {}),
        )
        self._request = request
        self._tools = None if tools is None else tuple(tools)
        self._mask_key = mask_key
        self._seen: list[Exchange] = []

    def observe(self, exchange: Exchange) -> None:
        """Takes one exchange, in whatever order exchanges end; its `n` is given at the end."""
        self._seen.append(exchange)

    def finish(self) -> Trace:
        """The trace of all exchanges so far: in the order of their starts, times from its first start, masked."""
        start = min((exchange.t_start for exchange in self._seen), default=0.0)
        exchanges = numbered(
            replace(e, t_start=round(e.t_start - start, 6), t_end=round(e.t_end - start, 6)) for e in self._seen
        )
        asked = next((e for e in exchanges if e.channel == "model" and e.provider is not None), None)
        request, tools = self._request, self._tools
        if asked is not None and asked.provider is not None:
            conversation = asked.provider.read_request(asked.request)
            if request is None:
                request = "\n\n".join(m.text for m in conversation.messages if m.role == "user" and m.text)
            tools = conversation.tools if tools is None else tools
        trace = replace(self._header, request=request or "", tools=tools or (), exchanges=exchanges)
        return mask_trace(trace, key=self._mask_key)
