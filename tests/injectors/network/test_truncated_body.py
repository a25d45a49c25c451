"""`truncated-body`: the answer breaks off."""

from __future__ import annotations

import httpx
import pytest

from tests.injectors.rig import CHARGE, CHARGE_RESULT, Rig, fault
from traces.providers.sse import json_bytes

WHOLE = json_bytes(CHARGE_RESULT)


@pytest.mark.parametrize(("end", "heard_end"), [("silence", "open"), ("fin", "fin"), ("rst", "rst")])
def test_the_head_announces_more_than_comes(rig: Rig, end: str, heard_end: str) -> None:
    """The content length is right, half the body comes, then the connection ends (or does not) as asked for."""
    with rig.run(fault("truncated-body", end=end)) as run:
        heard = run.charge(timeout=0.3)
        assert heard.status == 200
        assert heard.headers["content-length"] == str(len(WHOLE))
        assert heard.body == WHOLE[: len(WHOLE) // 2]
        assert heard.end == heard_end
        assert len(run.executed) == 1
        assert run.outcomes == ["unknown"]
        assert run.fired == 1


@pytest.mark.parametrize(("keep", "kept"), [(0, 0), (5, 5), (10**6, len(WHOLE) - 1)])
def test_at_least_one_byte_is_missing(rig: Rig, keep: int, kept: int) -> None:
    """`keep` bytes come, but never all."""
    with rig.run(fault("truncated-body", keep=keep)) as run:
        assert run.charge().body == WHOLE[:kept]


def test_a_stream_breaks_off_without_its_last_chunk(rig: Rig) -> None:
    """A streamed reply keeps its chunked coding and never gets the chunk that ends it."""
    with rig.run(fault("truncated-body", at={"model": True}, keep=100)) as run:
        heard = run.ask()
        body, ended = heard.unchunked
        assert (len(body), ended, heard.end) == (100, False, "fin")
        assert heard.headers["content-type"] == "text/event-stream"


def test_a_client_library_notices(rig: Rig) -> None:
    """httpx complains of an incomplete body."""
    with rig.run(fault("truncated-body")) as run, httpx.Client() as client, pytest.raises(httpx.RemoteProtocolError):
        client.post(f"http://127.0.0.1:{run.port}/tools/charge", json=CHARGE)
