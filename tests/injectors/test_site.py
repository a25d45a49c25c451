"""Sites: where a fault strikes, by execution index."""

from __future__ import annotations

from typing import Any

import pytest

from injectors.site import Place, Site, SiteError, site_from


def tool(call: int, attempt: int = 1, name: str = "charge") -> Place:
    """A place among tool calls."""
    return Place(channel="tool", tool=name, call=call, attempt=attempt, group="payments", group_call=call + 1)


@pytest.mark.parametrize(
    ("at", "site"),
    [
        ({"tool": "charge"}, Site(tool="charge")),
        ({"tool": "charge", "call": 2, "attempt": 3}, Site(tool="charge", call=2, attempt=3)),
        ({"tool": "charge", "call": "all"}, Site(tool="charge", call=None)),
        ({"group": "payments", "call": 2}, Site(group="payments", call=2)),
        ({"model": True}, Site(model=True)),
        ({"model": 2}, Site(model=True, call=2)),
        ({"model": True, "call": 2}, Site(model=True, call=2)),
    ],
)
def test_every_form_is_read(at: dict[str, Any], site: Site) -> None:
    """The forms of a scenario file, and back again."""
    assert site_from(at) == site
    assert site_from(site.to_data()) == site


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("charge", "has to name a site"),
        ({}, "exactly one of"),
        ({"model": False}, "exactly one of"),
        ({"tool": "a", "group": "b"}, "not tool and group"),
        ({"tool": 7}, "has to be a name"),
        ({"tool": "a", "call": 0}, "from 1 on"),
        ({"tool": "a", "call": True}, "from 1 on"),
        ({"tool": "a", "call": "every"}, "`all`"),
        ({"tool": "a", "attempt": 1.5}, "from 1 on"),
        ({"tool": "a", "when": 1}, "has no `when`"),
        ({"model": 2, "call": 3}, "twice"),
    ],
)
def test_what_names_no_site_is_refused_with_the_reason(at: Any, words: str) -> None:
    """A mistake is told in words."""
    with pytest.raises(SiteError, match=words):
        site_from(at)


def test_all_mistakes_are_told_at_once() -> None:
    """Three mistakes are three messages."""
    with pytest.raises(SiteError) as caught:
        site_from({"tool": "a", "call": 0, "attempt": "x", "when": 1})
    assert len(caught.value.messages) == 3


def test_a_range_is_so_many_attempts_of_one_call() -> None:
    """`times` counts attempts from the site on, in its call only."""
    site = Site(tool="charge", call=2, attempt=2)
    struck = [(call, attempt) for call in (1, 2, 3) for attempt in range(1, 6) if site.covers(tool(call, attempt), 2)]
    assert struck == [(2, 2), (2, 3)]


def test_for_ever_and_everywhere() -> None:
    """Without limits every attempt of every call is struck, of this tool only."""
    site = Site(tool="charge", call=None)
    assert all(site.covers(tool(call, attempt), None) for call in (1, 9) for attempt in (1, 99))
    assert not site.covers(tool(1, name="refund"), None)


def test_a_group_has_numbers_of_its_own() -> None:
    """A group's calls are counted over all its tools; the model is no member of any group."""
    assert Site(group="payments", call=2).covers(tool(1))
    assert not Site(group="payments", call=1).covers(tool(1))
    assert not Site(group="").covers(Place(channel="model", call=1, attempt=1))


def test_the_model_is_another_channel() -> None:
    """A model site covers model calls only."""
    place = Place(channel="model", call=1, attempt=1)
    assert Site(model=True).covers(place)
    assert not Site(model=True).covers(tool(1))
    assert not Site(tool="model").covers(place)


def test_places_and_sites_read_alike() -> None:
    """Both are written as records and reports show them."""
    assert str(tool(1)) == str(Site(tool="charge")) == "charge#1/1"
    assert str(Place(channel="model", call=2, attempt=1)) == str(Site(model=True, call=2)) == "model#2/1"
    assert str(Site(group="payments", call=None)) == "group payments#*/1"
