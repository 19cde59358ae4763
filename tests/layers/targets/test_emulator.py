"""The emulated board's host side, with a program in place of QEMU that sends scripted output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Batch, Cut, Program
from flashbed.targets.emulator.emulator_target import EmulatorTarget, NandsimTarget
from flashbed.targets.guest import initramfs
from flashbed.targets.guest.job import groups_of, items_of, text_of
from flashbed.targets.guest.stream import CaseBegun, CaseDone, JobDone, Reader, StreamError, Trouble
from flashbed.targets.unavailable import Unavailable
from tests.support import PROJECT

PREPARE = "flashbed-ops 1\nopen 0 a wo,create\nwrite 0 0 10 1 0\nclose 0\nprepared\n"
READ = "flashbed-ops 1\n# comment\nopen 0 a ro\nmark\nread 0 0 10\npause 5\n"
WRITE = "flashbed-ops 1\nopen 0 a wo\nmark\nwrite 0 0 10 1 0\n"
CASE = "case {0}\nr 0 4 100 50 10 - - -\nr 1 5 200 5 0 - - -\nc 3 0 0 0\nend {0}\n"
HEAD = "flashbed-stream 1\ninfo kernel 6.1.0-test\n"


def program(case_id: str, body: str = READ, fs: str = "jffs2", prepare: str = PREPARE) -> Program:
    return Program(
        case_id=case_id,
        stack=Stack(
            board=load_board("emulated"), kernel=load_kernel("6.1"), fs=fs, read_ahead_kib=0
        ),
        prepare=prepare,
        body=body,
    )


Boards = Callable[..., EmulatorTarget]


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Boards:
    """Makes a target whose QEMU is a script that is run in the boot's folder."""
    root = tmp_path / "root"
    source = PROJECT
    (root / "build" / "agent").mkdir(parents=True)
    (root / "build" / "agent" / "flashbed-agent-armv7").write_bytes(b"agent")
    (root / "boards").symlink_to(source / "boards")
    monkeypatch.setenv("FLASHBED_ROOT", str(root))
    cache = tmp_path / "cache"
    (cache / "k" / "boot").mkdir(parents=True)
    (cache / "k" / "boot" / "vmlinuz-6.1").write_bytes(b"")
    modules = cache / "k" / "lib" / "modules" / "6.1"
    modules.mkdir(parents=True)
    built_in = "".join(f"kernel/{name}.ko\n" for name in initramfs.MODULES)
    (modules / "modules.builtin").write_text(built_in)
    (modules / "nandsim.ko").write_bytes(b"")
    (cache / "kernel.json").write_text('{"package": "k", "version": "1", "folder": "k"}')

    def make(script: str, patience_s: float = 20) -> EmulatorTarget:
        qemu = tmp_path / "qemu"
        qemu.write_text(f"#!{sys.executable}\nimport os, re, sys, time\n{script}")
        qemu.chmod(0o755)
        return NandsimTarget(cache, tmp_path / "work", patience_s=patience_s, qemu=str(qemu))

    return make


ANSWER = f"""
cases = re.findall("^case ([^ ]+)", open("job").read(), re.M)
out = open("stream", "w")
out.write({HEAD!r})
out.flush()
CASE = {CASE!r}
"""


def outcome(target: EmulatorTarget, programs: list[Program]) -> tuple[list[str], dict[str, str]]:
    """The cases measured and what was said of those that failed."""
    batches: list[Batch] = list(target.run(programs))
    measured = [name for batch in batches for name in batch.cases["case_id"]]
    failures = [failure for batch in batches for failure in batch.failures]
    assert all("\n" not in failure.message for failure in failures)
    return measured, {failure.case_id: failure.message for failure in failures}


def test_a_finished_case_is_a_batch_with_what_the_host_knows(board: Boards) -> None:
    group = 'out.write("group g0 1000000 600000 7 300\\n");'
    case = 'out.write(CASE.format(*cases).replace("c 3", "e 2 1 5\\nc 3") + "done\\n")'
    target = board(ANSWER + group + case)
    (batch,) = target.run([program("one")])
    assert batch.cases.to_dicts() == [
        {
            "case_id": "one",
            "read_ahead_kib": None,
            "state_valid": 0.4,
            "state_invalid": pytest.approx(293 * 2048 / 1_000_000 - 0.4),
            "time_ns": 50,
            "flash_time_ns": None,
            "elapsed_ns": 205,
            "bytes": 10,
            "bytes_written": 0,
            "failed": 0,
            "failed_errno": None,
            "flash_reads": 3,
            "flash_programs": 0,
            "flash_erases": 0,
            "flush_reads": None,
            "flush_programs": None,
            "flush_erases": None,
            "cache_hits": None,
            "cache_misses": None,
            "cache_adds": None,
            "erase_count_max": None,
            "erase_count_mean": None,
            "bad_blocks": 5,
            "ecc_corrected": 2,
            "ecc_failed": 1,
            "kernel_release": "6.1.0-test",
        }
    ]
    assert batch.requests.select("op", "file", "offset_bytes", "length_bytes", "result").rows() == [
        ("read", "a", 0, 10, 10),
        ("pause", None, None, None, 0),
    ]
    assert batch.flash.height == 0


def test_the_window_that_was_read_back_is_the_cases(board: Boards) -> None:
    """A case was measured with whatever window its files had, under the requested window's name."""
    windows = ("a 0", "a 128", "a 128", "a -", "error case:c4 0 not-measured nothing looks at it")
    said = f"""
for name, window in zip(cases, {windows!r}):
    text = CASE.format(name).replace("\\nr ", "\\n" + window + "\\nr ", 1)
    out.write(text if window[0] == "a" else window + "\\n")
out.write("done\\n")
"""
    programs = [program("right"), program("wrong"), program("default"), program("unknown")]
    programs += [program("refused")]
    shipped = [
        replace(item, stack=replace(item.stack, read_ahead_kib=None)) for item in programs[2:4]
    ]
    programs[2:4] = shipped
    batches = list(board(ANSWER + said).run(programs))
    measured = [row for batch in batches for row in batch.cases.to_dicts()]
    assert {row["case_id"]: row["read_ahead_kib"] for row in measured} == {
        "right": 0, "default": 128,
    }  # fmt: skip
    failures = [failure for batch in batches for failure in batch.failures]
    assert all(failure.not_measured for failure in failures)
    assert {failure.case_id: failure.message for failure in failures} == {
        "wrong": "read_ahead_kib: 0 was set, the kernel has 128",
        "unknown": "read_ahead_kib: the kernel does not report the window it gives jffs2",
        "refused": "read_ahead_kib: nothing looks at it",
    }


def test_a_finished_case_is_yielded_before_the_next_one_runs(board: Boards) -> None:
    target = board(ANSWER + "out.write(CASE.format(*cases)); out.flush(); time.sleep(60)")
    running = target.run([program("a"), program("b")])
    assert next(iter(running)).cases["case_id"].to_list() == ["a"]
    assert isinstance(running, Generator)
    running.close()


def test_a_board_that_dies_costs_the_case_it_was_running(board: Boards) -> None:
    died_in_b = """
for name in cases:
    if name == "c1":
        out.write("case c1\\nr 0 4 1 1 1 - - -\\n"); out.flush()
        open("console.log", "w").write("x\\n[ 1.0] Kernel panic - not syncing: why\\n")
        os._exit(1)
    out.write(CASE.format(name))
out.write("done\\n")
"""
    measured, failures = outcome(board(ANSWER + died_in_b), [program(name) for name in "abcd"])
    assert measured == ["a", "c", "d"]
    assert list(failures) == ["b"]
    assert "Kernel panic - not syncing: why; console: " in failures["b"]


def test_a_board_that_hangs_is_killed_and_the_rest_goes_on(board: Boards) -> None:
    hang = """
for name in cases:
    if name == "c0":
        out.write("case c0\\n"); out.flush()
        open("pid", "w").write(str(os.getpid()))
        time.sleep(600)
    out.write(CASE.format(name))
out.write("done\\n")
"""
    target = board(ANSWER + hang, patience_s=0.5)
    measured, failures = outcome(target, [program("a"), program("b")])
    assert measured == ["b"]
    assert "the board hung: no progress in 0.5 s" in failures["a"]
    pid = int(next(target.work.glob("*/boot-0/pid")).read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_board_that_never_starts_fails_every_case_once(board: Boards) -> None:
    target = board('print("qemu: no such machine"); sys.exit(1)')
    measured, failures = outcome(target, [program("a"), program("b")])
    assert measured == []
    assert set(failures) == {"a", "b"}
    assert "QEMU ended with status 1: qemu: no such machine" in failures["a"]


def test_a_board_that_dies_in_a_preparation_fails_that_group_only(board: Boards) -> None:
    script = """
if "jffs2" in open("job").read():
    os._exit(1)
out.write(CASE.format(*cases) + "done\\n")
"""
    programs = [program("a"), program("b"), program("c", fs="ubifs")]
    measured, failures = outcome(board(ANSWER + script), programs)
    assert measured == ["c"]
    assert set(failures) == {"a", "b"}


def test_a_full_file_system_fails_its_group_with_one_line_each(board: Boards) -> None:
    script = """
out.write("error group:g0 3 ENOSPC write: No space left on device\\ndone\\n")
"""
    measured, failures = outcome(board(ANSWER + script), [program("a")])
    assert measured == []
    assert failures["a"] == (
        "preparation: line 3 of its operations: ENOSPC: write: No space left on device"
        " (the board's file system is full)"
    )


def test_lost_events_fail_the_case(board: Boards) -> None:
    script = 'out.write(CASE.format(*cases).replace("c 3 0 0 0", "c 3 0 0 2") + "done\\n")'
    measured, failures = outcome(board(ANSWER + script), [program("a")])
    assert measured == []
    assert failures == {"a": "2 flash operations were lost by the kernel's trace buffer"}


def test_a_board_unlike_its_profile_fails_and_names_the_key(board: Boards) -> None:
    script = 'out.write("info partition_bytes 4096\\n" + CASE.format(*cases) + "done\\n")'
    measured, failures = outcome(board(ANSWER + script), [program("a")])
    assert measured == []
    assert "boards/emulated.toml: partition.blocks: the profile makes" in failures["a"]


def test_a_chip_that_nandsim_cannot_be_is_refused(board: Boards) -> None:
    target = board(ANSWER + 'out.write(CASE.format(*cases) + "done\\n")')
    other = replace(
        program("a"), stack=replace(program("a").stack, board=load_board("emulated-4k"))
    )
    measured, failures = outcome(target, [other])
    assert measured == []
    assert failures["a"] == "boards/emulated-4k.toml: [emulator] has no nandsim"


def test_what_cannot_run_is_refused_and_the_rest_runs(board: Boards) -> None:
    target = board(ANSWER + 'out.write(CASE.format(*cases) + "done\\n")')
    programs = [program("a", fs="yaffs2"), program("b", body="flashbed-ops 1\nsyn\n"), program("c")]
    measured, failures = outcome(target, programs)
    assert measured == ["c"]
    assert failures["a"].startswith("fs yaffs2: no package linux-headers-k ")
    assert "unknown-operation" in failures["b"]


def test_without_qemu_the_target_says_how_to_get_it(tmp_path: Path) -> None:
    target = EmulatorTarget(tmp_path, tmp_path, qemu="qemu-system-nothing")
    with pytest.raises(Unavailable, match="apt-get install qemu-system-arm"):
        next(iter(target.run([program("a")])))


def test_cases_that_write_end_their_group() -> None:
    programs = [program("a"), program("b", WRITE), program("c"), program("d", fs="ubifs")]
    programs.append(program("e"))
    items = items_of(programs, {p.case_id: n for n, p in enumerate(programs)})
    groups = groups_of(items)
    assert [[item.program.case_id for item in group.items] for group in groups] == [
        ["a", "b"],
        ["c", "e"],
        ["d"],
    ]
    text = text_of(groups, trace_flash=True, our_chip=True)
    assert text.startswith("flashbed-job 1\nsetup renew\ngroup g0 jffs2\nops 5\nflashbed-ops 1\n")
    assert "\ncase c0 0 flash\nops 5\nflashbed-ops 1\nopen 0 a ro\n" in text
    assert text.endswith("\ndone\n")


def test_the_clock_is_set_only_where_power_is_to_fail() -> None:
    """Counting changes and cutting must begin in the same state (agent/job/phases.c)."""
    one = program("a")
    for asked in (replace(one, record_changes=True), replace(one, cuts=(Cut(1, 1),))):
        text = text_of(groups_of(items_of([asked], {"a": 0})), trace_flash=False, our_chip=True)
        assert "\ngroup g0 jffs2 cut\n" in text


def test_a_stream_cut_anywhere_gives_the_same_events() -> None:
    flash = "f 0 -5 read 1 64 0 256 init -\n"
    text = (HEAD + CASE.format("c0").replace("c 3", flash + "c 3")).encode()
    text += b"error job 0 EIO gone wrong\ndone\n"
    whole = list(Reader().feed(text))
    assert [type(event) for event in whole[1:]] == [CaseBegun, CaseDone, Trouble, JobDone]
    assert isinstance(whole[2], CaseDone)
    assert whole[2].flash == [(0, -5, "read", 1, 64, 0, 256, "init", None)]
    for cut in range(len(text)):
        reader = Reader()
        assert [*reader.feed(text[:cut]), *reader.feed(text[cut:])] == whole


@pytest.mark.parametrize(
    "rest", ["nonsense\n", "r 0 1 2 3 4 - - -\n", "case a\nr 0 x 1 1 1 - - -\n"]
)
def test_what_is_no_stream_is_refused(rest: str) -> None:
    with pytest.raises(StreamError):
        list(Reader().feed((HEAD + rest).encode()))
    with pytest.raises(StreamError):
        list(Reader().feed(b"flashbed-stream 2\n"))


def test_modules_come_after_what_they_need(tmp_path: Path) -> None:
    (tmp_path / "modules.builtin").write_text("kernel/lib/in-kernel.ko\n")
    for name, needs in (("a", "b-c,in-kernel"), ("b-c", "d"), ("d", "")):
        (tmp_path / f"{name}.ko").write_bytes(b"\0depends=" + needs.encode() + b"\0name=x\0")
    order = initramfs.load_order(tmp_path, ["a"])
    assert [path.stem for path in order] == ["d", "b-c", "a"]


def test_the_same_files_give_the_same_archive(tmp_path: Path) -> None:
    module = tmp_path / "m.ko"
    module.write_bytes(b"12345")
    first = initramfs.archive(b"agent", [module], {"m": "x=1"})
    os.utime(module, (1, 1))
    assert initramfs.archive(b"agent", [module], {"m": "x=1"}) == first
    assert b"/modules.d/m.ko x=1\n" in first


WORDS = st.sampled_from(
    [
        "r",
        "f",
        "c",
        "cut",
        "m",
        "s",
        "p",
        "u",
        "endcut",
        "end",
        "info",
        "group",
        "case",
        "error",
        "done",
        "read",
        "a",
        "job",
        "case:a",
        "0",
        "1",
        "-28",
        "4096",
        "x",
        "",
    ]
)


@given(st.lists(st.lists(WORDS, max_size=9), max_size=12), st.integers(1, 7))
def test_whatever_a_board_says_is_read_or_refused(rows: list[list[str]], step: int) -> None:
    """No stream makes the reader fall over, however it is cut into pieces."""
    text = "\n".join(["flashbed-stream 1", *(" ".join(row) for row in rows), ""]).encode()
    reader = Reader()
    try:
        events = [
            event for at in range(0, len(text), step) for event in reader.feed(text[at : at + step])
        ]
    except StreamError:
        return
    assert all(event.counts is not None for event in events if isinstance(event, CaseDone))


@given(st.binary(max_size=200))
def test_bytes_that_are_no_stream_are_refused_or_wait_for_more(data: bytes) -> None:
    reader = Reader()
    try:
        assert list(reader.feed(data)) == [] or data.startswith(b"flashbed-stream 1\n")
    except StreamError:
        assert b"\n" in data


def test_programs_are_read_so_many_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from flashbed.targets.guest import guest as run

    monkeypatch.setattr(run, "_PIECE_CHARACTERS", 10)
    board, kernel = load_board("emulated"), load_kernel("6.1")
    bodies = ["a" * 4, "b" * 6, "c", "d" * 30, "e" * 10]
    programs = [
        Program(
            case_id=body[0],
            stack=Stack(board=board, kernel=kernel, fs="jffs2", read_ahead_kib=0),
            prepare="",
            body=body,
        )
        for body in bodies
    ]
    pieces = ["".join(program.case_id for program in piece) for piece in run._pieces(programs)]
    assert pieces == ["ab", "c", "d", "e"]
