"""Where a request on a run's port belongs. Unknown endpoints are refused in words, never guessed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qs

from traces.providers import PROVIDERS
from traces.registry import Registry

Target = Literal["model", "tools", "nowhere"]

_TOOL = re.compile(r"/tools/([^/?]+)")
_STATUS = re.compile(r"/tools/([^/?]+)/status")
_ESCAPES = re.compile(r"[%#\\]|/\.{1,2}(?=/|$)")
"""What servers undo in a path, or leave, each in its own way."""

_PLAINLY = "paths here have no percent escapes, no backslashes, no `.` and `..`, and URLs no fragment (#)"


@dataclass(frozen=True, slots=True)
class Route:
    """Where a request goes. `path` is what is forwarded; `words` say why it goes nowhere.

    `asks_outcome`: a status query, which is no call; `key` is the idempotency key it asks about.
    """

    target: Target
    path: str
    api: str = ""
    tool: str = ""
    asks_outcome: bool = False
    key: str = ""
    words: str = ""


def route(method: str, path: str, registry: Registry) -> Route:
    """The route of a request. Doubled slashes, as base URLs with a trailing slash make them, count as one.

    A path that the service might read as another one than stands here leads nowhere: what is forwarded is, to the
    letter, what was decided on.
    """
    bare, mark, query = path.partition("?")
    bare = re.sub(r"/{2,}", "/", bare)
    whole = bare + mark + query
    if _ESCAPES.search(bare) or "#" in query:
        return Route("nowhere", whole, words=f"{whole} is not written plainly: {_PLAINLY}")
    for provider in PROVIDERS:
        if bare == provider.path:
            return Route("model", whole, api=provider.api)
    status = _STATUS.fullmatch(bare)
    tool = registry.at(method, bare)
    if status and method == "GET" and (tool is None or status[1] in registry.tools):
        key = parse_qs(query).get("key", [""])[0]
        return Route("tools", whole, tool=status[1], asks_outcome=True, key=key)
    if tool is not None:
        return Route("tools", whole, tool=tool.name)
    called = _TOOL.fullmatch(bare)
    if called:
        return Route("tools", whole, tool=called[1])
    return Route("nowhere", whole, words=_why_nowhere(bare))


def _why_nowhere(path: str) -> str:
    for provider in PROVIDERS:
        short = provider.path.removeprefix("/v1")
        if path in (short, "/v1" + provider.path):
            right = "has to end in /v1" if path == short else "must not end in /v1"
            return f"{path} is no endpoint here, {provider.path} is: the base URL of this client {right}"
    known = ", ".join([*(provider.path for provider in PROVIDERS), "/tools/NAME", "/tools/NAME/status"])
    return f"{path} is no endpoint here; there are {known}"
