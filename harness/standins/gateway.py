"""The model gateway: speaks the providers' wire formats and says what the model of the recording said.

It has no memory. The reply follows from the conversation that it is sent (`conversation`), so that a retry gets the
same reply, a restarted agent or gateway goes on where the conversation stands, and runs never meet.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from aiohttp import web

from harness.standins.conversation import Reply, next_reply
from harness.standins.endpoint import Endpoint, path_of
from harness.standins.runs import Run
from traces.digest import digest
from traces.json_bodies import shallow
from traces.providers import PROVIDERS, Provider, for_path
from traces.providers.sse import json_bytes
from traces.providers.turn import Conversation, Turn

CHARS_PER_TOKEN = 4
"""The rule of thumb for English text, for usage numbers that no recording has."""
CONTEXT_TOKENS = {"anthropic-messages": 200_000, "openai-chat": 128_000}
_ID_PREFIXES = {"anthropic-messages": ("msg_01", "toolu_01"), "openai-chat": ("chatcmpl-", "call_")}


class Gateway(Endpoint):
    """Serves the model of all open runs on one port."""

    async def answer(self, run: Run, request: web.Request) -> web.StreamResponse:
        """Checks a request as the provider does and replies with the turn that comes next."""
        path = path_of(request)
        provider = next((provider for provider in PROVIDERS if provider.path == path), None)
        if provider is None or request.method != "POST":
            return self._unknown(request, path)
        raw = await request.read()
        try:
            body: Any = shallow(json.loads, raw)
        except ValueError:
            body = None
        refusal = provider.check_request(body)
        if refusal is not None:
            headers = provider.error_body(400, str(refusal["error"]["message"]))[1]
            return _plain(400, refusal, headers)
        if provider.api == "anthropic-messages" and "thread" in body:
            message = "thread_unsupported_request: this endpoint keeps no threads; send the whole conversation"
            return _error(provider, 400, message, code="thread_unsupported_request")
        tokens = len(raw) // CHARS_PER_TOKEN
        if tokens > CONTEXT_TOKENS[provider.api]:
            return _too_long(provider, tokens)
        conversation = provider.read_request(body)
        reply = next_reply(run.recording.turns, conversation.messages, run.policy)
        turn = _dressed(reply, run, provider, conversation, prompt_tokens=tokens)
        reply_id = _ID_PREFIXES[provider.api][0] + _name(run, conversation, reply)
        if not conversation.stream:
            return _plain(200, provider.write_reply(turn, conversation.model, reply_id), {})
        events = provider.write_stream(turn, conversation.model, reply_id, include_usage=conversation.include_usage)
        return await _streamed(request, events)

    def refuse(self, request: web.Request, status: int, kind: str, message: str) -> web.Response:
        """An error in the shape of the provider that the client seems to expect."""
        return _error(_expected(request), status, message, code=kind)

    def _unknown(self, request: web.Request, path: str) -> web.Response:
        known = " and ".join(f"POST {provider.path}" for provider in PROVIDERS)
        message = f"there is no {request.method} {path} here; the model gateway knows {known}"
        meant = for_path(path)
        if meant is not None and request.method == "POST" and path == meant.path.removeprefix("/v1"):
            message += "; the base URL of the client lacks /v1"
        return self.refuse(request, 404, "unknown_url", message)


def _dressed(reply: Reply, run: Run, provider: Provider, conversation: Conversation, *, prompt_tokens: int) -> Turn:
    """The turn with call ids of its own and with usage numbers: those recorded, else an estimate by length."""
    turn = reply.turn
    name, prefix = _name(run, conversation, reply), _ID_PREFIXES[provider.api][1]
    calls = tuple(replace(call, id=prefix + digest([name, place])[:22]) for place, call in enumerate(turn.tool_calls))
    length = len(turn.text) + sum(len(call.name) + len(call.raw) for call in calls)
    return replace(
        turn,
        tool_calls=calls,
        input_tokens=turn.input_tokens or max(1, prompt_tokens),
        output_tokens=turn.output_tokens or max(1, length // CHARS_PER_TOKEN),
    )


def _name(run: Run, conversation: Conversation, reply: Reply) -> str:
    """A name for a reply: the same for a retry of the request, another at any other place of the conversation."""
    return digest([run.intent_id, len(conversation.messages), reply.place])[:22]


def _expected(request: web.Request) -> Provider:
    """The provider whose client this is, by its path, else by the headers of its library."""
    named = for_path(request.path)
    if named is not None:
        return named
    anthropic, openai = PROVIDERS
    return anthropic if "anthropic-version" in request.headers else openai


def _too_long(provider: Provider, tokens: int) -> web.Response:
    limit = CONTEXT_TOKENS[provider.api]
    if provider.api == "anthropic-messages":
        return _error(provider, 400, f"prompt is too long: {tokens} tokens > {limit} maximum")
    message = (
        f"This model's maximum context length is {limit} tokens. However, your messages resulted in {tokens} tokens. "
        "Please reduce the length of the messages."
    )
    return _error(provider, 400, message, code="context_length_exceeded")


def _error(provider: Provider, status: int, message: str, *, code: str | None = None) -> web.Response:
    body, headers = provider.error_body(status, message, code=code)
    return _plain(status, body, headers)


def _plain(status: int, body: dict[str, Any], headers: dict[str, str]) -> web.Response:
    kept = {name: text for name, text in headers.items() if name.lower() != "content-type"}
    return web.Response(status=status, body=json_bytes(body), headers=kept, content_type="application/json")


async def _streamed(request: web.Request, events: list[bytes]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Cache-Control": "no-cache"})
    response.content_type = "text/event-stream"
    response.charset = "utf-8"
    await response.prepare(request)
    for event in events:
        await response.write(event)
    await response.write_eof()
    return response
