"""States and faults on a real kernel: a requested state is reached, what fails does as documented.

Where the simulator has the fault too, the same happens there.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flashbed.bench.fuzz.differences import outcomes_of
from flashbed.plan.workloads.layout_files import prepared, written_file
from flashbed.plan.workloads.state import in_state
from flashbed.stack.conditions import NEW, NONE, BitFlips, Faults, State, Worn
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Program, RunOptions
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml.uml_target import UmlTarget

pytestmark = [pytest.mark.uml, pytest.mark.extension]

MIB = 1 << 20
HEADER = "flashbed-ops 1\n"
EIO = -5
EROFS = -30
PREPARE = prepared([written_file("file.bin", MIB, 4096, 1)], 10_000_000_000)
REMOUNT = "mark\nremount\nopen 0 file.bin ro\nread 0 0 65536\n"
READ = "drop_caches\nopen 0 file.bin ro\nmark\n" + "".join(
    f"read 0 {page * 4096} 4096\n" for page in range(64)
)
WRITE = "mark\nopen 0 new rw,create\n" + "".join(
    f"write 0 {page * 4096} 4096 7 0\n" for page in range(256)
) + "fsync 0\nclose 0\nsync\ndrop_caches\nopen 0 new ro\n" + "".join(
    f"read 0 {page * 4096} 4096\n" for page in range(256)
)  # fmt: skip


def program(fs: str, body: str, state: State = NEW, faults: Faults = NONE) -> Program:
    board = load_board("emulated")
    blocks = board.partition.blocks
    return Program(
        case_id=f"{fs} {state} {faults}",
        stack=Stack(
            board=board,
            kernel=load_kernel("6.1"),
            fs=fs,
            read_ahead_kib=0,
            erases=state.erases(blocks),
            faults=faults,
        ),
        prepare=in_state(state, fs, board=board, bad_blocks=faults.bad(blocks), prepare=PREPARE),
        body=HEADER + body,
        check_contents=True,
    )


def measured(target: UmlTarget | SimTarget, one: Program) -> tuple[dict[str, Any], list[int]]:
    """The case's row, and the results of its operations."""
    batches = list(target.run([one]))
    failures = [failure.message for batch in batches for failure in batch.failures]
    assert failures == []
    (batch,) = [batch for batch in batches if batch.cases.height]
    return batch.cases.to_dicts()[0], batch.requests["result"].to_list()


def both(
    tmp_path: Path, one: Program
) -> tuple[dict[str, Any], list[int], dict[str, Any], list[int]]:
    """Rows and results of user-mode Linux and of the simulator."""
    return *on_uml(tmp_path, one), *measured(SimTarget(), one.in_user_mode)


def held(tmp_path: Path, one: Program) -> tuple[dict[str, Any], list[int]]:
    """What both did: the same results, and the same flash operations in the same order."""
    outcomes = []
    for target in (UmlTarget(work_dir=tmp_path), SimTarget()):
        alike = one.in_user_mode if isinstance(target, SimTarget) else one
        batches = target.run([alike], RunOptions(trace_flash=True))
        failures = []
        for batch in batches:
            failures += [failure.message for failure in batch.failures]
            found = outcomes_of(batch, one.stack.board.chip.page_bytes)
            outcomes += [(batch.cases.to_dicts()[0], outcome) for outcome in found.values()]
        assert failures == []
    (real, kernel), (simulated, sim) = outcomes
    results = [row.result for row in kernel.rows]
    assert [row.result for row in sim.rows] == results
    assert [op.key for op in sim.flash] == [op.key for op in kernel.flash]
    assert simulated["bad_blocks"] == real["bad_blocks"]
    return real, results


def on_uml(tmp_path: Path, one: Program) -> tuple[dict[str, Any], list[int]]:
    return measured(UmlTarget(work_dir=tmp_path), one)


FLASH = ("flash_reads", "flash_programs", "flash_erases", "flash_time_ns")


@pytest.mark.parametrize("fs", ["jffs2", "yaffs2", "ubifs"])
@pytest.mark.parametrize(
    "state",
    [
        State(valid=0.5),
        State(valid=0.97),
        State(valid=0.6, obsolete=0.2),
        State(fragmented=0.5),
        State(worn=Worn(mean=1000, spread=300)),
    ],
    ids=str,
)
def test_a_state_is_reached_and_the_simulators_is_the_kernels(
    tmp_path: Path, fs: str, state: State
) -> None:
    """To 0.03 of the space: UBIFS takes dark space of dirty blocks off what df says."""
    one = program(fs, READ, state)
    real, results = on_uml(tmp_path, one)
    simulated, _ = measured(SimTarget(), one)
    assert results == [4096] * 64
    if state.valid:
        assert real["state_valid"] == pytest.approx(state.valid, abs=0.03)
        assert real["state_invalid"] == pytest.approx(state.obsolete, abs=0.03)
    # The simulator's software takes time, so its timers fire in other places.
    for column in ("state_valid", "state_invalid"):
        assert simulated[column] == pytest.approx(real[column], abs=0.001)
    assert simulated["flash_reads"] == pytest.approx(real["flash_reads"], abs=4)


@pytest.mark.parametrize("fs", ["jffs2", "ubifs"])
def test_bad_blocks_are_passed_over(tmp_path: Path, fs: str) -> None:
    one = program(fs, READ, faults=Faults(bad_blocks=(0, 3, 399), bad_fraction=0.01))
    real, results = on_uml(tmp_path, one)
    simulated, _ = measured(SimTarget(), one)
    assert real["bad_blocks"] == len(one.stack.faults.bad(400)) == 7
    assert results == [4096] * 64
    assert [simulated[name] for name in (*FLASH, "bad_blocks")] == [
        real[name] for name in (*FLASH, "bad_blocks")
    ]


def test_bad_blocks_are_passed_over_when_it_is_mounted_again(tmp_path: Path) -> None:
    one = program("jffs2", REMOUNT, faults=Faults(bad_blocks=(0, 3, 399)))
    real, results = on_uml(tmp_path, one)
    simulated, _ = measured(SimTarget(), one)
    assert results == [0, 0, 65536]
    assert [simulated[name] for name in FLASH[:3]] == [real[name] for name in FLASH[:3]]


def test_flips_that_ecc_corrects_are_counted_and_harmless(tmp_path: Path) -> None:
    one = program("jffs2", READ, faults=Faults(bit_flips=BitFlips(rate=0.1)))
    real, _ = held(tmp_path, one)
    assert real["ecc_corrected"] > 10
    assert real["ecc_failed"] == 0


def test_ubi_moves_a_block_with_corrected_bits(tmp_path: Path) -> None:
    """The order of its reads and the program's is the scheduler's, and so is what of them flips."""
    one = program("ubifs", READ, faults=Faults(bit_flips=BitFlips(rate=0.1)))
    real, results, simulated, same = both(tmp_path, one)
    assert results == same == [4096] * 64
    assert real["ecc_corrected"] > 10
    assert real["flash_programs"] > 60
    changes = ("flash_programs", "flash_erases", "bad_blocks")
    assert [simulated[name] for name in changes] == [real[name] for name in changes]


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        (READ, Faults(bit_flips=BitFlips(rate=0.1))),
        (WRITE, Faults(bit_flips=BitFlips(rate=0.02))),
        (READ, Faults(bit_flips=BitFlips(rate=0.1, bits=2))),
        (WRITE, Faults(program_fail=(1,))),
        (WRITE, Faults(erase_fail=(1, 3))),
        (WRITE + "close 0\nremount\nopen 0 new ro\nread 0 0 65536\n", Faults(program_fail=(9, 99))),
    ],
    ids=str,
)  # fmt: skip
def test_yaffs2_collects_and_retires_as_the_core(tmp_path: Path, body: str, faults: Faults) -> None:
    held(tmp_path, program("yaffs2", body + "pause 10000000000\n", faults=faults))


def test_jffs2_finds_what_ecc_cannot_correct(tmp_path: Path) -> None:
    flips = BitFlips(rate=1.0, bits=2)
    real, results = held(tmp_path, program("jffs2", READ, faults=Faults(bit_flips=flips)))
    assert set(results) == {EIO}
    assert real["ecc_failed"] > 64


@pytest.mark.parametrize("fs", ["jffs2", "ubifs"])
@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_what_ecc_cannot_correct_is_read_as_often_and_answered_alike(
    tmp_path: Path, fs: str, rate: float
) -> None:
    flips = BitFlips(rate=rate, bits=2)
    real, _ = held(tmp_path, program(fs, READ, faults=Faults(bit_flips=flips)))
    assert real["ecc_failed"] > 20


RAW = "open 0 partition rw\nmark\n" + "".join(
    f"erase 0 {at} 131072\nwrite 0 {at} 131072 1 0\nread 0 {at} 131072\n"
    for at in range(0, 12 << 17, 1 << 17)
)


@pytest.mark.parametrize(
    ("fs", "faults"),
    [
        ("mtd", Faults(bad_blocks=(3,))),
        ("mtd", Faults(program_fail=0.01)),
        ("mtd", Faults(erase_fail=(2, 5))),
        ("mtd", Faults(bit_flips=BitFlips(rate=0.2))),
        ("mtd", Faults(bit_flips=BitFlips(rate=0.2, bits=2))),
        ("mtd-driver", Faults(bad_blocks=(3,))),
        ("mtd-driver", Faults(bit_flips=BitFlips(rate=0.2))),
        ("mtd-driver", Faults(bit_flips=BitFlips(rate=0.2, bits=2))),
    ],
    ids=str,
)
def test_the_partition_itself_fails_alike(tmp_path: Path, fs: str, faults: Faults) -> None:
    one = replace(
        program("jffs2", RAW, faults=faults),
        prepare=HEADER + "prepared\n",
        stack=replace(program("jffs2", RAW, faults=faults).stack, fs=fs),
    )
    held(tmp_path, replace(one, check_contents=False))


@pytest.mark.parametrize("fs", ["jffs2", "yaffs2", "ubifs"])
@pytest.mark.parametrize("given", [(20, 300), 0.01], ids=str)
def test_what_a_failed_program_held_is_written_elsewhere(
    tmp_path: Path, fs: str, given: tuple[int, ...] | float
) -> None:
    one = program(fs, WRITE, faults=Faults(program_fail=given))
    real, results, simulated, same = both(tmp_path, one)
    without, _ = on_uml(tmp_path, program(fs, WRITE))
    assert min(results) >= 0
    assert same == results
    names = ("flash_reads", "flash_programs", "flash_erases", "bad_blocks")
    assert [simulated[name] for name in names] == [real[name] for name in names]
    assert results[-256:] == [4096] * 256
    assert real["flash_programs"] > without["flash_programs"]


def test_ubi_marks_a_block_bad_that_cannot_be_erased_any_more(tmp_path: Path) -> None:
    """Every erase fails: endurance is spent before the first one."""
    body = WRITE + "close 0\nunlink new\nsync\npause 60000000000\n"
    one = program("ubifs", body, State(worn=1000), Faults(endurance_erases=500))
    real, results = held(tmp_path, one)
    assert min(results) >= 0
    assert real["bad_blocks"] > 0


def test_an_erase_that_fails_is_tried_again(tmp_path: Path) -> None:
    body = WRITE + "close 0\nunlink new\nsync\npause 60000000000\n"
    real, _ = held(tmp_path, program("ubifs", body, faults=Faults(erase_fail=0.4)))
    assert real["flash_erases"] > 10


FILL = "mark\nopen 0 new rw,create\n" + "".join(
    f"write 0 {part * 65536} 65536 {turn} 0\n" + ("fsync 0\n" if part % 4 == 3 else "")
    for turn in range(8)
    for part in range(40)
) + "close 0\nsync\nopen 1 new ro\nread 1 0 65536\nclose 1\nopen 2 x rw,create\n"  # fmt: skip


def test_without_a_reserve_ubifs_is_read_only(tmp_path: Path) -> None:
    one = program("ubifs", FILL, State(worn=1000), Faults(endurance_erases=500))
    real, results, simulated, same = both(tmp_path, one)
    assert real["bad_blocks"] == simulated["bad_blocks"] == 40
    assert same == results
    assert results[-1] == EROFS
    assert simulated["flash_programs"] == pytest.approx(real["flash_programs"], rel=0.01)


def test_jffs2_marks_a_block_bad_whose_erase_failed_twice(tmp_path: Path) -> None:
    again = "".join(f"write 0 {part * 65536} 65536 8 0\n" for part in range(64)) * 3
    body = f"mark\nopen 0 new rw,create\n{again}close 0\nsync\n"
    real, results = on_uml(
        tmp_path, program("jffs2", body, State(valid=0.85), Faults(erase_fail=0.4))
    )
    assert min(results) >= 0
    assert real["flash_erases"] > 20
    assert real["bad_blocks"] > 0


STALE = "sync\nmark\nopen 0 new wo,create\nclose 0\nremount\n"
"""A checkpoint that a change makes void: its erase, and the one before it is marked, can fail."""


def test_the_simulator_names_the_faults_it_does_not_model() -> None:
    failing = [
        ("yaffs2", STALE, Faults(erase_fail=(1, 2)), "in a block that could not be erased"),
        ("jffs2", READ, Faults(bit_flips=BitFlips(rate=0.1, bits=3)), "three wrong bits for one"),
    ]
    for fs, body, faults, says in failing:
        one = program(fs, body, faults=faults)
        (batch,) = SimTarget().run([one])
        (failure,) = batch.failures
        assert says in (failure.not_modelled or "")
        assert failure.message.endswith(f"{failure.not_modelled} is not modelled")
