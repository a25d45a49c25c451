"""`overloaded`: the model's provider has no capacity."""

from __future__ import annotations

import pytest

from tests.injectors.rig import Rig, model_fault


@pytest.mark.parametrize(
    ("api", "status", "kind"), [("anthropic", 529, "overloaded_error"), ("openai", 503, "server_error")]
)
@pytest.mark.parametrize("retry_after_s", [None, 7])
def test_each_provider_says_it_its_own_way(
    rig: Rig, api: str, status: int, kind: str, retry_after_s: int | None
) -> None:
    """529 from Anthropic, 503 from OpenAI, a Retry-After only where asked for; the model has seen nothing."""
    with rig.run(model_fault("overloaded", retry_after_s=retry_after_s)) as run:
        heard = run.ask(api=api)
        assert heard.status == status
        assert heard.json["error"]["type"] == kind
        assert heard.headers.get("retry-after") == (None if retry_after_s is None else "7")
        assert run.executed == []
        assert run.fired == 1


def test_the_second_attempt_passes(rig: Rig) -> None:
    """An equal body is another attempt of the same call, and the model answers it."""
    with rig.run(model_fault("overloaded")) as run:
        assert [run.ask().status for _ in range(2)] == [529, 200]
        assert [record.attempt for record in run.of_type("model_call_started")] == [1, 2]
        assert [record.step for record in run.of_type("model_call_started")] == [1, 1]


def test_the_second_call_is_another_site(rig: Rig) -> None:
    """A fault on the second call leaves the first alone, however often that is tried."""
    with rig.run(model_fault("overloaded", call=2)) as run:
        statuses = [run.ask(say=text).status for text in ("one", "one", "two", "two")]
        assert statuses == [200, 200, 529, 200]
