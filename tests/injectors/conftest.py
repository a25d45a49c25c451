"""One proxy for all tests of the injectors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.injectors.rig import Rig


@pytest.fixture(scope="session")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """The proxy with its counting service."""
    confdir = tmp_path_factory.mktemp("confdir")
    made = Rig(confdir)
    yield made
    made.stop()
    assert list(confdir.iterdir()) == [], "mitmproxy wrote into its folder"
