"""Random turns, arguments and conversations, as hypothesis strategies."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from traces.providers.turn import ToolCall, Turn, tool_call

searched = settings(max_examples=50, deadline=None)
"""How hard to look. No deadline: the machine may be busy, and nothing here is about time."""

texts = st.text(st.characters(codec="utf-8"), max_size=40)
names = st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True)
numbers = st.integers(-(10**15), 10**15) | st.floats(allow_nan=False, allow_infinity=False, width=32)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
arguments: st.SearchStrategy[dict[str, Any]] = st.dictionaries(texts, json_values, max_size=5)


@st.composite
def tool_calls(draw: st.DrawFn) -> tuple[ToolCall, ...]:
    """Up to four calls with ids of their own."""
    made = draw(st.lists(st.tuples(names, arguments), max_size=4))
    return tuple(tool_call(f"call_{n}", name, given) for n, (name, given) in enumerate(made))


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    """A whole turn of a model, with calls or without."""
    calls = draw(tool_calls())
    return Turn(
        text=draw(texts),
        tool_calls=calls,
        stop_reason="tool_use" if calls else draw(st.sampled_from(["end_turn", "max_tokens"])),
        input_tokens=draw(st.integers(0, 10**6)),
        output_tokens=draw(st.integers(0, 10**5)),
    )
