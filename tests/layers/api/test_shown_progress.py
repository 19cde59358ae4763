"""Progress on a terminal: of counted work, and of work of unknown length."""

from __future__ import annotations

import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flashbed.cli import app
from flashbed.cli.progress import working
from flashbed.cli.recordings import check, cut, import_
from flashbed.cli.show import report
from tests.support import PROJECT

OPS = PROJECT / "docs" / "examples" / "stack.ops"


class _Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_work_of_unknown_length_is_named_on_a_terminal_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`import`, `ops check` and `ops merge` of large files worked for minutes without a word."""
    terminal, file = _Terminal(), StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    with working("checking a.rec"):
        pass
    assert "checking a.rec" in terminal.getvalue()
    assert "/?" not in terminal.getvalue()
    monkeypatch.setattr(sys, "stderr", file)
    with working("checking a.rec"):
        pass
    assert file.getvalue() == ""


def test_commands_on_recordings_name_what_they_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.job").write_text("[a]\nfilename=f\nsize=64k\nrw=write\n")
    runs: list[tuple[Callable[[], None], str]] = [
        (lambda: check(OPS), "checking stack.ops"),
        (
            lambda: import_("fio-job", tmp_path / "a.job", output=tmp_path / "a.rec"),
            "importing a.job",
        ),
        (lambda: cut(tmp_path / "a.rec", tmp_path / "b.rec", first=1), "cutting a.rec"),
    ]
    for run, said in runs:
        terminal = _Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        run()
        assert said in terminal.getvalue()


def test_a_report_is_named_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of large runs took half a minute without a word."""
    ran = CliRunner().invoke(app, ["run", str(OPS), "--out", str(tmp_path / "r")])
    assert ran.exit_code == 0, ran.output
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    report([tmp_path / "r"])
    assert "writing the report" in terminal.getvalue()
