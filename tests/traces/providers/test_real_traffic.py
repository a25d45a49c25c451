"""Recorded traffic of the real providers, from public cassettes: what was accepted passes, what was said is read."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from traces.providers import Provider, for_path, refragment

CASSETTES = Path(__file__).resolve().parents[4] / "shared" / "real-traces" / "vcr-cassettes"
HOSTS = {"api.anthropic.com", "api.openai.com"}
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Interaction:
    """One request that a real provider answered."""

    cassette: str
    provider: Provider
    request: Any
    status: int
    content_type: str
    body: bytes


@pytest.fixture(scope="module")
def traffic() -> list[Interaction]:
    """All interactions with the providers known here; skips where the cassettes are not there."""
    if not CASSETTES.is_dir():
        pytest.skip(f"the recorded cassettes are not there ({CASSETTES})")
    return [each for path in sorted(CASSETTES.rglob("*.yaml")) for each in _interactions(path)]


def _interactions(path: Path) -> Iterator[Interaction]:
    text = path.read_text(encoding="utf-8")
    if not any(host in text for host in HOSTS) or "embeddings" in path.name:
        return
    for entry in yaml.load(text, Loader=LOADER)["interactions"]:
        asked, answered = entry["request"], entry["response"]
        address = urlsplit(asked["uri"])
        provider = for_path(address.path)
        request = asked.get("parsed_body") or json.loads(asked.get("body") or "null")
        if provider is None or address.hostname not in HOSTS or request is None:
            continue
        headers = {name.lower(): value for name, value in answered["headers"].items()}
        kind = headers.get("content-type", "")
        yield Interaction(
            cassette=path.name,
            provider=provider,
            request=request,
            status=answered["status"]["code"],
            content_type=kind[0] if isinstance(kind, list) else kind,
            body=_body(answered),
        )


def _body(answered: dict[str, Any]) -> bytes:
    if answered.get("parsed_body") is not None:
        return json.dumps(answered["parsed_body"]).encode()
    body = (answered.get("body") or {}).get("string") or b""
    raw: bytes = body.encode() if isinstance(body, str) else body
    if raw.startswith(b"\x1f\x8b"):
        try:
            return gzip.decompress(raw)
        except EOFError:  # some recordings end early
            return zlib.decompressobj(31).decompress(raw)
    return raw


def test_there_is_enough(traffic: list[Interaction]) -> None:
    """Both providers, plain and streamed, with tool calls in each: else the other tests here would say little."""
    seen = {
        (each.provider.api, "event-stream" in each.content_type)
        for each in traffic
        if each.provider.read_reply(each.status, each.content_type, each.body).tool_calls
    }
    assert len(seen) == 4
    assert len(traffic) > 200


def test_accepted_requests_are_accepted(traffic: list[Interaction]) -> None:
    """No request that a provider answered with 200 is refused here."""
    refused = [
        (each.cassette, each.provider.check_request(each.request))
        for each in traffic
        if each.status == 200 and each.provider.check_request(each.request) is not None
    ]
    assert refused == []


def test_replies_are_read_whole(traffic: list[Interaction]) -> None:
    """Every answer with a known content type is read as a turn that ended; those cut by the limit say so."""
    for each in traffic:
        turn = each.provider.read_reply(each.status, each.content_type, each.body)
        if each.status == 200 and each.content_type:
            assert turn.complete or turn.stop_reason == "max_tokens", each.cassette
            if "functions" not in each.request:  # the call format before tools, which no client sends now
                assert turn.text or turn.tool_calls, each.cassette
            assert all(call.whole and call.id and call.name for call in turn.tool_calls), each.cassette
            assert turn.output_tokens > 0 or "event-stream" in each.content_type, each.cassette
        if each.status >= 400:
            assert not turn.complete


def test_streams_are_written_as_they_were_meant(traffic: list[Interaction]) -> None:
    """A real stream, split anew by our writer, says the same."""
    for each in traffic:
        if each.status == 200 and "event-stream" in each.content_type:
            again = refragment(each.provider, each.body)
            first = each.provider.read_reply(200, each.content_type, each.body)
            assert each.provider.read_reply(200, each.content_type, again) == first, each.cassette


def test_requests_survive_reading_and_writing(traffic: list[Interaction]) -> None:
    """A conversation read from a real request and written again is read the same."""
    for each in (each for each in traffic if each.status == 200):
        talk = each.provider.read_request(each.request)
        again = each.provider.read_request(each.provider.write_request(talk))
        said, meant = ([m for m in t.messages if m.role != "system"] for t in (again, talk))
        assert said == meant, each.cassette
