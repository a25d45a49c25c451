"""HTTP layers that call hooks on the spot.

mitmproxy starts a task for each of the four hooks of a request, suspends the stream, and goes back through all layers
when the task is done. Most hooks here have nothing to wait for: they are called where they occur, and only what they
leave to be awaited takes the long way, as a hook of its own. That saves just under a third of the processor time of
a request (docs/performance.md, "Proxy").

mitmproxy catches what its hooks raise; here nobody does. The hooks have to be `guarded`, and the driver cuts the
connection where one raises all the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from mitmproxy.http import HTTPFlow
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import HttpLayer, HTTPMode, HttpStream

Commands = Generator[commands.Command, Any, None]
FlowHooks = Mapping[str, Callable[[HTTPFlow], Awaitable[None] | None] | None]
"""What to call, by the name of the hook; `None` where nobody wants it."""

FLOW_HOOKS = ("requestheaders", "request", "responseheaders", "response", "error", "http_connect")
"""Hooks that are called on the spot. All others take the usual way."""


@dataclass
class StormproofRestHook(commands.StartHook):  # type: ignore[no-untyped-call]
    """What a hook has left to be awaited. An addon's `stormproof_rest` gets it and returns it."""

    rest: Awaitable[None]


def flow_hooks(addon: Any) -> FlowHooks:
    """The hooks that an addon has among `FLOW_HOOKS`."""
    return {name: getattr(addon, name, None) for name in FLOW_HOOKS}


class PromptStream(HttpStream):
    """One request and its answer."""

    def __init__(self, context: Context, stream_id: int, hooks: FlowHooks) -> None:
        super().__init__(context, stream_id)
        self._hooks = hooks

    def _handle_event(self, event: events.Event) -> Commands:
        steps, answer = super()._handle_event(event), None
        while True:
            try:
                command = steps.send(answer)
            except StopIteration:
                return
            answer = None
            if isinstance(command, commands.StartHook) and command.name in self._hooks:
                hook = self._hooks[command.name]
                rest = hook(self.flow) if hook is not None else None
                if rest is None:
                    continue
                command = StormproofRestHook(rest)
            answer = yield command


class PromptHttp(HttpLayer):
    """HTTP/1 in the manner of a proxy that clients know of."""

    def __init__(self, context: Context, hooks: FlowHooks) -> None:
        super().__init__(context, HTTPMode.regular)
        self._hooks = hooks

    def make_stream(self, stream_id: int) -> Commands:
        """The base class's own, with another class of stream."""
        stream = self.streams[stream_id] = PromptStream(self.context.fork(), stream_id, self._hooks)
        yield from self.event_to_child(stream, events.Start())
