"""Parameters: one declaration refuses bad values, with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from injectors.parameters import Parameter

SECONDS = Parameter(type="number", default=1.0, unit="s", least=0, most=10)
COUNT = Parameter(type="integer", default=1, least=1)
WORD = Parameter(type="choice", default="fin", choices=("fin", "rst"))
TEXT = Parameter(type="text", default=None, optional=True)
FLAG = Parameter(type="flag", default=True)
EITHER = Parameter(type="choice|integer", default="number", choices=("number", "string"), least=1)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        (SECONDS, 0),
        (SECONDS, 10.0),
        (COUNT, 7),
        (WORD, "rst"),
        (TEXT, None),
        (TEXT, "a"),
        (FLAG, False),
        (EITHER, "string"),
        (EITHER, 3),
    ],
)
def test_good_values_pass(parameter: Parameter, value: Any) -> None:
    """Bounds are inclusive."""
    assert parameter.refusal(value) is None


@pytest.mark.parametrize(
    ("parameter", "value", "reason"),
    [
        (SECONDS, -0.1, "has to be a number of seconds from 0 to 10, not -0.1"),
        (SECONDS, float("nan"), "has to be a number of seconds from 0 to 10, not nan"),
        (SECONDS, float("inf"), "has to be a number of seconds from 0 to 10, not inf"),
        (SECONDS, "1", "has to be a number of seconds from 0 to 10, not '1'"),
        (SECONDS, True, "has to be a number of seconds from 0 to 10, not True"),
        (SECONDS, None, "has to be a number of seconds from 0 to 10, not null"),
        (COUNT, 1.0, "has to be a whole number from 1 on, not 1.0"),
        (COUNT, 0, "has to be a whole number from 1 on, not 0"),
        (WORD, "reset", "has to be `fin` or `rst`, not 'reset'"),
        (WORD, ["fin"], "has to be `fin` or `rst`, not ['fin']"),
        (TEXT, " ", "has to be a text, not ' '"),
        (FLAG, 1, "has to be true or false, not 1"),
        (EITHER, "numbers", "has to be `number` or `string` or a whole number from 1 on, not 'numbers'"),
        (EITHER, 0, "has to be `number` or `string` or a whole number from 1 on, not 0"),
    ],
)
def test_bad_values_are_refused_in_words(parameter: Parameter, value: Any, reason: str) -> None:
    """The sentence says what would be right."""
    assert parameter.refusal(value) == reason
