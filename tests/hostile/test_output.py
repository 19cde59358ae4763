"""What is printed or written cannot command what reads it: a terminal, a spreadsheet, a browser."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

pytest.importorskip("flashbed._sim", reason="the simulator is not compiled; make build")

from flashbed.base.frames import as_csv
from tests.hostile.test_recordings import PROGRAM, packed
from tests.support import PROJECT

FLASHBED = str(Path(sys.executable).parent / "flashbed")
TITLE = "\x1b]0;owned\x07"
"""Sets the title of a terminal."""


def on_a_terminal(folder: Path, *arguments: str) -> bytes:
    """What a command prints on a terminal."""
    ours, theirs = pty.openpty()
    command = [FLASHBED, *arguments]
    with subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs):
        os.close(theirs)
        said = b""
        with suppress(OSError):  # the last one that had the terminal has closed it
            while some := os.read(ours, 1 << 16):
                said += some
    os.close(ours)
    return said


@pytest.mark.parametrize(
    "arguments",
    [
        ("prepare", "--on", TITLE), ("run", "a.rec", "--out", f"{TITLE}o"),
        ("ops", "cut", "a.rec", "--first", "1", "-o", f"{TITLE}b.rec"),
        ("ops", "check", f"{TITLE}a.rec"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_no_name_commands_the_terminal(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    for name in ("a.rec", f"{TITLE}a.rec"):
        (tmp_path / name).write_bytes(packed(list(PROGRAM)))
    said = on_a_terminal(tmp_path, *arguments)
    assert said
    assert b"\x1b]" not in said


def test_a_cell_of_text_is_no_formula() -> None:
    texts = ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "a=1", "", None, "'=1"]
    found = as_csv(pl.DataFrame({"text": texts, "number": list(range(-5, 5))}))
    assert found["text"].to_list() == [
        "'=1+1", "'+1", "'-1", "'@x", "'\t=1", "'\r=1", "a=1", "", None, "'=1",
    ]  # fmt: skip
    assert found["number"].to_list() == list(range(-5, 5))


def test_figures_under_a_limit_of_addresses_are_refused_in_one_line() -> None:
    """The engine aborted with 36 lines of its stack."""
    program = "from flashbed.report.engine import need_engine; need_engine()"
    done = subprocess.run(
        ["sh", "-c", 'ulimit -v 8388608; exec "$@"', "sh", sys.executable, "-c", program],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1)
    if done.returncode:
        assert done.stderr.splitlines()[-1].endswith("raise `ulimit -v`")


def test_a_page_opens_at_any_address() -> None:
    script = (PROJECT / "python" / "flashbed" / "report" / "page.js").read_text()
    called = script.index("decodeURIComponent(")
    assert script.rindex("try {", 0, called) > script.rindex("function", 0, called)
