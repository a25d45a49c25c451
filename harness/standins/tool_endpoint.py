"""The HTTP face of the tool service (contract section 6): `POST /tools/TOOL`, `GET /tools/TOOL/status?key=KEY`."""

from __future__ import annotations

import difflib
from typing import Any

from aiohttp import web

from harness.standins.endpoint import Endpoint, path_of
from harness.standins.runs import Run, Runs
from harness.standins.service import Response, ToolService, error
from traces.bodies import arguments_in
from traces.registry import Tool

BASE = "/tools"


class ToolEndpoint(Endpoint):
    """Serves the tools of all open runs on one port."""

    def __init__(self, runs: Runs, service: ToolService) -> None:
        super().__init__(runs)
        self._service = service

    async def answer(self, run: Run, request: web.Request) -> web.StreamResponse:
        """Executes a call or answers a question about one."""
        path = path_of(request)
        name, _, rest = path.removeprefix(BASE).strip("/").partition("/")
        known = run.registry.tools.get(name) if path.startswith(f"{BASE}/") else None
        if known is not None and rest == "status" and request.method == "GET":
            key = request.query.get("key", "")
            if not key:
                return _sent(error(400, "invalid_arguments", "a status query names the key: ?key=KEY"))
            return _sent(self._service.status(run, known, key))
        # In the order in which the proxy looks, so that both find the same tool.
        tool = run.registry.at(request.method, path) or (None if rest else known)
        if tool is None:
            return _sent(error(404, "unknown_tool", _unknown(run, request.method, path, name)))
        if request.method not in ("POST", (tool.match.method or "POST").upper()):
            return _sent(error(405, "method_not_allowed", f"call {tool.name} with POST, not {request.method}"))
        return _sent(
            await self._service.call(run, tool, _arguments(request, await request.read()), headers=request.headers)
        )

    def refuse(self, request: web.Request, status: int, kind: str, message: str) -> web.Response:
        """An error in the shape of contract section 6."""
        return _sent(error(status, kind, message))


def _unknown(run: Run, method: str, path: str, name: str) -> str:
    tools: list[Tool] = list(run.registry.tools.values())
    near = difflib.get_close_matches(name, [tool.name for tool in tools], 1)
    hint = f"did you mean {near[0]}?" if near else f"tools: {', '.join(tool.name for tool in tools) or 'none'}"
    return f"there is no {method} {path} here; tools are called with POST {BASE}/TOOL; {hint}"


def _arguments(request: web.Request, body: bytes) -> Any:
    """The arguments of a call; `None`, which is refused, where the body is no JSON."""
    try:
        return arguments_in(body, request.raw_path.partition("?")[2])
    except ValueError:
        return None


def _sent(response: Response) -> web.Response:
    return web.Response(
        status=response.status,
        body=response.body,
        headers=response.headers,
        content_type="application/json",
        charset="utf-8",
    )
