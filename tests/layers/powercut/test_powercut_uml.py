"""Power cuts on real file systems, in user-mode Linux on our own chip."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from flashbed.bench.fuzz.cuts import CutsBench
from flashbed.bench.fuzz.generator import generate
from flashbed.bench.powercut.cutting import Choice, PowerCuts
from flashbed.bench.powercut.judge import CORRUPT, LOST, NOT_MOUNTED, RECOVERED
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.running.programs import programs_of
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Cut, Program
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml.uml_target import UmlTarget

pytestmark = [pytest.mark.uml, pytest.mark.timeout(300)]


def cut(work: Path, fs: str, choice: Choice) -> pl.DataFrame:
    return cuts_and_requests(work, fs, choice)[0]


def cuts_and_requests(work: Path, fs: str, choice: Choice) -> tuple[pl.DataFrame, pl.DataFrame]:
    experiment = load_experiment("powercut/fsync")
    cases = [item.case for item in plan(experiment, parse_settings([f"fs={fs}"]))]
    target = PowerCuts(UmlTarget(work_dir=work), choice, "uml")
    batches = list(target.run(programs_of(experiment, cases)))
    assert [failure for batch in batches for failure in batch.failures] == []
    return (
        pl.concat([batch.power_cuts for batch in batches if batch.power_cuts.height]),
        pl.concat([batch.requests for batch in batches if batch.requests.height]),
    )


@pytest.mark.parametrize("fs", ["jffs2", "ubifs"])
def test_what_fsync_acknowledged_survives_sixty_cuts(tmp_path: Path, fs: str) -> None:
    rows = cut(tmp_path, fs, Choice(None, 60, 1))
    assert rows.height == 60
    assert rows.filter(pl.col("verdict") != RECOVERED)["reason"].to_list() == []
    assert rows["acknowledged_files"].max() > 8  # type: ignore[operator]
    assert rows["lost_files"].sum() == 0
    # 400 blocks are scanned: a mount that read less, or nothing, would be none.
    assert rows["mount_time_ns"].min() > 100_000_000  # type: ignore[operator]


@pytest.mark.parametrize("fs", ["jffs2", "ubifs"])
def test_a_chip_that_loses_a_program_is_caught(tmp_path: Path, fs: str) -> None:
    rows = cut(tmp_path, fs, Choice(10, None, 1, ("drop 100",)))
    before, after = rows.filter(pl.col("change") < 100), rows.filter(pl.col("change") > 100)
    assert set(before["verdict"]) == {RECOVERED}
    caught = after.filter(pl.col("verdict").is_in([LOST, NOT_MOUNTED]))
    assert caught.height > 0
    assert all(reason for reason in caught["reason"])


def test_yaffs2_keeps_what_fsync_acknowledged_but_in_a_truncation(tmp_path: Path) -> None:
    """yaffs_resize_file_down writes the last chunk, zeros behind its end, before the header."""
    rows, requests = cuts_and_requests(tmp_path, "yaffs2", Choice(4, None, 1))
    assert rows.height > 250
    lost = rows.filter(pl.col("verdict") != RECOVERED)
    assert set(lost["verdict"]) <= {LOST}
    for change, reason in lost.select("change", "reason").iter_rows():
        during = requests.filter(pl.col("changes") >= change).row(0, named=True)
        assert (during["op"], "acknowledged bytes are zero" in reason) == ("truncate", True), reason
    assert rows["acknowledged_files"].max() > 8  # type: ignore[operator]
    # The checkpoint of the prepared file system goes with the first change: the blocks are scanned.
    assert rows["mount_time_ns"].median() > 100_000_000  # type: ignore[operator]


VERSION_2 = """\
mkdir d
open 0 d/a rw,create
write 0 0 9000 7 100+1000,2+30,50+700t90
fsync 0
link d/a b
symlink d s
open 1 s/c rw,create,append
data cmVjb3JkZWQ=
write 1 0 8 0 data
copy 0 100 1 8 5000
fsync 1
spawn 1
task 1
mmap 0 0 4096 4904 rw
store 0 10 200 8 0
msync 0 0 4904 sync
munmap 0
task 0
open 2 . ro,directory
rename b e
fsync 2
wait 1
unlink d/a
write 0 0 100 9 50+50
syncfs 0
"""


@pytest.mark.parametrize("fs", ["jffs2", "ubifs"])
def test_every_cut_of_a_program_of_version_2_recovers_on_kernel_and_simulator(
    tmp_path: Path, fs: str
) -> None:
    program = Program(
        case_id="version 2",
        stack=Stack(
            board=load_board("omap3evm"), kernel=load_kernel("6.1"), fs=fs, read_ahead_kib=0
        ),
        prepare="flashbed-ops 1\nopen 0 z rw,create\nclose 0\nsync\nprepared\n",
        body=f"flashbed-ops 2\nmark\n{VERSION_2}",
    )
    acknowledged = []
    for target in (UmlTarget(work_dir=tmp_path), SimTarget()):
        batches = list(PowerCuts(target, Choice(1, None, 1), target.name).run([program]))
        assert [failure for batch in batches for failure in batch.failures] == []
        rows = pl.concat([batch.power_cuts for batch in batches if batch.power_cuts.height])
        assert rows.filter(pl.col("verdict") != RECOVERED)["reason"].to_list() == []
        acknowledged.append(rows["acknowledged_files"].to_list())
    # The same changes, and what is acknowledged by each of them: z, d/a, s, e and d/c at the end.
    assert acknowledged[0] == acknowledged[1]
    assert max(acknowledged[0]) == 5


TEARS = 48
"""Seeds of a torn change; about a sixth of them leave the first bytes of a page and no more."""
SHORTENED = (
    "open 0 a rw,create\nwrite 0 0 16000 1 0\nclose 0\nsync\n",
    "open 0 a rw\ntruncate 0 513\nsync\nwrite 0 513 5000 2 90\nsync\n",
)
RENAMED = ("open 0 a rw,create\nwrite 0 0 5000 1 0\nclose 0\nsync\n", "rename a b\nsync\n")
NOTHING_THERE = ("", "open 0 a rw,create\nclose 0\nsync\n")


class LastChange(Choice):
    """A cut in the last change, torn by the number that the case's name ends with."""

    def cuts_of(self, case_id: str, changes: int) -> tuple[Cut, ...]:
        return (Cut(changes, int(case_id)),)


def not_recovered(
    work: Path, fs: str, board: str, program: tuple[str, str], choice: Choice, seeds: range
) -> pl.DataFrame:
    """What did not recover of a program's change, torn in one way for each seed."""
    prepare, body = program
    programs = [
        Program(
            case_id=str(seed),
            stack=Stack(
                board=load_board(board), kernel=load_kernel("6.1"), fs=fs, read_ahead_kib=0
            ),
            prepare=f"flashbed-ops 1\n{prepare}prepared\n",
            body=f"flashbed-ops 1\nmark\n{body}",
        )
        for seed in seeds
    ]
    batches = list(PowerCuts(UmlTarget(work_dir=work), choice, "uml").run(programs))
    assert [failure for batch in batches for failure in batch.failures] == []
    rows = pl.concat([batch.power_cuts for batch in batches if batch.power_cuts.height])
    assert rows.height == len(seeds)
    return rows.filter(pl.col("verdict") != RECOVERED)


def torn(work: Path, board: str, program: tuple[str, str]) -> set[tuple[str, str]]:
    """Verdict and reason of what did not recover, the last change torn in all kinds of ways."""
    lost = not_recovered(
        work,
        "jffs2",
        board=board,
        program=program,
        choice=LastChange(None, None, 0),
        seeds=range(TEARS),
    )
    return set(lost.select("verdict", "reason").iter_rows())


@pytest.mark.parametrize(
    ("program", "verdict", "reason"),
    [
        (SHORTENED, CORRUPT, "a: offset 513: bytes never acknowledged are those of another write"),
        pytest.param(
            RENAMED, LOST, "a: was being renamed to b, and neither name exists",
            marks=pytest.mark.long,
        ),
    ],
)  # fmt: skip
def test_jffs2_loses_by_an_ecc_code_that_is_not_there(
    tmp_path: Path, program: tuple[str, str], verdict: str, reason: str
) -> None:
    """Of nine random programs, all had a torn page without its code, and a bit that it "corrected".

    The Hamming code takes an erased code for that of data with one wrong bit wherever the data's
    parity is odd. An ECC that notices leaves the bytes alone, and what was first is what is lost
    last.
    """
    assert torn(tmp_path, "emulated", program) == {(verdict, reason)}
    assert torn(tmp_path, "omap3evm", program) == set()


def test_jffs2_does_not_mount_when_all_it_has_is_a_torn_page(tmp_path: Path) -> None:
    """jffs2_scan_medium does not erase where it finds no node: another system may own it."""
    refused = {(NOT_MOUNTED, "mounting: EIO (Input/output error)")}
    assert torn(tmp_path, "omap3evm", NOTHING_THERE) == refused


UNLINKED = (
    "open 0 a rw,create\nwrite 0 0 255857 0 0\nclose 0\nsync\npause 10000000000\n",
    "open 0 a wo,trunc\nsync\nwrite 0 0 2001 0 0\nfsync 0\nunlink a\nsync\n",
)
ERASE = 16
"""The change of UNLINKED that erases the block which UBI then writes a recovered LEB to."""
PART_LEFT = 1101295632
"""Tears an erase so that the first page is left, the second is erased, and others are left."""


class OneChange(Choice):
    """A cut in the erase, torn by the number that the case's name ends with."""

    def cuts_of(self, case_id: str, changes: int) -> tuple[Cut, ...]:  # noqa: ARG002
        return (Cut(ERASE, int(case_id)),)


def test_ubi_takes_a_block_as_free_whose_first_two_pages_say_so(tmp_path: Path) -> None:
    """scan_peb() of drivers/mtd/ubi/attach.c reads two pages of a block; others may be left."""
    seeds = range(PART_LEFT, PART_LEFT + 6)
    choice = OneChange(None, None, 0)
    rows = not_recovered(
        tmp_path, "ubifs", board="omap3evm", program=UNLINKED, choice=choice, seeds=seeds
    )
    (lost,) = rows.iter_rows(named=True)
    assert (lost["case_id"], lost["verdict"]) == (str(PART_LEFT), NOT_MOUNTED)
    assert "EUCLEAN" in lost["reason"]


def test_a_cut_is_the_same_whatever_ran_before() -> None:
    """The time of day is in JFFS2's nodes, so it decides what ECC makes of a torn page."""
    before, case = generate("cuts", "jffs2", 62210), generate("cuts", "jffs2", 62211)
    bench = CutsBench([UmlTarget()], load_board("emulated"), load_kernel("6.1"))
    (alone,) = bench.verdicts([case], lambda *_: None)
    after = {verdict.case: verdict for verdict in bench.verdicts([before, case], lambda *_: None)}
    assert alone.difference is not None
    assert after[case].difference == alone.difference
