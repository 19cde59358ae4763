"""User-mode Linux when something is wrong: one clear line, and the other cases continue."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from flashbed.base.errors import InputError, RunError
from flashbed.base.paths import cache_folder
from flashbed.bench.validation import programs
from flashbed.cli.prepare import prepare
from flashbed.stack.profiles import Board, load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Program, RunOptions
from flashbed.targets.uml import uml_requirements, uml_target
from flashbed.targets.uml.uml_kernel import KERNELS
from flashbed.targets.uml.uml_target import UmlTarget
from flashbed.targets.unavailable import Unavailable
from tests.support import PROJECT

pytestmark = pytest.mark.uml

HEADER = "flashbed-ops 1\n"
PREPARE = f"{HEADER}open 0 a rw,create\nwrite 0 0 8192 1 0\nclose 0\nsync\nprepared\n"
READ = f"{HEADER}drop_caches\nopen 0 a ro\nmark\nread 0 0 8192\n"


def program(case_id: str, body: str = READ, fs: str = "jffs2", kernel: str = "6.1") -> Program:
    return Program(
        case_id=case_id,
        stack=Stack(
            board=load_board("emulated"), kernel=load_kernel(kernel), fs=fs, read_ahead_kib=0
        ),
        prepare=PREPARE,
        body=body,
    )


def outcome(target: UmlTarget, programs: Sequence[Program]) -> tuple[list[str], dict[str, str]]:
    batches = list(target.run(programs))
    failures = [failure for batch in batches for failure in batch.failures]
    assert all("\n" not in failure.message for failure in failures)
    measured = [name for batch in batches for name in batch.cases["case_id"]]
    return measured, {failure.case_id: failure.message for failure in failures}


def other_chip(board: Board, **changes: int) -> Board:
    other = board.model_copy(update={"chip": board.chip.model_copy(update=changes)})
    other._path = board.path
    return other


def test_cases_are_measured_and_their_software_time_is_not(tmp_path: Path) -> None:
    target = UmlTarget(work_dir=tmp_path)
    batches = list(target.run([program("a")], RunOptions(trace_flash=True)))
    (batch,) = batches
    (case,) = batch.cases.to_dicts()
    assert case["time_ns"] is None
    # A read, and a change of column, are 25 us of array and 102 us of bus each.
    commands, rest = divmod(case["flash_time_ns"], 127_000)
    assert rest == 0
    assert case["flash_reads"] < commands < 2 * case["flash_reads"]
    assert case["flash_reads"] == batch.flash.height
    assert not list(tmp_path.glob("run-*")), "a clean run leaves nothing behind"


@pytest.mark.parametrize("fs", ["jffs2", "ubifs", "yaffs2"])
def test_a_trace_ends_where_the_measured_part_does(fs: str, tmp_path: Path) -> None:
    """The first operation of the flush, at the same virtual time, was the last of the trace."""
    written = f"{HEADER}open 0 b rw,create\nmark\nwrite 0 0 60000 2 0\nclose 0\n"
    case = replace(program("a", written, fs), record_flush=True)
    (batch,) = UmlTarget(work_dir=tmp_path).run([case], RunOptions(trace_flash=True))
    (row,) = batch.cases.to_dicts()
    assert row["flush_programs"] > 0
    counted = row["flash_reads"] + row["flash_programs"] + row["flash_erases"]
    assert (0 if batch.flash is None else batch.flash.height) == counted


def test_each_kernel_is_prepared_by_the_name_that_doctor_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`doctor` named `prepare --on uml` for Linux 6.12, which it did not build."""
    asked = []

    def build(_cache: Path, series: str, _say: object, *, more: object) -> None:
        assert not more, "what only some stacks need was not asked"
        asked.append(series)
        raise Unavailable(series)

    monkeypatch.setattr(uml_target, "built_kernel", build)
    monkeypatch.setattr(uml_requirements, "cached_kernel", lambda _cache, _series: None)
    hints = [each.how for each in uml_requirements.check() if "user-mode Linux" in each.name]
    names = [hint.removeprefix("flashbed prepare --on ").split(",")[0] for hint in hints]
    with pytest.raises(RunError, match=f"{len(KERNELS)} of the targets"):
        prepare(",".join(names))
    assert asked == list(KERNELS)
    with pytest.raises(InputError, match=r"kernel 5\.11: uml has Linux 6\.1, 6\.12, 5\.10, 7"):
        UmlTarget(work_dir=tmp_path).prepare(lambda _what: None, "5.11")


def test_a_case_gives_the_same_rows_whatever_ran_before_it_in_its_boot(tmp_path: Path) -> None:
    """A run that was interrupted had other times than one that was not, by 256 ns.

    The guest's clock counted in 256 ns, and where a case began within a count was left to the waits
    of the cases before it.
    """
    board, kernel = load_board("emulated"), load_kernel("6.1")
    cases = [*programs("writes", board, kernel), *programs("reads", board, kernel)][::80]
    target = UmlTarget(work_dir=tmp_path)

    def rows(some: Sequence[Program]) -> dict[str, tuple[object, ...]]:
        found: dict[str, tuple[object, ...]] = {}
        for batch in target.run(some, RunOptions(trace_flash=True)):
            for case_id in batch.cases["case_id"]:
                tables = (batch.cases, batch.requests, batch.flash)
                found[case_id] = tuple(table.filter(case_id=case_id).rows() for table in tables)
        return found

    together = rows(cases)
    assert len(together) == len(cases)
    for case in cases:
        assert rows([case]) == {case.case_id: together[case.case_id]}


def test_a_guest_that_hangs_costs_one_case(tmp_path: Path) -> None:
    target = UmlTarget(work_dir=tmp_path, patience_s=2)
    endless = program("b", f"{HEADER}mark\ncompute 1000000000000\n")
    measured, failures = outcome(target, [program("a"), endless, program("c")])
    assert measured == ["a", "c"]
    assert failures["b"].startswith("user-mode Linux hung: no progress in 2 s")
    assert "console.log" in failures["b"]


def test_a_kernel_that_dies_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = uml_target._command

    def without_init(*arguments: object) -> list[str]:
        return [*whole(*arguments), "rdinit=/nothing"]  # type: ignore[arg-type]

    monkeypatch.setattr(uml_target, "_command", without_init)
    measured, failures = outcome(UmlTarget(work_dir=tmp_path), [program("a"), program("b")])
    assert measured == []
    assert set(failures) == {"a", "b"}
    assert "user-mode Linux's kernel died: Kernel panic" in failures["a"]
    assert "console.log" in failures["a"]


def test_a_driver_that_does_not_load_says_why(tmp_path: Path) -> None:
    # More pages in a block than the driver takes: the profile knows nothing of that.
    board = other_chip(load_board("emulated"), pages_per_block=1024, blocks=400)
    measured, failures = outcome(
        UmlTarget(work_dir=tmp_path),
        [replace(program("a"), stack=replace(program("a").stack, board=board))],
    )
    assert measured == []
    assert "flashbed_nand.ko: Invalid argument" in failures["a"]
    assert "flashbed_nand: pages_per_block" in failures["a"]


def test_a_driver_that_does_not_compile_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    for folder in ("kernel", "boards", "build/agent"):
        shutil.copytree(PROJECT / folder, root / folder)
    with (root / "kernel" / "flashbed_nand" / "log.c").open("a") as source:
        source.write("int broken(void) { return nothing; }\n")
    cache = tmp_path / "cache"
    cache.mkdir()
    for tree in cache_folder().glob("uml-6.1-*"):
        (cache / tree.name).symlink_to(tree)
    monkeypatch.setenv("FLASHBED_ROOT", str(root))
    target = UmlTarget(cache, tmp_path / "work")
    with pytest.raises(Unavailable, match=r"flashbed_nand does not build: .*error.*; log: .*\.log"):
        list(target.run([program("a")]))


def test_without_build_tools_the_target_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = shutil.which
    gone = ("flex", "bc")
    monkeypatch.setattr(shutil, "which", lambda name: None if name in gone else there(name))
    target = UmlTarget(tmp_path / "cache", tmp_path / "work")
    with pytest.raises(Unavailable, match=r"needs flex, bc \(.*apt-get install flex bc\)"):
        list(target.run([program("a")]))


def test_a_kernel_that_is_not_built_here_is_refused(tmp_path: Path) -> None:
    measured, failures = outcome(
        UmlTarget(work_dir=tmp_path), [program("a", kernel="2.6.37"), program("b")]
    )
    assert measured == ["b"]
    assert failures == {
        "a": "kernel 2.6.37: uml has Linux 6.1, 6.12, 5.10, 7.3, 6.1-wbuf-verify and 6.1-no-summary"
    }


def test_what_cannot_be_prepared_fails_its_group(tmp_path: Path) -> None:
    full = "".join(f"write 0 {part << 20} 1048576 1 0\n" for part in range(60))
    big = replace(program("a"), prepare=f"{HEADER}open 0 b rw,create\n{full}close 0\nprepared\n")
    measured, failures = outcome(UmlTarget(work_dir=tmp_path), [big, program("b", fs="ubifs")])
    assert measured == ["b"]
    assert "ENOSPC: write" in failures["a"]
