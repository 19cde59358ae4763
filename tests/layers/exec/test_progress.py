"""The line that `flashbed exec` shows on a terminal: what it says, and when."""

from __future__ import annotations

import re
import sys
from io import StringIO
from pathlib import Path
from struct import pack

import pytest

from flashbed.targets.exec import progress
from flashbed.targets.exec.progress import line, progress_line
from tests.support import PROJECT

HEADER = "kernel/uml/programs/tree/arch/um/include/shared/flashbed_host.h"
SECOND_NS = 10**9


class _Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_it_names_virtual_time_its_end_where_known_and_the_programs() -> None:
    """24 hours of virtual time took nine minutes without a word."""
    assert line(90 * SECOND_NS, None, 1234) == "90 s of virtual time, 1,234 page writes"
    assert line(90 * SECOND_NS, 360.0, 0) == "90 s of 360 s (25 %) of virtual time, 0 page writes"
    assert "(100 %)" in line(2 * SECOND_NS, 1.0, 0)


def test_it_is_written_on_a_terminal_between_lines_of_the_program_and_erased_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_AFTER_S", 0.0)
    with progress_line(tmp_path, 10.0) as shown:
        file = tmp_path / "progress"
        shown.show()
        assert terminal.getvalue() == "", "the program has not begun"
        with file.open("r+b") as at:
            at.write(pack("=QQQQII", SECOND_NS, 3 * SECOND_NS, 5, 12, 0, 1))
        shown.show()
        assert terminal.getvalue() == "", "its output is in the middle of a line"
        with file.open("r+b") as at:
            at.write(pack("=QQQQII", SECOND_NS, 3 * SECOND_NS, 5, 12, 0, 0))
        shown.show()
        assert terminal.getvalue() == "\r\x1b[K2 s of 10 s (20 %) of virtual time, 7 page writes"
        assert file.read_bytes()[32] == 1, "the kernel erases it before the program prints"
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_without_a_terminal_nothing_is_shown_and_the_kernel_is_given_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", StringIO())
    with progress_line(tmp_path, None) as shown:
        shown.show()
    assert list(tmp_path.iterdir()) == []


def test_the_kernel_has_the_same_layout() -> None:
    declared = (PROJECT / HEADER).read_text(encoding="utf-8")
    body = declared.partition("struct flashbed_progress {")[2].partition("}")[0]
    fields = re.findall(r"^\t(unsigned [a-z ]+) (\w+);", body, re.MULTILINE)
    codes = {"unsigned long long": "Q", "unsigned int": "I"}
    assert "=" + "".join(codes[kind] for kind, _ in fields) == progress._LAYOUT.format
    assert [name for _, name in fields][4] == "shown"
