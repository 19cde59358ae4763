"""Programs in which a thread of the kernel is created, and the flash is as on the kernel after it.

Each was found by `flashbed fuzz --class any`. The simulator had a mount make its thread at once; on
the kernel kthreadd creates it, and the turns of both shift every later one of the thread. The
programs are whole: shortened ones need not differ for the same reason.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from flashbed.bench.fuzz.bench import Bench
from flashbed.bench.fuzz.generator import generate
from flashbed.bench.fuzz.program import FuzzCase
from flashbed.program.operations import Operation, parse
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml.uml_target import UmlTarget
from tests.support import PROJECT

PROGRAMS = {"jffs2-930046": 4, "yaffs2-920000": 32, "yaffs2-930025": 16, "yaffs2-930037": 16}
"""Files of tests/corpus/programs, and the window that each is read with, in KiB."""


def case(name: str, window_kib: int) -> FuzzCase:
    text = (PROJECT / "tests" / "corpus" / "programs" / f"{name}.ops").read_bytes()
    operations = tuple(parse(text))
    split = operations.index(Operation("prepared"))
    fs = name.split("-")[0]
    return FuzzCase(
        case_id=name,
        fs=fs,
        read_ahead_kib=window_kib,
        prepare=operations[:split],
        body=operations[split + 1 :],
    )


NOT_TRACED = pytest.mark.xfail(
    strict=True, reason="the kernel's thread does one more pass before an unmount stops it"
)


@pytest.mark.uml
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=NOT_TRACED if n == "jffs2-930046" else ()) for n in PROGRAMS],
)
def test_a_mount_creates_its_thread_as_the_kernel_does(name: str, tmp_path: Path) -> None:
    bench = Bench(
        SimTarget(), UmlTarget(work_dir=tmp_path), load_board("emulated"), load_kernel("6.1")
    )
    [verdict] = bench.verdicts([case(name, PROGRAMS[name])], lambda *_: None)
    assert verdict.kind == "exact", verdict.difference


@pytest.mark.uml
def test_ubis_thread_finds_the_chip_locked_after_the_flusher_ran(tmp_path: Path) -> None:
    """A tick within the last page of an fsync: the flusher, which is behind both, runs first.

    UBI's thread is scheduled after it, still within the program's call, and blocks on the chip's
    lock. The simulator let it erase a block (fuzz-any-ubifs-920025 in ten lines).
    """
    bench = Bench(
        SimTarget(), UmlTarget(work_dir=tmp_path), load_board("emulated"), load_kernel("6.1")
    )
    [verdict] = bench.verdicts([case("ubifs-fsync-tick", 0)], lambda *_: None)
    assert verdict.kind == "exact", verdict.difference


@pytest.mark.uml
def test_a_tick_within_an_operation_ends_a_pause_with_it(tmp_path: Path) -> None:
    """A sleep of 2.0 ms ends while JFFS2's thread erases a block, and a tick falls into that.

    User-mode Linux handles the tick when the operation is over, and the sleep ends there. The
    simulator's sleep ended 50 us later, after the thread had read a page of the erased block.
    """
    bench = Bench(
        SimTarget(), UmlTarget(work_dir=tmp_path), load_board("emulated"), load_kernel("6.1")
    )
    program = replace(case("jffs2-gcd-read-while-program", 0), recorded=True)
    [verdict] = bench.verdicts([program], lambda *_: None)
    assert verdict.kind == "exact", verdict.difference


@pytest.mark.uml
def test_a_tick_in_the_last_page_of_a_write_is_as_the_kernels(tmp_path: Path) -> None:
    """The whole program whose ten lines are ubifs-fsync-tick.ops."""
    bench = Bench(
        SimTarget(), UmlTarget(work_dir=tmp_path), load_board("emulated"), load_kernel("6.1")
    )
    [verdict] = bench.verdicts([generate("any", "ubifs", 920_025, ())], lambda *_: None)
    assert verdict.kind == "exact", verdict.difference
