"""Generated pages are what the code says."""

from __future__ import annotations

from harness.documentation import faults_page
from harness.settings import APPLICATION


def test_faults_page_is_current() -> None:
    """`docs/faults.md` is what `make docs` would write now."""
    assert (APPLICATION / "docs" / "faults.md").read_text(encoding="utf-8") == faults_page(), "run `make docs`"
