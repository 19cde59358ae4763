"""The reads suite: shapes of reading that no experiment has, simulated and on a real kernel."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from flashbed.profiles import load_board, load_kernel
from flashbed.targets.base import Program, Target
from flashbed.targets.emulator import EmulatorTarget
from flashbed.targets.sim import SimTarget
from flashbed.validation import compare, programs, summary

pytestmark = [pytest.mark.emulator, pytest.mark.extension, pytest.mark.timeout(600)]


def measured(target: Target, suite: list[Program]) -> pl.DataFrame:
    batches = list(target.run(suite, trace_flash=False, progress=lambda *_: None))
    assert [failure for batch in batches for failure in batch.failures] == []
    return pl.concat([batch.cases for batch in batches], how="diagonal")


def test_counts_are_exact_in_nearly_all_cases_and_times_close(tmp_path: Path) -> None:
    suite = programs("reads", load_board("emulated"), load_kernel("6.1"))
    tables = [
        measured(target, suite) for target in (SimTarget(), EmulatorTarget(work_dir=tmp_path))
    ]
    told = summary(compare(*tables))
    assert told["cases"] == 138
    for name in ("flash_reads", "flash_programs", "flash_erases"):
        assert told[name]["exact_share"] >= 0.9
        assert told[name]["worst_error_pct"] <= 2
    assert told["time"]["mean_error_pct"] <= 5
    assert told["time"]["worst_error_pct"] <= 10
