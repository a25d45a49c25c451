"""Checks of mitmproxy: those of its insides that this driver makes, and those of types that are left out.

Messages check the types of their own fields, each time one is made, under `__debug__`. That is a sixth of the
processor time of a request (docs/performance.md, "Proxy") and changes nothing that is sent. `python -O` leaves it out
as well, but needs bytecode of its own that is compiled at each start where none can be written.

What this module, `prompt`, `engine` and `sockets` depend on is looked at when the proxy starts, so that a mitmproxy
that is built otherwise is refused in words and does not serve in some way of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from mitmproxy import http
from mitmproxy.addons.proxyserver import Proxyserver
from mitmproxy.hooks import all_hooks
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import HttpLayer, HttpStream
from mitmproxy.proxy.server import ConnectionHandler, ConnectionIO
from mitmproxy.version import VERSION

from injectors.drivers.proxy.prompt import FLOW_HOOKS
from injectors.drivers.proxy.run import DriverError

FUNCTIONS: tuple[tuple[type, str, tuple[str, ...]], ...] = (
    (HttpLayer, "__init__", ("self", "context", "mode")),
    (HttpLayer, "make_stream", ("self", "stream_id")),
    (HttpLayer, "event_to_child", ("self", "child", "event")),
    (HttpStream, "__init__", ("self", "context", "stream_id")),
    (HttpStream, "_handle_event", ("self", "event")),
    (Context, "fork", ("self",)),
    (ConnectionHandler, "handle_hook", ("self", "hook")),
    (Proxyserver, "__init__", ("self",)),
    *(((http.MessageData, "__post_init__", ("self",)),) if __debug__ else ()),
)
"""Functions that are replaced, extended or called, and the arguments they have to take."""
ATTRIBUTES: tuple[tuple[type, frozenset[str]], ...] = (
    (HttpLayer, frozenset({"streams"})),
    (Context, frozenset({"client"})),
    (ConnectionHandler, frozenset({"client", "transports"})),
    (ConnectionIO, frozenset({"handler", "reader", "writer"})),
    (Proxyserver, frozenset({"connections", "servers", "is_running"})),
)
"""Attributes that are read or set; they have to be declared."""


def check_insides() -> None:
    """Raise `DriverError`, naming each difference, where mitmproxy is built otherwise than this driver expects."""
    wrong = [*_wrong_functions(), *_wrong_attributes(), *_wrong_hooks(FLOW_HOOKS)]
    if wrong:
        raise DriverError(f"the proxy driver does not know mitmproxy {VERSION} from inside: {'; '.join(wrong)}")


def _wrong_functions() -> Iterator[str]:
    for owner, name, expected in FUNCTIONS:
        function = getattr(owner, name, None)
        taken = tuple(inspect.signature(function).parameters) if inspect.isfunction(function) else None
        if taken != expected:
            found = "is missing" if taken is None else f"takes ({', '.join(taken)})"
            yield f"{owner.__name__}.{name} {found}, not ({', '.join(expected)})"


def _wrong_attributes() -> Iterator[str]:
    for owner, expected in ATTRIBUTES:
        declared = {name for base in owner.__mro__ for name in [*vars(base), *inspect.get_annotations(base)]}
        for name in sorted(expected - declared):
            yield f"{owner.__name__} has no `{name}`"


def _wrong_hooks(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        hook: Any = all_hooks.get(name)
        arguments = [] if hook is None else [field.name for field in fields(hook)]
        if arguments != ["flow"]:
            yield f"there is no hook `{name}` about a flow"


def skip_type_checks() -> None:
    """Have messages made without a check of their own fields."""
    untyped: Any = http.MessageData
    untyped.__post_init__ = lambda self: None
