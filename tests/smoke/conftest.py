"""The program, run as a user runs it."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from flashbed import cli

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the program; gives exit status, output and errors. Never a traceback."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["flashbed", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        assert isinstance(ended.value.code, int)
        return ended.value.code, captured.out, captured.err

    return call
