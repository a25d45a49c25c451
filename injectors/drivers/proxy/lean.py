"""What mitmproxy does for developers and for its user interfaces, left out: about half of the time of a request.

Four things, each without influence on what is sent or received:

* Checks of its own types. `python -O` leaves them out as well, but needs bytecode of its own that is compiled at each
  start where none can be written.
* Options are copied deeply each time a layer reads one. Ours never change: each connection gets a plain copy.
* A header is looked up by raising and catching an error where it is absent, and it is, about twenty times a request.
* Every hook is offered to every addon, and followed by another for views of flows, of which there are none here.

It has to be imported before mitmproxy's layers are.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from mitmproxy import hooks, http
from mitmproxy.proxy import utils


def _unchecked(*_types: type) -> Callable[[Any], Any]:
    return lambda function: function


def header(headers: http.Headers, key: str | bytes, default: Any = None) -> Any:
    """`Headers.get`: the values of a header, folded, or the default. Names count in any case."""
    wanted = (key if isinstance(key, bytes) else key.encode("utf-8", "surrogateescape")).lower()
    found = [value for name, value in headers.fields if name.lower() == wanted]
    return b", ".join(found).decode("utf-8", "surrogateescape") if found else default


def make_lean() -> None:
    """Drop the checks that hold under `__debug__` only, and look headers up straight."""
    untyped: Any = utils
    untyped.expect = _unchecked
    data: Any = http.MessageData
    data.__post_init__ = lambda _self: None
    headers: Any = http.Headers
    headers.get = header


def plain_options(options: Any) -> Any:
    """The options as they stand, readable as attributes."""
    return SimpleNamespace(**{name: getattr(options, name) for name in options.keys()})  # noqa: SIM118 - no mapping


class DirectHooks:
    """In the place of an addon manager's `handle_lifecycle`: hands each hook to the addons that have it."""

    def __init__(self, *addons: Any) -> None:
        self._addons = addons
        self._known: dict[type[hooks.Hook], tuple[str, tuple[Callable[[Any], Any], ...]]] = {}

    async def __call__(self, event: hooks.Hook) -> None:
        begun = getattr(event, "rest", None)
        if begun is not None:  # called on the spot already (see `prompt`); this is what is left to wait for
            await begun
            return
        known = self._known.get(type(event))
        if known is None:
            event_type: Any = type(event)
            (field,) = dataclasses.fields(event_type)  # every hook of a connection or flow has one argument
            found = (getattr(addon, event.name, None) for addon in self._addons)
            known = self._known[type(event)] = (field.name, tuple(hook for hook in found if hook is not None))
        field_name, called = known
        for hook in called:
            rest = hook(getattr(event, field_name))
            if rest is not None and inspect.isawaitable(rest):
                await rest


make_lean()
