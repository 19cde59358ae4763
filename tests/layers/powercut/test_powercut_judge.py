"""What may be left after a power cut, by cases made by hand: kept, lost, torn, renamed, removed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashbed.bench.powercut.judge import (
    CORRUPT,
    LOST,
    NOT_MOUNTED,
    RECOVERED,
    UNUSABLE,
    DoneOperation,
    JudgedCut,
    judge,
)
from flashbed.program.content import generated
from flashbed.program.operations import HEADER, parse
from flashbed.targets.base import Run, Survey, SurveyedFile
from tests.layers.agent.test_agent import generated as by_definition

What = tuple[int, int] | str | bytes | int
Files = dict[str, list[tuple[int, What]]]
"""Path -> lengths in a row, and what they are."""


def done(text: str) -> list[DoneOperation]:
    """Operations, a line each; `= N` behind one are the changes when it had returned."""
    steps = []
    changes = 0
    for line in filter(str.strip, text.splitlines()):
        words, _, after = line.strip().partition(" = ")
        changes = int(after) if after else changes
        steps.append((words, changes))
    operations = parse("\n".join((HEADER, *(words for words, _ in steps), "")))
    return [
        DoneOperation(
            operation=operation,
            result=int(operation.fields[2]) if operation.name == "write" else 0,
            changes=count,
        )
        for operation, (_, count) in zip(operations, steps, strict=True)
    ]


def found(files: Files, change: int, probe: int = 0, mount: int = 0) -> Survey:
    surveyed = []
    for path, parts in files.items():
        runs, at = [], 0
        for length, what in parts:
            runs.append(Run(at, length, what))
            at += length
        surveyed.append(SurveyedFile(path, at, tuple(runs)))
    return Survey(
        case_id="case",
        change=change,
        mount_result=mount,
        mount_time_ns=1000,
        files=tuple(surveyed),
        probe_result=None if mount else probe,
    )


def verdict(text: str, change: int, files: Files, probe: int = 0) -> tuple[str, str | None]:
    (one,) = judge(done(text), [found(files, change, probe)])
    return one.verdict, one.reason


SYNCED = """
open 0 a wo,create = 1
write 0 0 100 1 0 = 2
fsync 0 = 4
close 0
"""
LATER = """
open 0 b wo,create = 5
"""
A: Files = {"a": [(100, (1, 0))]}


def test_what_fsync_acknowledged_and_is_there_is_kept() -> None:
    (one,) = judge(done(SYNCED + LATER), [found(A, 5)])
    assert one == JudgedCut(
        change=5,
        acknowledged_files=1,
        kept_files=1,
        lost_files=0,
        mounted=True,
        mount_time_ns=1000,
        verdict=RECOVERED,
        reason=None,
    )


@pytest.mark.parametrize("change", [1, 2, 3, 4])
def test_before_fsync_returned_nothing_is_promised(change: int) -> None:
    """In the fourth change fsync had not returned."""
    assert verdict(SYNCED + LATER, change, {})[0] == RECOVERED
    assert verdict(SYNCED + LATER, change, A if change > 1 else {})[0] == RECOVERED


def test_what_was_acknowledged_and_is_gone_is_lost() -> None:
    (one,) = judge(done(SYNCED + LATER), [found({}, 5)])
    assert (one.verdict, one.acknowledged_files, one.kept_files, one.lost_files) == (LOST, 1, 0, 1)
    assert one.reason == "a: is missing, and had been acknowledged"


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([(99, (1, 0))], "a: offset 99: ends there, 100 bytes had been acknowledged"),
        ([(60, (1, 0)), (40, "zero")], "a: offset 60: acknowledged bytes are zero"),
        (
            [(60, (1, 0)), (40, b"\xff" * 40)],
            "a: offset 60: acknowledged bytes are bytes that it may not hold",
        ),
        ([(8, (1, 0)), (92, (2, 0))], "a: offset 8: acknowledged bytes are those of another write"),
        ([(100, -5)], "a: offset 0: acknowledged bytes are unreadable: EIO"),
        ([(0, -5)], "a: offset 0: acknowledged bytes are unreadable: EIO"),
    ],
)
def test_acknowledged_bytes_that_are_not_there_are_lost(
    parts: list[tuple[int, What]], reason: str
) -> None:
    got = verdict(SYNCED + LATER, 5, {"a": parts})
    assert got[0] == LOST
    assert str(got[1]).startswith(reason)


UNSYNCED = """
open 0 a wo,create = 1
write 0 0 100 1 0 = 2
write 0 50 100 2 0 = 3
sync = 9
"""


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ([], RECOVERED),
        ([(100, (1, 0))], RECOVERED),
        ([(50, (1, 0)), (50, (2, 0))], RECOVERED),
        ([(50, (1, 0)), (3, (2, 0)), (7, (1, 0)), (90, (2, 0))], RECOVERED),
        ([(150, "zero")], RECOVERED),
        ([(30, (1, 0))], RECOVERED),
        ([(50, (1, 0)), (101, (2, 0))], CORRUPT),
        ([(50, (2, 0))], CORRUPT),
        ([(20, (1, 0)), (5, b"other")], CORRUPT),
        ([(20, (1, 0)), (5, -5)], CORRUPT),
    ],
)
def test_what_was_never_acknowledged_may_be_any_of_its_versions(
    parts: list[tuple[int, What]], says: str
) -> None:
    assert verdict(UNSYNCED, 4, {"a": parts})[0] == says


def test_after_sync_only_the_last_version_is_left() -> None:
    text = UNSYNCED + "pause 1 = 10\n"
    assert verdict(text, 10, {"a": [(50, (1, 0)), (100, (2, 0))]})[0] == RECOVERED
    assert verdict(text, 10, {"a": [(100, (1, 0))]})[0] == LOST


def test_an_overwrite_in_progress_may_be_torn_but_is_one_of_both() -> None:
    text = SYNCED + "open 0 a wo\nwrite 0 20 30 2 0\nfsync 0 = 7\nclose 0\n"
    torn: Files = {"a": [(25, (1, 0)), (10, (2, 0)), (65, (1, 0))]}
    assert verdict(text, 6, A)[0] == verdict(text, 6, torn)[0] == RECOVERED
    assert verdict(text, 6, {"a": [(20, (1, 0)), (30, "zero"), (50, (1, 0))]})[0] == LOST
    assert verdict(text + LATER.replace("5", "8"), 8, torn)[0] == LOST


REPLACED = """
open 0 a wo,create
write 0 0 100 1 0
fsync 0 = 1
close 0
open 0 a.new wo,create
write 0 0 80 2 0
fsync 0 = 2
close 0
rename a.new a = 3
pause 5 = 4
"""
OLD: list[tuple[int, What]] = [(100, (1, 0))]
NEW: list[tuple[int, What]] = [(80, (2, 0))]


@pytest.mark.parametrize("change", [3, 4])
@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"a": OLD, "a.new": NEW}, RECOVERED),
        ({"a": NEW}, RECOVERED),
        ({"a": NEW, "a.new": NEW}, RECOVERED),
        ({"a.new": NEW}, LOST),
        ({}, LOST),
        ({"a": OLD}, LOST),
        ({"a": [(40, (1, 0)), (40, (2, 0))]}, LOST),
    ],
)
def test_a_rename_replaces_at_once(change: int, files: Files, says: str) -> None:
    assert verdict(REPLACED, change, files)[0] == says


def test_a_file_under_neither_of_its_names_is_said_to_be() -> None:
    reason = "a.new: was being renamed to a, and neither name exists"
    assert verdict(REPLACED, 4, {"a": OLD}) == (LOST, reason)


def test_a_name_that_may_be_gone_is_no_loss_if_its_file_is_elsewhere() -> None:
    stale: Files = {"a": NEW, "a.new": []}
    reason = "a.new: offset 0: ends there, 80 bytes had been acknowledged"
    assert verdict(REPLACED, 4, stale) == (CORRUPT, reason)
    assert verdict(REPLACED, 4, {"a": OLD, "a.new": []})[0] == LOST


def test_a_rename_that_sync_acknowledged_is_done() -> None:
    text = REPLACED + "sync = 5\npause 5 = 6\n"
    assert verdict(text, 6, {"a": NEW})[0] == RECOVERED
    back = verdict(text, 6, {"a": NEW, "a.new": NEW})
    assert back == (CORRUPT, "a.new: exists, and no operation left it there")
    assert verdict(text, 6, {"a": OLD})[0] == LOST


def test_a_renamed_folder_takes_its_files_along() -> None:
    text = "mkdir d\n" + SYNCED.replace(" a ", " d/a ") + "rename d e = 5\nsync = 6\npause 1 = 7\n"
    below: Files = {"d/a": [(100, (1, 0))]}
    assert verdict(text, 5, below)[0] == RECOVERED
    assert verdict(text, 5, {"e/a": below["d/a"]})[0] == RECOVERED
    assert verdict(text, 5, {})[0] == LOST
    assert verdict(text, 7, below)[0] == LOST


def test_an_unlinked_file_may_be_there_whole_or_not_at_all() -> None:
    text = SYNCED + "unlink a = 5\nsync = 6\npause 1 = 7\n"
    for change in (5, 6):
        assert verdict(text, change, {})[0] == verdict(text, change, A)[0] == RECOVERED
        assert verdict(text, change, {"a": [(50, (1, 0))]})[0] == CORRUPT
    assert verdict(text, 7, {})[0] == RECOVERED
    assert verdict(text, 7, A)[0] == CORRUPT


def test_a_file_made_anew_is_another_file() -> None:
    text = SYNCED + "unlink a\nopen 0 a wo,create\nwrite 0 0 50 2 0 = 5\n"
    assert verdict(text, 5, A)[0] == verdict(text, 5, {"a": [(50, (2, 0))]})[0] == RECOVERED
    both: Files = {"a": [(50, (2, 0)), (50, (1, 0))]}
    assert verdict(text, 5, both) == (
        CORRUPT,
        "a: offset 50: has 100 bytes, never had more than 50",
    )


def test_a_hole_is_zero_where_the_file_has_grown() -> None:
    text = SYNCED + "open 0 a wo\nwrite 0 200 50 2 0 = 5\n"
    grown: Files = {"a": [(100, (1, 0)), (100, "zero"), (50, (2, 0))]}
    assert verdict(text, 5, grown)[0] == RECOVERED
    assert verdict(text, 5, {"a": [(100, (1, 0)), (150, "zero")]})[0] == RECOVERED
    assert verdict(text, 5, {"a": [(90, (1, 0)), (160, "zero")]})[0] == LOST
    assert verdict(text, 5, {"a": [(100, (1, 0)), (150, (2, 0))]})[0] == CORRUPT


def test_a_file_cut_short_has_no_zeros_where_it_did_not_grow_again() -> None:
    text = SYNCED + "open 0 a wo\ntruncate 0 50 = 5\n"
    assert verdict(text, 5, A)[0] == verdict(text, 5, {"a": [(50, (1, 0))]})[0] == RECOVERED
    assert verdict(text, 5, {"a": [(50, (1, 0)), (50, "zero")]})[0] == LOST
    again = text + "truncate 0 100 = 6\n"
    assert verdict(again, 6, {"a": [(50, (1, 0)), (50, "zero")]})[0] == RECOVERED


def test_a_synchronous_write_acknowledges_its_own_bytes() -> None:
    text = (
        "open 0 a wo,create\nwrite 0 0 100 1 0\nclose 0\n"
        "open 0 a wo,sync\nwrite 0 100 50 2 0 = 1\npause 1 = 2\n"
    )
    assert verdict(text, 2, {"a": [(100, (1, 0)), (50, (2, 0))]})[0] == RECOVERED
    assert verdict(text, 2, {"a": [(100, "zero"), (50, (2, 0))]})[0] == RECOVERED
    assert verdict(text, 2, {"a": [(100, (1, 0))]})[0] == LOST
    assert verdict(text, 2, {"a": [(100, (1, 0)), (50, "zero")]})[0] == LOST
    assert verdict(text, 2, {})[0] == LOST


def test_a_folder_that_is_synced_keeps_its_names() -> None:
    text = REPLACED.replace(" a", " d/a") + "open 0 d ro\nfsync 0 = 5\npause 1 = 6\n"
    text = "mkdir d\n" + text
    assert verdict(text, 6, {"d/a": NEW})[0] == RECOVERED
    assert verdict(text, 6, {"d/a": OLD, "d/a.new": NEW})[0] == LOST


def test_failed_operations_do_nothing_and_promise_nothing() -> None:
    steps = done(SYNCED + LATER)
    steps[2] = DoneOperation(operation=steps[2].operation, result=-5, changes=steps[2].changes)
    (one,) = judge(steps, [found({}, 5)])
    assert (one.verdict, one.acknowledged_files) == (RECOVERED, 0)


def test_files_of_nobody_are_corruption() -> None:
    reason = "c: exists, and no operation left it there"
    assert verdict(SYNCED + LATER, 5, A | {"c": []}) == (CORRUPT, reason)


def test_a_loss_is_worse_than_corruption_and_both_than_a_probe_that_failed() -> None:
    assert verdict(SYNCED + LATER, 5, {"c": []}, probe=-28)[0] == LOST
    assert verdict(SYNCED + LATER, 5, {**A, "c": []}, probe=-28)[0] == CORRUPT
    unusable = verdict(SYNCED + LATER, 5, A, probe=-28)
    assert unusable[0] == UNUSABLE
    assert "ENOSPC" in str(unusable[1])


def test_a_mount_that_fails_is_said_with_its_error() -> None:
    (one,) = judge(done(SYNCED + LATER), [found({}, 5, mount=-117)])
    assert (one.verdict, one.mounted, one.kept_files) == (NOT_MOUNTED, False, None)
    assert str(one.reason).startswith("mounting: EUCLEAN")


def test_many_cuts_are_judged_in_the_order_of_their_changes() -> None:
    surveys = [found(A, change) for change in (9, 5, 3)]
    judged = list(judge(done(SYNCED + LATER), surveys))
    assert [one.change for one in judged] == [3, 5, 9]
    assert {one.verdict for one in judged} == {RECOVERED}


def test_appended_bytes_are_those_of_their_offset_wherever_they_land() -> None:
    text = SYNCED + "open 0 a wo,append\nwrite 0 0 10 2 0 = 5\nfsync 0 = 6\npause 1 = 7\n"
    appended = generated(0, 10, 2, 0).tobytes()
    assert verdict(text, 7, {"a": [(100, (1, 0)), (10, appended)]})[0] == RECOVERED
    assert verdict(text, 5, A)[0] == RECOVERED
    lost = "a: offset 100: ends there, 110 bytes had been acknowledged"
    assert verdict(text, 7, A) == (LOST, lost)
    assert verdict(text, 7, {"a": [(100, (1, 0)), (10, (2, 0))]})[0] == LOST
    ok = SYNCED + "open 0 a wo,append\nwrite 0 100 10 2 0 = 5\n"
    assert verdict(ok, 5, {"a": [(100, (1, 0)), (10, (2, 0))]})[0] == RECOVERED


@given(
    st.integers(0, 300), st.integers(1, 200), st.integers(0, 2**63 - 1), st.sampled_from([0, 50])
)
def test_bytes_are_generated_as_the_format_says(
    offset: int, length: int, seed: int, compressibility: int
) -> None:
    expected = by_definition(offset, length, seed, compressibility)
    assert generated(offset, length, seed, compressibility).tobytes() == expected
    assert generated(offset, length, seed, compressibility).dtype == np.uint8
