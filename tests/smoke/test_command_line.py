"""The program as a user meets it, on targets that make their numbers up."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl
import pytest
from flashbed import cli
from tests.fake import FakeTarget

Fakes = dict[str, FakeTarget]


def flashbed(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["flashbed", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    def call(*arguments: str) -> tuple[int, str, str]:
        status = flashbed(monkeypatch, *arguments)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return status, captured.out, captured.err

    return call


def test_run_keeps_tables_that_table_prints(small: Path, fakes: Fakes, run) -> None:  # type: ignore[no-untyped-def]
    status, out, err = run("run", "one", "--on", "sim,emulator", "--out", "r")
    assert (status, out) == (0, "r\n")
    assert "small/one on sim: 96 cases measured" in err
    status, out, _ = run("table", "r", "cases", "--format", "json")
    assert status == 0
    rows = json.loads(out)
    assert len(rows) == 96 + 32
    assert rows[0]["case_id"] == "jffs2-omap3evm-2.6.37-sequential-8x4096-of-524288-ra0-s1"
    assert rows[0]["energy_cpu_nj"] is None
    assert run("table", "r", "requests")[1].startswith("case_id,target,seq,op,file,")
