"""HTTP layers that call hooks on the spot.

mitmproxy starts a task for each of the four hooks of a request, suspends the stream, and goes back through all layers
when the task is done. Most hooks here have nothing to wait for: they are called where they occur, and only what they
leave to be awaited takes the long way.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import HttpLayer, HTTPMode, HttpStream

Commands = Generator[commands.Command, Any, None]


class PromptStream(HttpStream):
    """One request and its answer. `hooks` has a method for each hook that is wanted."""

    def __init__(self, context: Context, stream_id: int, hooks: Any) -> None:
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
            if isinstance(command, commands.StartHook):
                hook = getattr(self._hooks, command.name, None)
                rest = hook(self.flow) if hook is not None else None
                if rest is None:
                    continue
                command.rest = rest  # type: ignore[attr-defined]
            answer = yield command


class PromptHttp(HttpLayer):
    """HTTP/1 in the manner of a proxy that clients know of."""

    def __init__(self, context: Context, hooks: Any) -> None:
        super().__init__(context, HTTPMode.regular)
        self._hooks = hooks

    def make_stream(self, stream_id: int) -> Commands:
        """The base class's own, with another class of stream."""
        stream = self.streams[stream_id] = PromptStream(self.context.fork(), stream_id, self._hooks)
        yield from self.event_to_child(stream, events.Start())
