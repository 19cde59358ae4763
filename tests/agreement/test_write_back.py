"""The axis `vm`: with other settings of write-back, simulator and kernel still agree.

A program changes files of several ages and sleeps; the settings decide which of them the flusher
writes meanwhile. Every flash operation is compared, in order and by place.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from flashbed.stack.changes import AS_BOOTED, VmChange
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Program, RunOptions, Target
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml.uml_target import UmlTarget

HEADER = "flashbed-ops 2\n"
PREPARE = f"{HEADER}open 0 old rw,create\nwrite 0 0 262144 1 0\nfsync 0\nclose 0\nsync\nprepared\n"
AGES = f"{HEADER}open 0 old rw\nopen 1 new rw,create\nmark\n" + "".join(
    f"write 0 {n * 4096} 4096 {n} 50\npause 1300000000\nwrite 1 {n * 3000} 3000 {n} 30\n"
    "pause 2100000000\n"
    for n in range(14)
)
BURST = f"{HEADER}open 0 new rw,create\nmark\n" + "".join(
    f"write 0 {n * 65536} 65536 {n} 0\npause 20000000\n" for n in range(64)
)
OPERATION = ("kind", "block", "page", "offset_bytes", "length_bytes")
NEVER = "dirty_writeback_centisecs=0"
TIMES = (
    "default",
    "dirty_expire_centisecs=500",
    "dirty_expire_centisecs=0",
    "dirty_writeback_centisecs=100",
    "dirty_expire_centisecs=700+dirty_writeback_centisecs=1500",
)


def _programs(fs: str, body: str, words: tuple[str, ...]) -> list[Program]:
    board, kernel = load_board("emulated"), load_kernel("6.1")
    plain = Program(
        case_id="",
        stack=Stack(board=board, kernel=kernel, fs=fs, read_ahead_kib=0),
        prepare=PREPARE,
        body=body,
    )
    return [
        replace(plain, case_id=word, stack=replace(plain.stack, vm=VmChange.parse(word)))
        for word in words
    ]


def _operations(target: Target, programs: list[Program]) -> dict[str, pl.DataFrame]:
    batches = list(target.run(programs, RunOptions(trace_flash=True)))
    assert not [failure for batch in batches for failure in batch.failures]
    flash = pl.concat([batch.flash for batch in batches], how="diagonal")
    return {item.case_id: flash.filter(case_id=item.case_id) for item in programs}


@pytest.mark.uml
@pytest.mark.extension
@pytest.mark.parametrize("fs", ["jffs2", "yaffs2", "ubifs"])
def test_what_the_flusher_writes_when_is_the_kernels(tmp_path: Path, fs: str) -> None:
    words = TIMES if fs == "jffs2" else (*TIMES, NEVER)
    programs = _programs(fs, AGES, words)
    real = _operations(UmlTarget(work_dir=tmp_path), programs)
    simulated = _operations(SimTarget(), [program.in_user_mode for program in programs])
    for word in words:
        assert simulated[word].select(OPERATION).rows() == real[word].select(OPERATION).rows(), word
    counts = {word: len(rows) for word, rows in simulated.items()}
    if fs == "ubifs":
        assert counts["dirty_expire_centisecs=500"] > counts["default"] > counts[NEVER] == 0
    if fs == "jffs2":
        assert counts["dirty_writeback_centisecs=100"] > counts["default"]


@pytest.mark.uml
@pytest.mark.extension
def test_limits_decide_what_is_written_before_the_end(tmp_path: Path) -> None:
    """The kernel looks at its limits more or less often, so they are met at other moments."""
    words = ("default", "dirty_background_bytes=1048576", "dirty_background_bytes=300000")
    programs = [replace(item, record_flush=True) for item in _programs("ubifs", BURST, words)]
    alone = [program.in_user_mode for program in programs]
    for target, some in ((UmlTarget(work_dir=tmp_path), programs), (SimTarget(), alone)):
        cases = pl.concat([batch.cases for batch in target.run(some)], how="diagonal")
        before, after = (
            dict(zip(cases["case_id"], cases[column], strict=True))
            for column in ("flash_programs", "flush_programs")
        )
        assert before["default"] == 0
        assert min(before[word] for word in words[1:]) > 1000
        # Written early or late, it is the same work: 4 MiB in pages of 2 KiB, and their metadata.
        assert {(before[word] + after[word]) // 10 for word in words} == {219}, target.name


@pytest.mark.extension
def test_jffs2_without_a_delay_is_refused_by_name() -> None:
    batches = list(SimTarget().run(_programs("jffs2", AGES, (NEVER, "default"))))
    (failure,) = [failure for batch in batches for failure in batch.failures]
    assert failure.message == "dirty_writeback_centisecs=0 on jffs2 is not modelled"
    assert failure.not_modelled


@pytest.mark.extension
def test_settings_that_are_the_defaults_change_nothing() -> None:
    usual = ("dirty_expire_centisecs=3000+dirty_writeback_centisecs=500+dirty_ratio=20"
             "+dirty_background_ratio=10")  # fmt: skip
    for fs in ("jffs2", "yaffs2", "ubifs"):
        plain, same = _programs(fs, AGES, (str(AS_BOOTED), usual))
        found = _operations(SimTarget(), [plain, same])
        assert found[plain.case_id].select(OPERATION).equals(found[usual].select(OPERATION))
