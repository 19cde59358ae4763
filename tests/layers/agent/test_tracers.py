"""The tracers alone on a board: what they show, what they say was lost, what they leave behind."""

from __future__ import annotations

import pytest

from flashbed.stack.profiles import load_board
from tests.support.tracing import INSTANCES, KPROBES, Said, obeyed

pytestmark = [pytest.mark.emulator, pytest.mark.long, pytest.mark.timeout(300)]

CHIP = "/init check /dev/mtd0ro"
"""Reads the whole partition, from the first page to the last; it is no file of operations."""
TRACEFS = "/sys/kernel/debug/tracing"
COUNTS = "show /sys/kernel/debug/flashbed_nand/counts"
LEFT = [f"show {KPROBES}", f"list {INSTANCES}"]
SCRIPT = [
    *LEFT,
    COUNTS,
    f"run flashmon -- {CHIP}",
    COUNTS,
    f"run flashmon --points page -- {CHIP}",
    f"run flashmon --points mtd -- {CHIP}",
    f"run flashmon --buffer-kib 4 -- {CHIP}",
    "run vfsmon -- /init check /modules",
    "run funcmon vfs_open* no_such_function -- /init check /modules",
    "run funcmon vfs_open -- /no/such/program",
    "run vfsmon --func",
    f"show {TRACEFS}/trace_clock",
    f"show {TRACEFS}/buffer_size_kb",
    f"show {TRACEFS}/options/overwrite",
    f"show {TRACEFS}/tracing_on",
    "run vfsmon --global -- /init check /modules",
    f"run flashmon --global -- {CHIP}",
    f"show {TRACEFS}/trace_clock",
    f"show {TRACEFS}/options/overwrite",
    f"show {TRACEFS}/tracing_on",
    f"show {TRACEFS}/buffer_size_kb",
    *LEFT,
    "signalled 4000 flashmon",
    *LEFT,
    "killed 4000 trace --flash --vfs --func vfs_open",
    *LEFT,
    "killed 4000 vfsmon --global",
    *LEFT,
    "run flashmon --seconds 0.1",
    *LEFT,
]


@pytest.fixture(scope="module")
def said(tracing_guest: bytes, tmp_path_factory: pytest.TempPathFactory) -> list[Said]:
    return obeyed(tracing_guest, tmp_path_factory.mktemp("board"), SCRIPT)


def one(said: list[Said], line: str) -> Said:
    (found,) = (part for part in said if part.line == line)
    return found


def left(said: list[Said], after: str) -> tuple[Said, Said]:
    """The probes and instances that are there after a line."""
    at = [part.line for part in said].index(after)
    return said[at + 1], said[at + 2]


@pytest.mark.parametrize("level", ["", " --points page", " --points mtd"])
def test_every_page_is_read_once_at_every_level(said: list[Said], level: str) -> None:
    board = load_board("emulated-small")
    pages = board.partition.blocks * board.chip.pages_per_block
    done = one(said, f"run flashmon{level} -- {CHIP}")
    rows = done.of("flash")
    assert done.ended == "exit 0"
    found = [int(row[3]) for row in rows]
    # The program reads 65,535 bytes at a time, so it comes twice to where it stopped.
    assert list(dict.fromkeys(found)) == list(range(pages))
    assert found == sorted(found)
    assert {row[1] for row in rows} == {"read"}
    assert [int(row[2]) for row in rows] == [page // 64 for page in found]
    before, after = (part for part in said if part.line == COUNTS)
    reads = [int(part.shown[0].removeprefix("reads ")) for part in (before, after)]
    assert len(rows) == reads[1] - reads[0] or level == " --points mtd"
    assert {row[7] for row in rows} == {"init"}
    times = [int(row[0]) for row in rows]
    assert times == sorted(times)
    assert 0 <= times[0] < times[-1]
    assert done.of("lost") == [["0"]]
    assert done.of("ecc") == [["0", "0", "0"]]


def test_events_that_were_lost_are_said(said: list[Said]) -> None:
    whole = len(one(said, f"run flashmon -- {CHIP}").of("flash"))
    done = one(said, f"run flashmon --buffer-kib 4 -- {CHIP}")
    ((lost,),) = done.of("lost")
    assert int(lost) > 0
    assert len(done.of("flash")) + int(lost) == whole
    assert (
        f"flashbed-agent: {lost} events were lost; --buffer-kib makes room for more" in done.shown
    )
    assert done.ended == "exit 1"


def test_vfsmon_names_the_file(said: list[Said]) -> None:
    done = one(said, "run vfsmon -- /init check /modules")
    reads = [row for row in done.of("vfs") if row[2] == "read" and row[9] == "modules"]
    _start, duration, kind, inode, offset, length, result, _pid, task, name = reads[0]
    assert int(result) > 0
    assert int(offset) == 0
    assert int(length) >= int(result)
    assert int(duration) > 0
    assert int(inode) > 0
    assert [int(row[4]) for row in reads[1:2]] == [int(result)]
    assert (kind, task, name) == ("read", "init", "modules")
    # The tracer's own reads are none of the command's.
    assert not [row for row in done.of("vfs") if row[9] == "trace_pipe_raw"]
    assert done.of("end") == [["2"]]


def test_functions_are_found_by_pattern_and_the_missing_named(said: list[Said]) -> None:
    done = one(said, "run funcmon vfs_open* no_such_function -- /init check /modules")
    opened = [row for row in done.of("func") if row[2] == "vfs_open"]
    assert len(opened) >= 2  # the program, the file
    assert {row[3] for row in opened} == {"0"}
    assert all(int(row[1]) > 0 for row in opened)
    assert ["not_probed", "no_such_function"] in done.of("info")


def test_a_command_that_is_none_is_its_own_status(said: list[Said]) -> None:
    done = one(said, "run funcmon vfs_open -- /no/such/program")
    assert done.of("end") == [["127"]]
    assert done.ended == "exit 0"


def test_without_a_command_there_is_no_status(said: list[Said]) -> None:
    assert one(said, "run flashmon --seconds 0.1").of("end") == [["-"]]
    assert one(said, "signalled 4000 flashmon").of("end") == [["-"]]


def test_a_wrong_command_line_is_refused(said: list[Said]) -> None:
    done = one(said, "run vfsmon --func")
    assert done.ended == "exit 2"
    assert done.shown[0].startswith("usage: ")


def test_the_global_buffer_is_put_back(said: list[Said]) -> None:
    """What the first one leaves in the buffer must not keep the second one out."""
    for name in ("trace_clock", "options/overwrite", "tracing_on"):
        before, after = (part for part in said if part.line == f"show {TRACEFS}/{name}")
        assert before.shown == after.shown
    before, after = (part for part in said if part.line == f"show {TRACEFS}/buffer_size_kb")
    expanded = before.shown[0].rpartition("expanded: ")[2].rstrip(")")
    assert after.shown == (expanded,)
    rows = [one(said, f"run flashmon{mode} -- {CHIP}").of("flash") for mode in ("", " --global")]
    assert [row[1:6] for row in rows[0]] == [row[1:6] for row in rows[1]]
    instance = one(said, "run vfsmon -- /init check /modules").of("vfs")
    there = one(said, "run vfsmon --global -- /init check /modules").of("vfs")
    kinds = [[row[2], *row[4:7], row[9]] for row in instance if row[9] == "modules"]
    assert kinds == [[row[2], *row[4:7], row[9]] for row in there if row[9] == "modules"]


def test_nothing_is_left_behind(said: list[Said]) -> None:
    for after in (f"show {TRACEFS}/buffer_size_kb", "signalled 4000 flashmon"):
        at = max(i for i, part in enumerate(said) if part.line == after)
        assert not said[at + 1].shown, after
        assert not said[at + 2].shown, after


def test_what_a_killed_tracer_left_is_removed_by_the_next(said: list[Said]) -> None:
    probes, instances = left(said, "killed 4000 trace --flash --vfs --func vfs_open")
    assert len(probes.shown) > 10
    assert len(instances.shown) == 1
    # The next tracer, killed as well: the first one's are gone, its own are there.
    probes, instances = left(said, "killed 4000 vfsmon --global")
    assert {row.split("/")[0].split(":")[1] for row in probes.shown} != set()
    assert len({row.split("/")[0].split(":")[1] for row in probes.shown}) == 1
    assert not instances.shown
    probes, instances = left(said, "run flashmon --seconds 0.1")
    assert not probes.shown
    assert not instances.shown
