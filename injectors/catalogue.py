"""All kinds of fault, and the way from a scenario's words to a fault.

A new kind is one file beside its likes, one line in `KINDS`, one test.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from injectors.core import Fault
from injectors.crash.kill import Kill
from injectors.model.cut_stream import CutStream
from injectors.model.overloaded import Overloaded
from injectors.model.truncated_output import TruncatedOutput
from injectors.model.unknown_tool import UnknownTool
from injectors.network.hang import Hang
from injectors.network.latency import Latency
from injectors.network.reply_lost import ReplyLost
from injectors.network.reset import Reset
from injectors.network.status import Status
from injectors.network.truncated_body import TruncatedBody
from injectors.parameters import parameters_of
from injectors.site import Site, SiteError, site_from
from injectors.tool.executed_but_failed import ExecutedButFailed
from injectors.tool.executed_but_timeout import ExecutedButTimeout
from injectors.tool.rate_limited import RateLimited

KINDS: tuple[type[Fault], ...] = (
    Latency,
    Hang,
    Reset,
    ReplyLost,
    TruncatedBody,
    Status,
    ExecutedButFailed,
    ExecutedButTimeout,
    RateLimited,
    Overloaded,
    CutStream,
    TruncatedOutput,
    UnknownTool,
    Kill,
)

BY_NAME: dict[str, type[Fault]] = {kind.kind: kind for kind in KINDS}


class FaultError(ValueError):
    """A fault that cannot be: `messages` has one sentence per mistake."""

    def __init__(self, messages: list[str]) -> None:
        self.messages = messages
        super().__init__("; ".join(messages))


def fault_from(
    *,
    kind: str,
    at: Any,
    times: Any = 1,
    parameters: Mapping[str, Any] | None = None,
    scenario: str | None = None,
    id: str = "",
) -> Fault:
    """Make the fault that a scenario describes: `at`, `times` and `parameters` (its `with`) as the file has them.

    Raises `FaultError` with every mistake, and with what was probably meant.
    """
    found = BY_NAME.get(kind)
    mistakes: list[str] = []
    site: Site | None = None
    try:
        site = site_from(at)
    except SiteError as error:
        mistakes += error.messages
    if found is None:
        raise FaultError([f"unknown kind `{kind}`{did_you_mean(kind, BY_NAME)}", *mistakes])
    if site is not None and site.channel not in found.channels:
        place = "calls of the model" if site.model else "calls of tools"
        mistakes.append(f"`{kind}` cannot strike {place}; `at` names {site}")
    if times != "always" and (not isinstance(times, int) or isinstance(times, bool) or times < 1):
        mistakes.append(f"`times` is a number of attempts from 1 on, or `always`, not {times!r}")
    given = dict(parameters or {})
    mistakes += _parameter_mistakes(found, given)
    if mistakes or site is None:
        raise FaultError(mistakes)
    return found(at=site, times=None if times == "always" else times, scenario=scenario, id=id, **given)


def _parameter_mistakes(kind: type[Fault], given: Mapping[str, Any]) -> list[str]:
    known = parameters_of(kind)
    mistakes = []
    for name, value in given.items():
        if name not in known:
            offered = f"; it knows {', '.join(known)}" if known else "; it has none"
            mistakes.append(f"`{kind.kind}` has no parameter `{name}`{did_you_mean(name, known) or offered}")
        elif refusal := known[name].refusal(value):
            mistakes.append(f"`{name}` of `{kind.kind}` {refusal}")
    return mistakes


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`, did you mean ...?` with the nearest known word, or nothing where none is near."""
    near = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f", did you mean `{near[0]}`?" if near else ""


def described(kind: type[Fault]) -> dict[str, Any]:
    """One kind as `stormproof scenarios kinds` prints it (contract section 8)."""
    return {
        "kind": kind.kind,
        "layer": kind.layer,
        "changes_server_state": kind.changes_server_state,
        "parameters": {name: parameter.to_data() for name, parameter in parameters_of(kind).items()},
        "agent_sees": kind.agent_sees,
        "world_sees": kind.world_sees,
    }
