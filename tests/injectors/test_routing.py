"""Routes: where a request on a run's port belongs."""

from __future__ import annotations

import pytest

from injectors.routing import Route, route
from traces.registry_reading import registry_from

REGISTRY = registry_from(
    {
        "charge": {
            "match": {"method": "POST", "path": "/tools/charge"},
            "idempotency": "keyed",
            "severity": "money",
            "avoid": True,
        },
        "search": {"match": {"method": "GET", "path": "/catalogue/search"}, "idempotency": "natural"},
    }
)


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("POST", "/v1/messages", Route("model", "/v1/messages", api="anthropic-messages")),
        ("POST", "//v1//messages?beta=1", Route("model", "/v1/messages?beta=1", api="anthropic-messages")),
        ("POST", "/v1/chat/completions", Route("model", "/v1/chat/completions", api="openai-chat")),
        ("POST", "/tools/charge", Route("tools", "/tools/charge", tool="charge")),
        ("POST", "/tools//charge", Route("tools", "/tools/charge", tool="charge")),
        ("POST", "/tools/stranger", Route("tools", "/tools/stranger", tool="stranger")),
        ("GET", "/catalogue/search?q=a//b", Route("tools", "/catalogue/search?q=a//b", tool="search")),
        (
            "GET",
            "/tools/charge/status?key=k%201",
            Route("tools", "/tools/charge/status?key=k%201", tool="charge", asks_outcome=True, key="k 1"),
        ),
    ],
)
def test_known_endpoints(method: str, path: str, expected: Route) -> None:
    """Model, tools, status queries; doubled slashes count as one, but not in a query."""
    assert route(method, path, REGISTRY) == expected


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/messages", "the base URL of this client has to end in /v1"),
        ("/chat/completions", "the base URL of this client has to end in /v1"),
        ("/v1/v1/messages", "the base URL of this client must not end in /v1"),
        ("/", "/ is no endpoint here; there are /v1/messages"),
        ("/tools/a/b/c", "no endpoint"),
    ],
)
def test_everything_else_goes_nowhere_with_words(path: str, words: str) -> None:
    """The words say what would be right."""
    found = route("POST", path, REGISTRY)
    assert found.target == "nowhere"
    assert words in found.words


@pytest.mark.parametrize(
    "path",
    [
        "/tools/%63harge",
        "/tools/charge%2Fstatus",
        "/tools/charge#x",
        "/tools/charge?key=k#x",
        "/tools/x/../charge",
        "/tools/./charge",
        "/tools/x\\charge",
        "/v1/%6dessages",
    ],
)
def test_what_is_not_written_plainly_goes_nowhere(path: str) -> None:
    """What the service might read as another path than the proxy is refused, and the words say why."""
    found = route("POST", path, REGISTRY)
    assert (found.target, found.path) == ("nowhere", path)
    assert f"{path} is not written plainly" in found.words


def test_a_tool_with_the_name_of_a_status_query_is_called() -> None:
    """`/status` below a name that is no tool's is the call of the tool that is declared there."""
    registry = registry_from(
        {"status": {"match": {"method": "GET", "path": "/status"}, "idempotency": "natural"}},
    )
    assert route("GET", "/tools/nobody/status", registry) == Route("tools", "/tools/nobody/status", tool="status")
