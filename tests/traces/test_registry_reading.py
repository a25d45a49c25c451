"""What a tools registry must not say."""

from __future__ import annotations

from typing import Any

import pytest

from traces.registry import RegistryError
from traces.registry_reading import registry_from

REFUND = {"idempotency": "keyed", "severity": "money"}


def faults_of(data: Any) -> list[str]:
    """All faults of a registry, each with its place."""
    with pytest.raises(RegistryError) as caught:
        registry_from(data)
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("tool", "fault"),
    [
        ({}, "charge: `idempotency` is missing"),
        ({"idempotency": "keyd"}, "charge.idempotency: must be one of natural, keyed, irreversible, not 'keyd'"),
        ({"idempotency": "keyed"}, "charge: has effects but no `compensation`; name one, or say `avoid: true`"),
        (
            {"idempotency": "irreversible", "avoid": True, "retry": True},
            "charge.retry: contradiction: an irreversible tool cannot be retried automatically",
        ),
        (
            {"idempotency": "keyed", "compensation": {"tool": "refnd"}},
            "charge.compensation.tool: unknown tool 'refnd'; did you mean 'refund'?",
        ),
        ({"idempotency": "keyed", "compensation": {"tool": "charge"}}, "a tool cannot undo itself"),
        ({"idempotency": "keyed", "compensation": {"tool": "look"}}, "look undoes it, yet has severity none"),
        ({"idempotency": "natural", "compensation": {"tool": "refund"}}, "severity none has nothing to undo"),
        ({"idempotency": "keyed", "compensation": {"strength": "weak"}}, "a weak compensation names the tool"),
        (
            {"idempotency": "keyed", "compensation": {"tool": "refund", "strength": "none"}},
            "yet the strength is none",
        ),
        ({"idempotency": "keyed", "compensation": {"tool": "refund", "of": {"arg": "$.id"}}}, "`result` is missing"),
        (
            {"idempotency": "keyed", "compensation": {"tool": "refund", "until_s": "soon"}},
            "must be a number of seconds",
        ),
        (
            {"idempotency": "natural", "latency": {"p50_s": 1, "p95_s": 2, "p99_s": 3, "samples": 40}},
            "charge.latency.samples: 40 calls cannot show a p99; at least 100 are needed",
        ),
        (
            {"idempotency": "natural", "latency": {"p50_s": 3, "p95_s": 2, "p99_s": 4, "samples": 400}},
            "charge.latency: contradiction: p50 3, p95 2 and p99 4 must not fall",
        ),
        ({"idempotency": "natural", "latency": {"p50_s": 1}}, "charge.latency: `p95_s` is missing"),
        ({"idempotency": "natural", "sevrity": "money"}, "charge.sevrity: unknown field; did you mean 'severity'?"),
        ({"idempotency": "natural", "confirm": "yes"}, "charge.confirm: must be true or false, not a text"),
        ({"idempotency": "natural", "version": 0}, "charge.version: must be a whole number of at least 1"),
        ({"idempotency": "natural", "match": {"mcp": "a", "path": "/b"}}, "charge.match: is either {mcp: NAME}"),
        ({"idempotency": "natural", "key": {}}, "charge.key: is either {header: NAME} or {json: PATH}"),
        ({"idempotency": "natural", "intent": {"json": []}}, "charge.intent.json: must be a list of paths"),
        (
            {"idempotency": "natural", "intent": {"json": ["order_id"]}},
            "charge.intent.json.0: a path starts with `$`",
        ),
        (
            {"idempotency": "natural", "normalise": {"drop": "ts"}},
            "charge.normalise.drop: must be a list of field names",
        ),
        ([], "charge: must be a mapping, not a list"),
    ],
)
def test_fault_is_told_with_its_place(tool: Any, fault: str) -> None:
    """Each thing wrong is told with where it is and what would be right."""
    faults = faults_of({"charge": tool, "refund": REFUND, "look": {"idempotency": "natural"}})
    assert any(fault in told for told in faults), faults


def test_all_faults_at_once_in_order() -> None:
    """Faults of several tools come together, in the order of the file."""
    faults = faults_of({"b": {"idempotency": "no"}, "a": {}, "refund": REFUND})
    assert [fault.split(".")[0].split(":")[0] for fault in faults] == ["b", "b", "a", "a", "refund"]


@pytest.mark.parametrize("data", [None, [], {}, "x"])
def test_no_registry_at_all(data: Any) -> None:
    """An empty file, a list or a text is no registry."""
    assert faults_of(data) == ["a tools registry is a mapping from tool names to their descriptions"]


def test_undo_needs_no_undo_and_none_is_an_answer() -> None:
    """A tool that undoes another needs no undo of its own; `strength: none` says that there is none."""
    tools = registry_from(
        {
            "charge": {"idempotency": "keyed", "compensation": {"tool": "refund"}},
            "refund": REFUND,
            "mail": {"idempotency": "irreversible", "compensation": {"strength": "none"}},
        }
    ).tools
    assert (tools["mail"].retry, tools["charge"].retry) == (False, True)
