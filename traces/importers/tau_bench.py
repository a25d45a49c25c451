"""tau-bench trajectories (sierra-research/tau-bench): a JSON list of runs, each with an OpenAI chat in `traj`.

A tau run is a talk with a simulated user; a replayed agent gets one request. So all that the user says becomes the
request, known from the start, and what the assistant says between tool calls becomes the beginning of its next turn.
How much was folded, and what the format lacks and is declared instead (times, tokens), stands in the provenance.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from traces.importers.base import Imported, ImportFault, ImportReport
from traces.importers.schemas import schema_of_calls
from traces.json_bodies import shallow
from traces.mask import mask_trace
from traces.providers import openai_chat
from traces.providers.turn import Conversation, Message, ToolCall, ToolResult, Turn, raw_call, tool_call
from traces.recorder import tool_exchange
from traces.trace import Exchange, Trace

WRITES = frozenset(
    {
        "book_reservation",
        "cancel_reservation",
        "update_reservation_flights",
        "update_reservation_baggages",
        "update_reservation_passengers",
        "send_certificate",
        "cancel_pending_order",
        "modify_pending_order_items",
        "modify_pending_order_address",
        "modify_pending_order_payment",
        "modify_user_address",
        "return_delivered_order_items",
        "exchange_delivered_order_items",
        "transfer_to_human_agents",
    }
)
STOP_MARK = "###STOP###"
CHARACTERS_PER_TOKEN = 4
_ASSIGNED = re.compile(r"# var_\d+ = (.+)", re.DOTALL)
_MASK_KEY = b"tau-bench is public data"
_DECLARED = {
    "times": "not recorded: t_start and t_end count the exchanges",
    "tokens": f"not recorded: {CHARACTERS_PER_TOKEN} characters are taken for one token",
    "schemas": "not recorded: inferred from all calls of the file",
    "streaming": "not recorded: replies are taken for plain ones",
}


@dataclass(frozen=True, slots=True)
class Done:
    """One tool call and the text that came back, where one did."""

    call: ToolCall
    result: str | None

    @property
    def failure(self) -> str | None:
        """What went wrong, `None` where it was done. One agent design shows results as `# var_3 = "Error: .."`."""
        text = self.result or ""
        assigned = _ASSIGNED.fullmatch(text.strip())
        if assigned is not None:
            try:
                shown = ast.literal_eval(assigned[1])
            except (ValueError, SyntaxError):
                shown = assigned[1]
            text = shown if isinstance(shown, str) else text
        return text if text.startswith("Error") else None


@dataclass(slots=True)
class Run:
    """One trajectory as it is understood: its turns, and what was done to it on the way."""

    system: str = ""
    said: list[str] = field(default_factory=list)
    turns: list[tuple[str, list[Done]]] = field(default_factory=list)
    closing: str = ""
    folded: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)


class _Unreadable(ValueError):
    """A run that cannot become a trace, and why."""


class TauBench:
    """The importer of `stormproof import tau-bench`."""

    name = "tau-bench"

    def read(self, path: Path) -> Imported:
        """All runs of a file; a run without a conversation is skipped and named, with what the file says about it."""
        entries = _load(path)
        runs: list[tuple[int, dict[str, Any], Run]] = []
        skipped: list[tuple[str, str]] = []
        for n, entry in enumerate(entries):
            try:
                runs.append((n, entry, _understand(entry)))
            except _Unreadable as error:
                skipped.append((_source(path, n), str(error)))
        done = [each for _, _, run in runs for _, acts in run.turns for each in acts]
        tools = _tools(done)
        domain = _domain(path.name, *(run.system[:80] for _, _, run in runs), *(each.call.name for each in done))
        names: Counter[str] = Counter()
        traces = []
        writing: set[str] = set()
        for n, entry, run in runs:
            name = f"{_slug(path.stem)}-task{int(entry.get('task_id', n)):03d}-trial{int(entry.get('trial', 0))}"
            names[name] += 1
            if names[name] > 1:
                name = f"{name}-{names[name]}"
            if any(act.call.name in WRITES and act.failure is None for _, acts in run.turns for act in acts):
                writing.add(name)
            header: dict[str, Any] = {
                "file": path.name,
                "run": n,
                **{k: entry[k] for k in ("task_id", "trial", "reward") if k in entry},
            }
            trace = _trace(name, run, tools, domain=domain, header=header, model=_model(path))
            traces.append(mask_trace(trace, key=_MASK_KEY))
        writes = [each for each in done if each.call.name in WRITES]
        report = ImportReport(
            traces=len(traces),
            tool_calls=len(done),
            writes=len(writes),
            failed_writes=sum(each.failure is not None for each in writes),
            skipped=tuple(skipped),
            notes=tuple(
                (_source(path, n), f"{count} {what}") for n, _, run in runs for what, count in run.notes.items()
            ),
        )
        return Imported(tuple(traces), report, frozenset(writing))


def _load(path: Path) -> list[dict[str, Any]]:
    try:
        data = shallow(json.loads, path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ImportFault(path, error.lineno, f"is no JSON: {error.msg}") from None
    except UnicodeDecodeError as error:
        raise ImportFault(path, 0, f"is no UTF-8 text (byte {error.start})") from None
    except ValueError as error:
        raise ImportFault(path, 1, f"is no JSON that can be read: {error}") from None
    if not isinstance(data, list) or not all(isinstance(entry, dict) for entry in data):
        raise ImportFault(path, 1, "is no list of tau-bench runs, each an object with `traj`")
    return data


def _source(path: Path, n: int) -> str:
    return f"{path.name}[{n}]"


def _understand(entry: dict[str, Any]) -> Run:
    messages = entry.get("traj")
    if not isinstance(messages, list) or not messages:
        info = entry.get("info")
        error = info.get("error") if isinstance(info, dict) else None
        reason = " ".join(str(error).split())[:200] if error else "no reason given"
        raise _Unreadable(f"the run has no conversation: {reason}")
    run = Run()
    spoken: list[str] = []
    at = 0
    while at < len(messages):
        message = messages[at]
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise _Unreadable(f"message {at} of the run has no role")
        at += 1
        role, text = message["role"], message.get("content") or ""
        if role == "system":
            run.system = "\n\n".join(part for part in (run.system, text) if part)
        elif role == "user":
            _listen(run, text)
        elif role == "tool":
            # An answer that nobody asked for: all that belong to calls were taken with their turn.
            run.notes["tool results that answer no call, left out"] += 1
        elif role == "assistant" and message.get("tool_calls"):
            answers = []
            while at < len(messages) and messages[at].get("role") == "tool":
                answers.append(messages[at])
                at += 1
            acts = list(_pairs(run, message["tool_calls"], answers))
            run.turns.append(("\n\n".join([*spoken, *([text] if text else [])]), acts))
            run.folded["assistant_messages"] += len(spoken)
            spoken = []
        elif role == "assistant":
            spoken.append(text)
        else:
            raise _Unreadable(f"message {at - 1} of the run has the unknown role {role!r}")
    run.closing = "\n\n".join(spoken)
    run.folded["assistant_messages"] += max(len(spoken) - 1, 0)
    return run


def _listen(run: Run, text: str) -> None:
    if STOP_MARK in text:
        run.folded["stop_marks"] += 1
        text = text.replace(STOP_MARK, "").strip()
    if text:
        run.folded["user_messages"] += bool(run.said)
        run.said.append(text)


def _pairs(run: Run, calls: Sequence[dict[str, Any]], answers: list[dict[str, Any]]) -> Iterator[Done]:
    """Each call of a turn with its answer: by id where the ids of this turn are one for one, else by position."""
    ids = [call.get("id") for call in calls]
    by_id = {answer.get("tool_call_id"): answer for answer in answers}
    whole = None not in ids and len(set(ids)) == len(ids) == len(answers) and set(ids) == set(by_id)
    ordered = [by_id[call_id] for call_id in ids] if whole else answers
    if len(ordered) > len(calls):
        run.notes["tool results that answer no call, left out"] += len(ordered) - len(calls)
    for n, entry in enumerate(calls):
        answer = ordered[n] if n < len(ordered) else None
        call = _call(run, entry, made_id=f"call_{len(run.turns) + 1}_{n + 1}", again=ids[:n])
        if answer is None:
            run.notes["tool calls without a recorded result"] += 1
        elif answer.get("name") not in (None, call.name):
            run.notes["results that carry another tool's name than their call, kept with the call"] += 1
        yield Done(call, None if answer is None else str(answer.get("content") or ""))


def _call(run: Run, entry: dict[str, Any], *, made_id: str, again: Sequence[Any]) -> ToolCall:
    function = entry.get("function") or {}
    name, given, call_id = function.get("name"), function.get("arguments"), entry.get("id")
    if not isinstance(name, str):
        raise _Unreadable("a tool call has no name")
    if not isinstance(call_id, str) or call_id in again:
        run.folded["made_call_ids"] += 1
        call_id = made_id
    if isinstance(given, dict):
        return tool_call(call_id, name, given)
    call = raw_call(call_id, name, str(given or ""))
    if call.whole:
        return call
    try:
        arguments = ast.literal_eval(str(given))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        raise _Unreadable(f"the arguments of a call of {name} are neither JSON nor a Python literal")
    run.folded["python_literal_arguments"] += 1
    return tool_call(call_id, name, arguments)


def _tools(done: Sequence[Done]) -> tuple[dict[str, Any], ...]:
    seen: dict[str, list[dict[str, Any]]] = {}
    for each in done:
        seen.setdefault(each.call.name, []).append(each.call.arguments)
    return tuple(
        {
            "name": name,
            "description": f"The tool {name} of the recorded environment.",
            "input_schema": schema_of_calls(calls),
        }
        for name, calls in seen.items()
    )


def _domain(*hints: str) -> str:
    """The part of tau-bench that a file is from: file name, beginnings of the policies and tool names tell."""
    text = " ".join(hints).lower()
    if "airline" in text or "_reservation" in text:
        return "airline"
    return "retail" if "retail" in text or "_order" in text else "other"


def _model(path: Path) -> str:
    found = re.match(r"(gpt-4o(?:-mini)?|gpt-4[\w.]*|claude-[\w.-]+?)(?=-(?:airline|retail)|\.)", path.name)
    return found[1] if found else "not-recorded"


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _trace(
    name: str,
    run: Run,
    tools: tuple[dict[str, Any], ...],
    *,
    domain: str,
    header: dict[str, Any],
    model: str,
) -> Trace:
    request = "\n\n".join(run.said)
    messages = [Message("system", run.system)] if run.system else []
    messages.append(Message("user", request))
    exchanges: list[Exchange] = []

    def add(exchange: Exchange) -> None:
        n = len(exchanges) + 1
        exchanges.append(replace(exchange, n=n, t_start=float(n - 1), t_end=float(n)))

    for text, acts in run.turns:
        calls = tuple(each.call for each in acts)
        add(_model_exchange(tuple(messages), tools, model, text=text, calls=calls, reply=f"{name}-{len(exchanges)}"))
        messages.append(Message("assistant", text, calls))
        for each in acts:
            add(_tool_exchange(each))
            messages.append(Message("tool", tool_results=(ToolResult(each.call.id, each.result or ""),)))
    add(_model_exchange(tuple(messages), tools, model, text=run.closing, calls=(), reply=f"{name}-{len(exchanges)}"))
    folded = {what: count for what, count in sorted(run.folded.items()) if count}
    if run.turns and not run.closing:
        # The recording stops at a tool result; a model that is asked again has to say something to end the run.
        folded["added_closing_turn"] = 1
    return Trace(
        name=name,
        request=request,
        exchanges=tuple(exchanges),
        task_type=f"tau-{domain}",
        provenance={"format": "tau-bench", **header, "declared": _DECLARED, "folded": folded, **_noted(run)},
        tools=tools,
    )


def _noted(run: Run) -> dict[str, Any]:
    return {"notes": dict(run.notes)} if run.notes else {}


def _model_exchange(
    messages: tuple[Message, ...],
    tools: tuple[dict[str, Any], ...],
    model: str,
    *,
    text: str,
    calls: tuple[ToolCall, ...],
    reply: str,
) -> Exchange:
    request = openai_chat.write_request(Conversation(messages, tools, model=model))
    said = len(text) + sum(len(call.name) + len(call.raw) for call in calls)
    asked = sum(
        len(message.text)
        + sum(len(call.name) + len(call.raw) for call in message.tool_calls)
        + sum(len(result.content) for result in message.tool_results)
        for message in messages
    )
    turn = Turn(
        text=text,
        tool_calls=calls,
        stop_reason="tool_use" if calls else "end_turn",
        input_tokens=asked // CHARACTERS_PER_TOKEN,
        output_tokens=said // CHARACTERS_PER_TOKEN,
    )
    response = {"status": 200, "body": openai_chat.write_reply(turn, model, f"chatcmpl-{reply}")}
    return Exchange(
        channel="model", n=0, t_start=0.0, t_end=0.0, api=openai_chat.api, request=request, response=response
    )


def _tool_exchange(done: Done) -> Exchange:
    failure = done.failure
    if done.result is None:
        status, body = 504, _error("unknown", "no result was recorded for this call")
    elif failure is not None:
        status, body = 400, _error("rejected", failure)
    else:
        status, body = 200, _result(done.result)
    return tool_exchange(done.call.name, done.call.arguments, status=status, body=body, t_start=0.0, t_end=0.0)


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"error": {"kind": kind, "message": message, "retryable": False}}


def _result(text: str) -> Any:
    try:
        return shallow(partial(json.loads, parse_constant=_no_number), text)
    except ValueError:
        return {"text": text}


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
