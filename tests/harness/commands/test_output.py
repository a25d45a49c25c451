"""Where commands write, and what they print."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.commands import importing, masking
from harness.commands.output import print_lines
from harness.errors import InputError


def test_a_file_where_a_folder_belongs(tmp_path: Path) -> None:
    """`--out` that names a file, or something below one, is refused before anything is read."""
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError, match="name a folder"):
            masking.execute([], out=out, json=False, quiet=True)
        with pytest.raises(InputError, match="name a folder"):
            importing.execute("tau-bench", [], out=out, writing_only=False, json=False, quiet=True)


def test_lines_for_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters are replaced, and the blanks of indented lines and columns stay."""
    print_lines(["  a   b\x1b[2J\x07\0"])
    assert capsys.readouterr().out == "  a   b\ufffd\ufffd\n"
