"""JFFS2 that reads back its write-buffer: on the simulator as on a kernel that is built to.

`flashbed prepare --on uml-6.1-wbuf-verify` builds that kernel.
"""

from __future__ import annotations

import polars as pl
import pytest

from flashbed.base.paths import cache_folder
from flashbed.plan.case import Case
from flashbed.plan.database import Database
from flashbed.plan.workloads.sqlite import operations
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets import load_target
from flashbed.targets.base import Program, Target
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml.uml_kernel import cached_kernel

pytestmark = [pytest.mark.extension, pytest.mark.timeout(300)]

VERIFIES = "6.1-wbuf-verify"
COUNTS = ["flash_reads", "flash_programs", "flash_erases", "flash_time_ns"]
RUNS = [("insert", 100, 150), ("insert", 300, 600), ("update", 100, 150), ("update", 300, 600)]


def program(kernel: str, pattern: str, requests: int, request_bytes: int) -> Program:
    """On a board whose software takes no time, as in user mode."""
    case = Case(
        experiment="sqlite/x", board="emulated", kernel=kernel, fs="jffs2", read_ahead_kib=128,
        pattern=pattern, requests=requests, request_bytes=request_bytes, file_bytes=0, seed=1,
        database=Database(records=1000),
    )  # fmt: skip
    prepare, body = operations(case, 10_000_000_000)
    return Program(
        case_id=f"{kernel}-{pattern}-{requests}-{request_bytes}",
        stack=Stack(
            board=load_board("emulated"), kernel=load_kernel(kernel), fs="jffs2",
            read_ahead_kib=128,
        ),
        prepare=prepare, body=body,
    ).in_user_mode  # fmt: skip


def counted(target: Target, programs: list[Program]) -> dict[str, tuple[int, ...]]:
    batches = list(target.run(programs))
    assert not any(batch.failures for batch in batches)
    cases = pl.concat([batch.cases for batch in batches])
    return {row[0]: row[1:] for row in cases.select("case_id", *COUNTS).iter_rows()}


def test_a_page_of_the_write_buffer_is_read_back() -> None:
    """Inserts of 150 bytes fill the write-buffer with every page that they program."""
    programs = [program(kernel, "insert", 1000, 150) for kernel in ("6.1", VERIFIES)]
    plain, verified = counted(SimTarget(), programs).values()
    reads, programs_of_flash, *_ = plain
    assert verified[1] == programs_of_flash
    assert 0.7 * programs_of_flash < verified[0] - reads <= programs_of_flash


@pytest.mark.uml
@pytest.mark.long
def test_every_count_is_that_of_a_kernel_that_reads_back() -> None:
    if cached_kernel(cache_folder(), VERIFIES) is None:
        pytest.skip(f"flashbed prepare --on uml-{VERIFIES} builds it")
    programs = [program(VERIFIES, *run) for run in RUNS]
    assert counted(SimTarget(), programs) == counted(load_target("uml"), programs)
