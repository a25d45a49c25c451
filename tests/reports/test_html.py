"""report.html: one file, everything escaped, the facts of the summary."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec

from reports.evidence import read_excerpts
from reports.html import MOST_TIMELINES, report_html, runs_to_show
from reports.results import HISTORY, Bound, FaultUse, Results, Ruling, RunResult
from reports.summary import summarise
from tests.reports.builders import acts, directory, double_charge, held, result, violated


class Page(HTMLParser):
    """Tags, texts and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remembers a tag."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Remembers a text."""
        self.words.append(data)


def page(*runs: RunResult, excerpts: Any = None, **more: Any) -> str:
    """The page of these runs."""
    results = Results(Path("out"), runs)
    return report_html(results, summarise(results), excerpts=excerpts, **more)


def test_a_violation_is_a_section_with_everything_about_it(tmp_path: Path) -> None:
    """Sentence, comparison with the marked difference, command, faults, time line in lanes."""
    run, history = double_charge()
    results = Results(directory(tmp_path, run, history=history), (run,))
    summary = summarise(results)
    excerpts = read_excerpts(tmp_path / HISTORY, runs_to_show(results, summary))
    text = report_html(results, summary, excerpts=excerpts)
    assert "<h1>1 violation in 1 of 1 run</h1>" in text
    assert "charge was executed twice." in text
    assert "The two effects that should have been one" in text
    marked = re.search(r'<tr class="differs"><th scope="row">idempotency_key</th>.*?</tr>', text, re.S)
    assert marked is not None
    assert ">k1<" in marked[0]
    assert ">k2<" in marked[0]
    assert "<code>stormproof run --scenario 204 --trace order-small</code>" in text
    assert "tool: executed-but-failed at charge#1/1, fired once" in text
    assert text.count('<tr class="proof">') == 2
    assert text.count('<tr class="fault">') == 1
    assert "charge applied r1-e2" in text
    assert "owner payments-oncall" in text


def test_the_page_needs_nothing_from_outside() -> None:
    """No address is loaded, and the policy allows none; only our own script and style may run."""
    run, _ = double_charge()
    parsed = Page(page(run))
    for tag, attributes in parsed.tags:
        assert tag not in {"link", "iframe", "img", "object", "base"}
        assert "src" not in attributes
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    policy = next(a["content"] for tag, a in parsed.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_a_hostile_trace_stays_text() -> None:
    """Markup, quotes, template marks, control and direction characters, wherever a trace can put them."""
    evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7*7 }}\x1b[31m\x00\u202e</style></script>"
    run = result(
        evil,
        trace=evil,
        scenario=evil,
        agent=evil,
        tenant=evil,
        status=evil,
        replay=evil,
        lines=(1, 3),
        verdicts=[violated(evil, 2, message=evil), Ruling(invariant=evil, verdict="held"), *held("single-effect")],
        faults=[FaultUse(kind=evil, layer=evil, site=evil, fired=1)],
        activations={evil: acts(3, 1, evil)},
        expect={evil: Bound(min=1.0)},
    )
    lines = [
        (1, {"type": evil, "run_id": evil, "t": 1.0, evil: evil}),
        (2, {"type": "effect", "run_id": evil, "t": 2.0, "tool": evil, "args": {evil: [evil]}}),
        (3, {"type": "exception", "run_id": evil, "t": 3.0, "name": evil, "message": evil}),
    ]
    text = page(run, result("r2", harness_error=evil), excerpts={evil: lines})
    parsed = Page(text)
    assert [tag for tag, _ in parsed.tags].count("script") == 1
    assert not [tag for tag, _ in parsed.tags if tag == "img"]
    assert not [a for _, a in parsed.tags if "onerror" in a]
    assert "{{ 7*7 }}" in text
    assert not set("\x1b\x00\u202e") & set(text)


def test_the_strip_shows_the_worst_verdict_of_a_cell() -> None:
    """One violated of three runs is a violated cell that says how the others went; each scenario has its own."""
    text = page(
        result("r1", trace="a", verdicts=[violated(), *held("single-effect")]),
        result("r2", trace="b"),
        result("r3", trace="c"),
        result("r4", number=301, scenario="Overloaded"),
    )
    assert 'title="single-effect: 1 violated, 2 held"' in text
    assert "✘ 1 <small>2 held</small>" in text
    assert 'title="budgets: 3 held"' in text


def test_violations_are_not_in_the_table_of_mechanisms() -> None:
    """The section on mechanisms holds rates, intervals, floors and statuses only."""
    run, _ = double_charge()
    text = page(run)
    section = text[text.index('aria-labelledby="mechanisms"') : text.index('aria-labelledby="findings"')]
    assert "retry" in section
    assert "100 %" in section
    assert "violat" not in section


def test_runs_can_be_filtered_by_what_tells_them_apart() -> None:
    """A select for scenario and verdict; none for an agent that is the same everywhere."""
    text = page(
        result("r1", verdicts=[violated(), *held("single-effect")]),
        result("r2", number=301, ordinary_failure=True, status="failed"),
    )
    assert '<select id="by-scenario">' in text
    assert '<option value="ordinary failure">' in text
    assert '<select id="by-agent">' not in text
    assert '<a href="#violation-1">duplicate-key</a>' in text


def test_everything_can_be_reached_by_keyboard_and_heard() -> None:
    """Scrolling tables take the focus and have names, table heads have scopes, pictures have labels."""
    run, _ = double_charge()
    for tag, attributes in Page(page(run)).tags:
        if tag == "th":
            assert attributes.get("scope") in {"row", "col"}
        if tag == "svg":
            assert attributes.get("aria-label")
        if attributes.get("role") == "region":
            assert attributes.get("aria-label")
            assert attributes.get("tabindex") == "0"


def test_a_big_result_stays_small() -> None:
    """2,000 runs with 300 violations stay under two megabytes; time lines only for the most telling."""
    run, history = double_charge()
    lines = [(n, msgspec.to_builtins(record)) for n, record in enumerate(history, start=1)]
    runs = [msgspec.structs.replace(run, run_id=f"v{n}", trace=f"t{n}") for n in range(300)]
    runs += [result(f"r{n}", number=100 + n % 40, trace=f"t{n}") for n in range(1700)]
    results = Results(Path("out"), tuple(runs))
    summary = summarise(results)
    chosen = runs_to_show(results, summary)
    assert len(chosen) == MOST_TIMELINES
    text = report_html(results, summary, excerpts={r.run_id: lines for r in chosen})
    assert text.count("What happened") == MOST_TIMELINES
    assert len(text.encode()) < 2_000_000


def test_an_empty_result_is_a_page_too() -> None:
    """Nothing judged: it says so."""
    text = page()
    assert "Undecided: no run at all was judged" in text
    assert "No mechanism had an opportunity" in text


def test_causes_come_first_in_menu_and_page() -> None:
    """Errors of the harness, violations, doubts, then the tables; the menu in the order of the page."""
    text = page(
        result("r1", verdicts=[violated(), *held("single-effect")]),
        result("r2", trace="b", harness_error="no such command", verdicts=[]),
        result("r3", trace="c", undecided="no traffic was seen"),
    )
    menu = re.findall(r'<li><a href="#([a-z-]+)">', text)
    assert menu == re.findall(r'<h2 id="([a-z-]+)">', text)
    assert menu[:4] == ["errors", "violations", "doubts", "verdicts"]


def test_runs_of_an_undecided_scenario_are_not_called_held() -> None:
    """A missed floor leaves its scenario undecided, and with it every run that broke nothing."""
    text = page(
        result("r1", number=108, activations={"retry": acts(2, 1)}, expect={"retry": Bound(min=1.0)}),
        result("r2", number=109),
        result("r3", number=110, verdicts=[*held("budgets"), Ruling(invariant="budgets", verdict="unobservable")]),
    )
    shown = dict(re.findall(r'<tr data-scenario="(\d+)" data-verdict="([a-z ]+)"', text))
    assert shown == {"108": "undecided", "109": "held", "110": "unobservable"}
    assert re.search(r'<span class="mono">108</span>[^\n]*<span class="pill undecided">', text)
    assert '<span class="pill below-floor">below-floor</span> in 108' in text


def test_words_and_reasons_are_explained_where_they_occur() -> None:
    """Only the words of this page, and why verdicts could not be told."""
    odd = Ruling(invariant="budgets", verdict="unobservable", message="tokens are limited, none is recorded")
    text = page(result(verdicts=[*held("budgets"), odd]))
    assert '<p class="hint"><em>unobservable</em>: the history does not tell' in text
    assert "<li>unobservable: budgets, 1 run: tokens are limited, none is recorded</li>" in text
    assert "<em>vacuous</em>" not in text
    assert ">1 run</output>" in text


def test_on_a_narrow_screen_every_value_brings_its_heading() -> None:
    """Tables are stacked there without their head, so each cell carries the heading's name."""
    run, history = double_charge()
    lines = [(n, msgspec.to_builtins(record)) for n, record in enumerate(history, start=1)]
    text = page(run, excerpts={"r1": lines})
    assert text.count("<table") == text.count('stack"><thead') + text.count('stack">\n<thead') == 6
    for heading in ("single-effect", "service", "acted", "verdict"):
        assert f'data-label="{heading}"' in text
    assert '<th scope="col">agent</th>' in text
    assert '<th scope="col">harness</th>' in text
