"""What every kind of fault has to keep, run over the catalogue: a new kind is held to it from its first line."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from injectors.actions import Action
from injectors.catalogue import KINDS, FaultError, described, fault_from
from injectors.core import Aftermath, Fault, Moment, Place, Point, Reply, Request
from injectors.parameters import Parameter, parameters_of
from injectors.plan import Plan
from traces.providers import PROVIDERS, Provider
from traces.providers.sse import json_bytes
from traces.providers.turn import Turn, tool_call

ACTIONS = get_args(Action)
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)

TURN = Turn(
    text="Charging the card now.",
    tool_calls=(tool_call("call_1", "charge", {"order_id": "o-1001", "cents": 1200, "note": "a longer text"}),),
    stop_reason="tool_use",
)


def values_of(parameter: Parameter) -> list[Any]:
    """Good values of a parameter: its default and the ends of what it allows."""
    found = [parameter.default, *parameter.choices]
    if "flag" in parameter.type:
        found += [True, False]
    if "text" in parameter.type:
        found.append("charge")
    if "number" in parameter.type or "integer" in parameter.type:
        found += [int(bound) for bound in (parameter.least, parameter.most) if bound is not None]
    return found


def variants(kind: type[Fault]) -> Iterator[Fault]:
    """Faults of a kind: each parameter in turn at each of its values, everywhere the kind can strike."""
    for channel in sorted(kind.channels):
        at = {"model": True} if channel == "model" else {"tool": "charge"}
        yield fault_from(kind=kind.kind, at=at)
        for name, parameter in parameters_of(kind).items():
            for value in values_of(parameter):
                yield fault_from(kind=kind.kind, at=at, parameters={name: value})


def moments(fault: Fault) -> Iterator[Moment]:
    """All crossings of an attempt that the fault covers, with every shape of reply."""
    if fault.at.model:
        place = Place(channel="model", call=1, attempt=1)
        for provider in PROVIDERS:
            request = Request("POST", provider.path, b"{}", api=provider.api)
            yield from crossings(place, request, [model_reply(provider, stream=stream) for stream in (True, False)])
    else:
        place = Place(channel="tool", tool="charge", call=1, attempt=1)
        request = Request("POST", "/tools/charge", b'{"order_id":"o-1001"}', tool="charge")
        answer = Reply(200, (("content-type", "application/json"),), b'{"id":"ch_1","state":"captured"}')
        yield from crossings(place, request, [answer])


def crossings(place: Place, request: Request, replies: list[Reply]) -> Iterator[Moment]:
    """The three points of an attempt."""
    yield Moment(Point.BEFORE_SEND, place, request)
    for reply in replies:
        yield Moment(Point.AFTER_EFFECT, place, request, reply)
        yield Moment(Point.AFTER_REPLY, place, request, reply)


def model_reply(provider: Provider, *, stream: bool) -> Reply:
    """A reply of the model that calls a tool."""
    if stream:
        return Reply(200, (("content-type", "text/event-stream"),), b"".join(provider.write_stream(TURN, "m", "id")))
    body = json_bytes(provider.write_reply(TURN, "m", "id"))
    return Reply(200, (("content-type", "application/json"),), body)


@each_kind
def test_a_kind_tells_what_it_does(kind: type[Fault]) -> None:
    """Name, layer, what each side sees, and a docstring; names are words joined by hyphens."""
    data = described(kind)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", kind.kind)
    for name in ("agent_sees", "world_sees"):
        assert data[name].endswith(".")
    assert isinstance(data["changes_server_state"], bool)
    assert (kind.__doc__ or "").strip()
    for parameter in parameters_of(kind).values():
        assert parameter.refusal(parameter.default) is None, "a default has to be a good value"


@each_kind
def test_a_fault_is_data(kind: type[Fault]) -> None:
    """Frozen, slotted, hashable, and its fields beyond the common ones are all declared parameters."""
    fault = next(variants(kind))
    with pytest.raises(dataclasses.FrozenInstanceError):
        fault.times = 2  # type: ignore[misc]
    assert not hasattr(fault, "__dict__")
    assert hash(fault) == hash(dataclasses.replace(fault))
    common = {field.name for field in dataclasses.fields(Fault)}
    own = {field.name for field in dataclasses.fields(kind)} - common
    assert own == set(parameters_of(kind))


@each_kind
def test_a_fault_goes_to_a_scenario_file_and_back(kind: type[Fault]) -> None:
    """What it writes is read as the same fault."""
    for fault in variants(kind):
        data = fault.to_data()
        again = fault_from(kind=data["kind"], at=data["at"], times=data["times"], parameters=data["with"])
        assert again == fault


@each_kind
def test_acting_is_pure(kind: type[Fault]) -> None:
    """The same moment gives equal actions, however often and in whatever order it is asked; only known actions."""
    for fault in variants(kind):
        all_moments = list(moments(fault))
        there = [fault.act(moment) for moment in all_moments]
        back = [fault.act(moment) for moment in reversed(all_moments)]
        assert there == back[::-1]
        assert all(isinstance(action, ACTIONS) for actions in there for action in actions)


@each_kind
def test_a_fault_acts_at_its_own_point_and_nowhere_else(kind: type[Fault]) -> None:
    """At its point some reply gives it hold; at other points it wants nothing."""
    for fault in variants(kind):
        acted = {moment.point for moment in moments(fault) if fault.act(moment)}
        assert acted <= {fault.strikes_at}
    assert any(fault.act(moment) for fault in variants(kind) for moment in moments(fault))


@each_kind
def test_the_aftermath_is_as_declared(kind: type[Fault]) -> None:
    """What goes on is held or replaced, what is answered is answered before the send, what ends is nothing else."""
    going_on = {"Delay", "Replace"}
    for fault in variants(kind):
        for moment in moments(fault):
            names = {type(action).__name__ for action in fault.act(moment)}
            if not names:
                continue
            if fault.aftermath is Aftermath.GOES_ON:
                assert names <= going_on
            elif fault.aftermath is Aftermath.IS_ANSWERED:
                assert names == {"Respond"}
                assert moment.point is Point.BEFORE_SEND
            else:
                assert not names & {"Respond", *going_on}


@each_kind
def test_bad_values_are_refused_with_the_reason(kind: type[Fault]) -> None:
    """No parameter takes a list, a number below its bound, or a word it does not know."""
    for name, parameter in parameters_of(kind).items():
        bad: list[Any] = [["x"], {"a": 1}, float("nan")]
        bad += [parameter.least - 1] if parameter.least is not None else []
        bad += [parameter.most + 1] if parameter.most is not None else []
        bad += ["no-such-word"] if parameter.choices else []
        for value in bad:
            with pytest.raises(FaultError) as caught:
                fault_from(kind=kind.kind, at=next(variants(kind)).at.to_data(), parameters={name: value})
            assert [f"`{name}`" in message for message in caught.value.messages] == [True]


@each_kind
@given(arrivals=st.permutations([(call, attempt) for call in (1, 2, 3) for attempt in (1, 2, 3)]))
def test_the_order_of_arrival_changes_nothing(kind: type[Fault], arrivals: list[tuple[int, int]]) -> None:
    """Concurrent calls in any order: the same attempts meet the same decisions."""
    at: dict[str, Any] = {"model": True} if "tool" not in kind.channels else {"tool": "charge"}
    plan = Plan((fault_from(kind=kind.kind, at=at | {"call": 2}, times=2),))
    template = next(moment for moment in moments(plan.faults[0]) if plan.faults[0].act(moment))
    struck = set()
    for call, attempt in arrivals:
        place = dataclasses.replace(template.place, call=call, attempt=attempt)
        if plan.decide(dataclasses.replace(template, place=place)):
            struck.add((call, attempt))
    assert struck == {(2, 1), (2, 2)}


@each_kind
def test_nothing_armed_nothing_wanted(kind: type[Fault]) -> None:
    """A moment outside the range of the fault is let pass: healed faults leave nothing behind."""
    for fault in variants(kind):
        for moment in moments(fault):
            elsewhere = dataclasses.replace(moment, place=dataclasses.replace(moment.place, attempt=2))
            assert Plan((fault,)).decide(elsewhere) == ()
