"""States and faults: what they are called, what is impossible, the operations of a state."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from flashbed.base.errors import InputError
from flashbed.plan.case import Case
from flashbed.plan.experiment import ExperimentError, load_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.plan.workloads.layout_files import prepared, written_file
from flashbed.plan.workloads.state import in_state
from flashbed.program.operations import parse
from flashbed.running.programs import programs_of
from flashbed.stack.conditions import NEW, NONE, BitFlips, Condition, Faults, State, Worn
from flashbed.stack.profiles import load_board
from flashbed.targets.guest.nand import begin_commands, setup_commands

MIB = 1 << 20
PREPARE = prepared([written_file("file.bin", MIB, 4096, 1)], 1000)

CONDITIONS: list[tuple[Condition, str]] = [
    (NEW, "new"),
    (State(valid=0.6, obsolete=0.2), "valid0.6-obsolete0.2"),
    (State(fragmented=1.0, worn=1000, seed=2), "fragmented1-worn1000-seed2"),
    (State(worn=Worn(mean=1000, spread=50)), "worn1000~50"),
    (NONE, "none"),
    (Faults(bad_blocks=(3, 7), bad_fraction=0.02), "bad@3+7-badfraction0.02"),
    (Faults(program_fail=(5,), erase_fail=0.001), "programfail@5-erasefail0.001"),
    (Faults(bit_flips=BitFlips(rate=0.00001, bits=2), seed=9), "flips0.00001x2-seed9"),
    (Faults(endurance_erases=3000), "endurance3000"),
]


@pytest.mark.parametrize(("condition", "text"), CONDITIONS, ids=lambda value: str(value))
def test_a_condition_is_one_word_that_reads_back(condition: Condition, text: str) -> None:
    assert str(condition) == text
    again = type(condition).parse(text)
    assert str(again) == text


def cases(*settings: str) -> list[Case]:
    return [item.case for item in plan(load_experiment("one"), parse_settings(settings))]


def test_states_and_faults_are_axes(small: Path) -> None:
    file = small / "experiments" / "small" / "one.toml"
    grid = 'state = [{}, { name = "full", valid = 0.9 }]\nfaults = { bad_blocks = [1] }\n'
    file.write_text(file.read_text().replace("seed = [", f"{grid}seed = [", 1))
    assert {str(case.state) for case in cases()} == {"new", "full"}
    assert {str(case.faults) for case in cases()} == {"none", "bad@1"}
    (full,) = {case.state for case in cases("state=full")}
    assert full == State(name="full", valid=0.9)
    assert {str(case.state) for case in cases("state=new,worn5")} == {"new", "worn5"}
    assert all(case.case_id.endswith("-full-bad@1") for case in cases("state=full", "faults=bad@1"))


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("state=fuller", "--set state=fuller: no such name, and no state such as valid0.6"),
        ("state=valid1.5", "--set state=valid1.5: valid: "),
        ("state=worn5~9", "state=worn5~9: worn: a spread of 9 around 5"),
        ("faults=bad", "no such name, and no faults such as"),
        ("faults=flips2x1", "bit_flips.rate: "),
    ],
)
def test_a_bad_condition_is_refused(small: Path, setting: str, says: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        cases(setting)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_two_states_of_one_name_are_refused(small: Path) -> None:
    file = small / "experiments" / "small" / "one.toml"
    states = '[{ name = "a", valid = 0.1 }, { name = "a", valid = 0.2 }]'
    file.write_text(file.read_text().replace("seed = [", f"state = {states}\nseed = [", 1))
    with pytest.raises(ExperimentError, match="state: two are called a"):
        load_experiment("one")


def test_a_bad_block_past_the_partition_is_refused(small: Path) -> None:
    with pytest.raises(InputError, match="bad_blocks: 99999: the partition has"):
        programs_of(load_experiment("one"), cases("faults=bad@99999", "requests=8"))


@pytest.mark.extension
@pytest.mark.parametrize("fs", ["jffs2", "ubifs"])
def test_a_filler_writes_what_was_asked_for(fs: str) -> None:
    board = load_board("emulated")
    state = State(valid=0.6, obsolete=0.2)
    operations = parse(in_state(state, fs, board=board, bad_blocks=(), prepare=PREPARE))
    assert operations[-1].name == "prepared"
    written: dict[tuple[str, int], int] = {}
    slots: dict[object, str] = {}
    for operation in operations:
        if operation.name == "open":
            slots[operation.fields[0]] = str(operation.fields[1])
        if operation.name == "write":
            slot, offset, length, *_ = operation.fields
            for page in range(int(offset) // 4096, -(-(int(offset) + int(length)) // 4096)):
                at = slots[slot], page
                written[at] = written.get(at, 0) + 1
    live, again = len(written), sum(times - 1 for times in written.values())
    assert max(written.values()) == 2
    assert again / live == pytest.approx(0.2 / 0.6, rel=0.01)
    assert in_state(state, fs, board=board, bad_blocks=(), prepare=PREPARE) == in_state(
        state, fs, board=board, bad_blocks=(), prepare=PREPARE
    )


@pytest.mark.extension
@pytest.mark.parametrize("fs", ["jffs2", "ubifs"])
def test_a_fragmented_file_holds_what_it_would_hold(fs: str) -> None:
    fragmented = in_state(
        State(fragmented=1.0), fs, board=load_board("emulated"), bad_blocks=(), prepare=PREPARE
    )
    writes = [op.fields for op in parse(fragmented) if op.name == "write"]
    assert {fields[3:] for fields in writes} == {(1, 0)}
    covered = {at for f in writes for at in range(int(f[1]), int(f[1]) + int(f[2]), 1024)}
    assert covered == set(range(0, MIB, 1024))
    offsets = [int(fields[1]) for fields in writes]
    assert sum(a > b for a, b in pairwise(offsets)) > len(offsets) / 4


@pytest.mark.extension
@pytest.mark.parametrize("fs", ["jffs2", "ubifs"])
def test_a_file_of_many_contents_is_fragmented_too(fs: str) -> None:
    """A database was never fragmented, and nothing said so.

    Each of its pages is a write of other bytes, and only writes of the same bytes made a stretch.
    """
    pages = [(page * 1024, 1024, 10 + page, 50) for page in range(256)]
    lines = "".join("write 0 {} {} {} {}\n".format(*page) for page in pages)
    prepare = f"flashbed-ops 1\nopen 0 a.db rw,create\n{lines}fsync 0\nclose 0\nprepared\n"
    written: dict[int, tuple[int, ...]] = {}
    offsets = []
    for operation in parse(
        in_state(
            State(fragmented=1.0), fs, board=load_board("emulated"), bad_blocks=(), prepare=prepare
        )
    ):
        if operation.name == "write":
            _, offset, length, *content = map(int, operation.fields)
            written[offset] = (offset, length, *content)
            offsets.append(offset)
    assert sorted(written.values()) == pages
    assert sum(a > b for a, b in pairwise(offsets)) > len(offsets) / 10


@pytest.mark.extension
@pytest.mark.parametrize("fs", ["jffs2", "ubifs", "yaffs2"])
def test_a_file_that_compresses_leaves_the_filler_its_share(fs: str) -> None:
    """A database half of whose bytes are saved counted whole: `valid` came out a tenth too low."""

    def filler(compressibility: int) -> int:
        lines = [f"write 0 {at} 4096 1 {compressibility}" for at in range(0, 8 * MIB, 4096)]
        prepare = prepared([["open 0 a rw,create", *lines, "close 0"]], 1000)
        text = in_state(
            State(valid=0.8), fs, board=load_board("emulated"), bad_blocks=(), prepare=prepare
        )
        writes = [operation.fields for operation in parse(text) if operation.name == "write"]
        return sum(int(fields[2]) for fields in writes) - 8 * MIB

    more = 0 if fs == "yaffs2" else 4 * MIB
    assert filler(50) - filler(0) == pytest.approx(more, rel=0.02)


@pytest.mark.extension
@pytest.mark.parametrize("fs", ["jffs2", "ubifs", "yaffs2"])
def test_the_files_of_a_recorded_program_leave_the_filler_its_share(fs: str) -> None:
    """A recording on a filled partition ended in a traceback: its bytes were read as a number."""
    writes = "write 0 0 8192 1 1000+24x2\nwrite 0 8192 100 1 36+64\ndata aGFsbG8=\n"
    prepare = (
        f"flashbed-ops 2\nopen 0 a%20b rw,create\n{writes}write 0 8292 5 0 data\nfsync 0\n"
        "close 0\nprepared\n"
    )
    board = load_board("emulated")
    text = in_state(State(valid=0.5), fs, board=board, bad_blocks=(), prepare=prepare)
    assert text.startswith("flashbed-ops 2\n")
    assert writes in text
    filled = [int(op.fields[2]) for op in parse(text) if op.name == "write"][:-3]
    assert sum(filled) > 10 * MIB
    with pytest.raises(InputError, match="recorded program are written in order only"):
        in_state(State(fragmented=0.5), fs, board=board, bad_blocks=(), prepare=prepare)


@pytest.mark.extension
@pytest.mark.parametrize(
    ("fs", "state", "says"),
    [
        ("jffs2", State(valid=0.7, obsolete=0.4), "valid and obsolete are more than all the space"),
        ("jffs2", State(valid=0.01), "the workload's own files are 0.021 of the usable space"),
        ("jffs2", State(valid=0.5, obsolete=0.45), "at most 0.82 of the filler's live data"),
        ("ubifs", State(valid=0.3, obsolete=0.4), "at most 1.00 of the filler's live data"),
        ("jffs2", State(valid=0.9, obsolete=0.1), "JFFS2 collects if fewer than two blocks"),
    ],
)
def test_what_is_impossible_is_refused_in_a_line(fs: str, state: State, says: str) -> None:
    with pytest.raises(InputError) as refused:
        in_state(state, fs, board=load_board("emulated"), bad_blocks=(), prepare=PREPARE)
    assert says in str(refused.value)
    assert str(refused.value).startswith(f"state {state}: ")
    assert "\n" not in str(refused.value)


def test_a_workload_that_prepares_nothing_cannot_be_fragmented() -> None:
    with pytest.raises(InputError, match="fragmented: the workload prepares no file"):
        in_state(
            State(fragmented=0.5),
            "jffs2",
            board=load_board("emulated"),
            bad_blocks=(),
            prepare=prepared([], 1000),
        )


def test_wear_and_bad_blocks_are_drawn_by_their_seed() -> None:
    erases = State(worn=Worn(mean=100, spread=10)).erases(400)
    assert (min(erases), max(erases)) == (90, 110)
    assert erases != State(worn=Worn(mean=100, spread=10), seed=2).erases(400)
    assert State(worn=7).erases(3) == (7, 7, 7)
    assert NEW.erases(3) == ()
    bad = Faults(bad_fraction=0.02, bad_blocks=(5,)).bad(400)
    assert len(bad) in (8, 9)
    assert 5 in bad


def test_the_chip_is_told_what_it_is_and_what_fails(small: Path) -> None:
    program = programs_of(load_experiment("one"), cases("fs=jffs2", "requests=8")[:1])[0]
    board = program.stack.board.model_copy(
        update={"partition": program.stack.board.partition.model_copy(update={"first_block": 10})}
    )
    faults = Faults(bad_blocks=(2,), endurance_erases=9, program_fail=(4,), erase_fail=0.5, seed=3)
    told = replace(
        program, stack=replace(program.stack, board=board, erases=(7, 7, 8), faults=faults)
    )
    assert setup_commands(told) == [
        "renew",
        "bad 12",
        "wear 10 2 7",
        "wear 12 1 8",
    ]
    assert begin_commands(told) == ["faults 3 0 500000 0 1", "endurance 9 3", "fail-program 4"]
    assert begin_commands(program) == []
