"""What a cut leaves of the program's own files, where the file system has kept every promise.

A store of settings that was renamed without an fsync was empty after most cuts, and `powercut` said
"48 of 48 recovered".
"""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from flashbed.bench.powercut.cutting import Choice, PowerCuts
from flashbed.bench.powercut.finished import DoneOperation
from flashbed.bench.powercut.judge import RECOVERED, judge
from flashbed.bench.powercut.outcomes import lines, summary
from flashbed.bench.powercut.program_files import FileState, ProgramFiles
from flashbed.program.operations import HEADER_2, parse
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets import load_target
from flashbed.targets.base import Program
from tests.layers.powercut.test_powercut_judge import Files, found

MS = 1_000_000
SECOND = "pause 1000000000"


def steps(text: str) -> list[DoneOperation]:
    """Operations, a line each, of a millisecond each and a change each; pauses take their time."""
    made: list[DoneOperation] = []
    task, now_ns = 0, 0
    for operation in parse("\n".join((HEADER_2, *map(str.strip, text.strip().splitlines()), ""))):
        if operation.name == "task":
            task = int(operation.fields[0])
            continue
        result = int(operation.fields[2]) if operation.name == "write" else 0
        made.append(
            DoneOperation(
                operation=operation,
                result=result,
                changes=len(made) + 1,
                data=b"",
                task=task,
                start_ns=now_ns,
            )
        )
        now_ns += int(operation.fields[0]) if operation.name == "pause" else MS
    return made


def states(text: str, change: int, files: Files) -> dict[str, FileState]:
    """The state of each file that is not new; the cut is in the operation with that number."""
    done = steps(text)
    program = ProgramFiles(done, 0)
    list(judge(done, [found(files, change)], program))
    return {state.path: state for state in program.rows() if state.state != "new"}


def state(text: str, change: int, files: Files) -> str:
    """The state of the file `config`."""
    done = steps(text)
    program = ProgramFiles(done, 0)
    list(judge(done, [found(files, change)], program))
    ((_, word),) = program.counts
    return word


STORE = """
open 0 config wo,create
write 0 0 100 1 0
fsync 0
close 0
pause 1000000000
open 0 config.new wo,create
write 0 0 90 2 0
close 0
rename config.new config
pause 1000000000
pause 1000000000
"""


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ([(90, (2, 0))], "new"),
        ([(100, (1, 0))], "old"),
        ([], "empty"),
        ([(90, "zero")], "empty"),
        ([(40, (2, 0))], "mixed"),
        ([(40, (2, 0)), (50, "zero")], "mixed"),
        ([(50, (2, 0)), (50, (1, 0))], "mixed"),
        ([(90, -5)], "mixed"),
    ],
)
def test_a_file_is_compared_with_what_the_program_had_finished(
    file: list[tuple[int, Any]], expected: str
) -> None:
    assert state(STORE, 11, {"config": file}) == expected


def test_a_rename_without_fsync_is_named_with_the_call_that_was_left_out() -> None:
    wrong = states(STORE, 11, {"config": []})["config"]
    assert wrong.kept_by == "fsync(config.new) before rename"
    assert states(STORE, 11, {})["config"].state == "missing"
    # Without the fsync the old content may be back, too; only the folder's makes the new one sure.
    old = states(STORE, 11, {"config": [(100, (1, 0))]})["config"]
    assert old.kept_by == "fsync(config.new) before rename, fsync(.) after rename"
    synced = STORE.replace("90 2 0", "90 2 0\nfsync 0")
    assert states(synced, 12, {"config": [(100, (1, 0))]})["config"].kept_by == (
        "fsync(.) after rename"
    )


@pytest.mark.parametrize("change", range(5, 10))
def test_a_cut_while_a_program_saves_takes_nothing_that_it_had_finished(change: int) -> None:
    assert state(STORE, change, {"config": [(100, (1, 0))]}) == "new"


@pytest.mark.parametrize("change", [1, 2, 3])
def test_a_file_counts_from_its_first_finished_content_on(change: int) -> None:
    done = steps(STORE)
    program = ProgramFiles(done, 0)
    list(judge(done, [found({}, change)], program))
    assert not program.counts


IN_PLACE = """
open 0 config wo,create
write 0 0 100 1 0
fsync 0
close 0
pause 1000000000
open 0 config wo,trunc
write 0 0 50 2 0
write 0 50 50 2 0
fsync 0
close 0
pause 1000000000
"""


@pytest.mark.parametrize(("change", "size"), [(6, 0), (7, 0), (7, 50), (8, 50)])
def test_a_file_rewritten_in_place_is_lost_meanwhile_and_fsync_does_not_help(
    change: int, size: int
) -> None:
    file: Files = {"config": [(size, (2, 0))] if size else []}
    wrong = states(IN_PLACE, change, file)["config"]
    assert wrong.state == ("mixed" if size else "empty")
    assert wrong.kept_by == "write config.new, fsync it, rename it to config"


LOG = """
open 0 log wo,create
write 0 0 30 1 0
pause 1000000000
write 0 30 30 2 0
pause 1000000000
write 0 60 30 3 0
pause 1000000000
close 0
"""


@pytest.mark.parametrize(
    ("size", "expected", "lost_ns"),
    [
        (90, None, None),
        (60, "old", 1001 * MS),
        (45, "old", 2002 * MS),
        (30, "old", 2002 * MS),
        (0, "empty", 3003 * MS),
        (None, "missing", 3003 * MS),
    ],
)
def test_a_log_loses_the_time_of_its_last_lines(
    size: int | None, expected: str | None, lost_ns: int | None
) -> None:
    parts: list[tuple[int, Any]] = [(30, (1, 0)), (30, (2, 0)), (30, (3, 0))]
    whole = [(min(30, size - 30 * n), what) for n, (_, what) in enumerate(parts)
             if size is not None and size > 30 * n]  # fmt: skip
    wrong = states(LOG, 7, {} if size is None else {"log": whole})
    if expected is None:
        assert wrong == {}
        return
    assert (wrong["log"].state, wrong["log"].lost_ns) == (expected, lost_ns)
    assert wrong["log"].kept_by == "fsync(log) after each write"


def test_zeros_at_the_end_of_a_log_are_no_lines() -> None:
    wrong = states(LOG, 7, {"log": [(30, (1, 0)), (60, "zero")]})["log"]
    assert (wrong.state, wrong.lost_ns) == ("mixed", 2002 * MS)


def test_a_pause_of_another_task_does_not_finish_a_file() -> None:
    text = """
    open 0 copy wo,create
    write 0 0 50 1 0
    spawn 1
    task 1
    pause 1000000000
    task 0
    write 0 50 50 1 0
    close 0
    pause 1000000000
    """
    assert states(text, 5, {"copy": [(50, (1, 0))]}) == {}
    done = steps(text)
    program = ProgramFiles(done, 0)
    list(judge(done, [found({"copy": [(50, (1, 0))]}, 7)], program))
    assert program.counts == {(7, "mixed"): 1}


def test_files_of_sqlite_and_files_for_a_moment_are_not_judged() -> None:
    text = """
    open 0 x.db rw,create
    open 1 x.db-journal rw,create
    write 1 0 100 1 0
    write 0 0 100 2 0
    close 1
    unlink x.db-journal
    close 0
    open 0 scratch wo,create
    write 0 0 10 1 0
    close 0
    pause 1000000000
    unlink scratch
    """
    wrong = states(text, 11, {})
    assert {path: each.state for path, each in wrong.items()} == {"x.db": "not judged"}


CONFIG = f"""{HEADER_2}
mark
{
    "".join(
        f'''open 0 config.new wo,create,trunc
write 0 0 900 {n + 1} 0
close 0
rename config.new config
open 1 log wo,create,append
write 1 {30 * n} 30 {n + 100} 0
close 1
pause 1000000000
'''
        for n in range(45)
    )
}"""
SAFE = CONFIG.replace(
    "\nclose 0\nrename config.new config\n",
    "\nfsync 0\nclose 0\nrename config.new config\nopen 2 . ro,directory\nfsync 2\nclose 2\n",
).replace("\nclose 1", "\nfsync 1\nclose 1")  # fmt: skip


def cut(body: str, fs: str) -> dict[str, Any]:
    """The summary of cuts in every change, on the simulator."""
    # JFFS2 does not mount a flash that holds nothing but a torn page.
    prepare = f"{HEADER_2}\nopen 0 first wo,create\nwrite 0 0 1 1 0\nclose 0\nsync\nprepared\n"
    program = Program(
        case_id="one",
        stack=Stack(
            board=load_board("emulated"), kernel=load_kernel("6.1"), fs=fs, read_ahead_kib=None
        ),
        prepare=prepare,
        body=body,
    )
    target = PowerCuts(load_target("sim"), Choice(1, None, 1), "sim")
    batches = list(target.run([program]))
    assert not [failure for batch in batches for failure in batch.failures]
    cuts, files = (
        pl.concat([getattr(batch, name) for batch in batches]).with_columns(target=pl.lit("sim"))
        for name in ("power_cuts", "cut_files")
    )
    assert set(cuts["verdict"]) == {RECOVERED}
    (row,) = summary(cuts, files)
    return row


def test_a_store_without_fsync_is_not_said_to_be_safe_on_ubifs() -> None:
    row = cut(CONFIG, "ubifs")
    files = {file["file"]: file for file in row["files"]}
    assert files["config"]["empty"] > row["cuts"] // 2
    assert files["config"]["kept_by"] == "fsync(config.new) before rename"
    # The flusher runs every 5 s, and UBIFS keeps what it wrote for up to 5.5 s in its write-buffer.
    assert 5e9 < files["log"]["lost_ns"] < 12e9
    first, *others = lines([row])
    assert f", {row['damaging_cuts']} damaged the program's files" in first
    assert any("fsync(config.new) before rename" in line for line in others)


@pytest.mark.parametrize("fs", ["jffs2", "ubifs", "yaffs2"])
def test_a_store_that_syncs_what_it_renames_keeps_every_file(fs: str) -> None:
    row = cut(SAFE, fs)
    assert row["files"] == []
    assert row["damaging_cuts"] == 0
    assert "  the program's files (2): as it had left them" in lines([row])
