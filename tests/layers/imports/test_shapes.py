"""Files as strace, fio and blktrace write them with any options, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from flashbed.imports.strace_trace import import_strace
from flashbed.recording.file import Recording, open_recording
from flashbed.recording.translate import translate

CORPUS = Path(__file__).parents[2] / "corpus" / "imports"


def _strace(name: str, folder: Path) -> Recording:
    import_strace(CORPUS / name, folder / "x.rec")
    return open_recording(folder / "x.rec")


def _body(recording: Recording, think: bool = False) -> list[str]:
    return translate(recording, None, 0, think=think)[1].splitlines()[1:]


def _of_task(body: list[str], task: int) -> list[str]:
    """The lines of a task, without the pauses and the numbers that depend on the others."""
    current, lines = 0, []
    for line in body:
        words = line.split()
        if words[0] == "task":
            current = int(words[1])
        elif current == task and words[0] not in ("spawn", "pause"):
            seed_and_fill = 2 if words[0] == "write" else 0
            lines.append(" ".join(words[: len(words) - seed_and_fill]))
    return lines


PARENT = [
    "mkdir d%C3%A4%20x", "open 0 a.db rw,create,trunc", "write 0 0 14", "write 0 14 6000",
    "write 0 6014 4098", "read 0 0 100", "truncate 0 5000", "fdatasync 0", "write 0 8192 4096",
    "fsync 0", "write 0 12288 4096", "fsync 0", "write 0 16384 4096", "fsync 0",
    "mmap 0 0 0 4096 rw", "touch 0 0 4096", "rename a.db b.db", "stat b.db", "unlink nosuch",
    "rmdir d%C3%A4%20x", "close 0", "munmap 0",
]  # fmt: skip
CHILD = ["open 1 child wo,create", "write 1 0 6", "close 1", "write 0 100 7"]
THREAD = ["open 1 thr rw,create", "write 1 0 12", "fsync 1", "write 1 12 12", "fsync 1",
          "write 1 24 12", "fsync 1", "close 1"]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "lacks"),
    [
        ("no-times", ("times: calls follow", "the working folder's name")),
        ("clock", ("how long 31 of 40 calls", "the working folder's name")),
        ("relative", ("how long 37 of 40 calls",)),
        ("two-clocks", ("how long 39 of 40 calls",)),
        ("hexadecimal", ()),
        ("between-output", ("times: calls follow", "lines that strace did not print: 1")),
        ("summary-behind", ("how long 29 of 40 calls",)),
        ("pointers", ("times: calls follow",)),
        ("raw-numbers", ("times: calls follow",)),
        ("mmap2", ("times: calls follow",)),
        ("ff", ("how long 40 of 40 calls",)),
    ],
)
def test_whatever_the_options_the_program_is_the_same(
    tmp_path: Path, name: str, lacks: tuple[str, ...]
) -> None:
    """Of these eleven, and of 24 traces in public repositories, the import took none."""
    recording = _strace(f"{name}.strace", tmp_path)
    body = _body(recording)
    assert [_of_task(body, task) for task in range(3)] == [PARENT, CHILD, THREAD]
    for beginning in lacks:
        assert any(text.startswith(beginning) for text in recording.about.lacks), beginning
    assert recording.about.command[0].startswith("../prog")
    assert recording.about.think == ("none" if "times: calls follow" in lacks else "gaps")


def test_a_duration_that_strace_did_not_print_is_null(tmp_path: Path) -> None:
    took = {call.duration_ns for call in _strace("ff.strace", tmp_path).calls()}
    assert took == {None, 0}  # 0: the end of a task
    resumed = [call for call in _strace("clock.strace", tmp_path).calls() if call.name == "fsync"]
    assert any(call.duration_ns for call in resumed)  # from `unfinished` to `resumed`


def test_times_of_r_and_tt_are_those_of_one_clock(tmp_path: Path) -> None:
    spans = []
    for name in ("relative", "clock", "two-clocks"):
        calls = list(_strace(f"{name}.strace", tmp_path).calls())
        spans.append(calls[-1].start_ns - calls[0].start_ns)
    assert all(20_000_000 < span < 100_000_000 for span in spans)


def test_a_clock_that_passes_midnight_goes_on(tmp_path: Path) -> None:
    trace = tmp_path / "x.strace"
    trace.write_text('23:59:59.5 mkdir("a", 0755) = 0\n00:00:01.0 mkdir("b", 0755) = 0\n')
    import_strace(trace, tmp_path / "x.rec")
    calls = list(open_recording(tmp_path / "x.rec").calls())
    assert [call.start_ns for call in calls] == [0, 1_500_000_000]


def test_a_program_that_strace_attached_to_keeps_the_files_it_had_open(tmp_path: Path) -> None:
    recording = _strace("attached.strace", tmp_path)
    assert _body(recording) == [
        "open 0 descriptor-7 rw", "read 0 8192 4096", "open 1 descriptor-8 rw",
        "write 1 0 512 1 0", "fdatasync 1", "write 0 8192 4096 2 0", "fdatasync 0",
    ]  # fmt: skip
    lacks = recording.about.lacks
    assert any(text.startswith("names of 2 files that were open before") for text in lacks)
    assert any(text.startswith("2 calls on descriptors that were open before") for text in lacks)


def test_strace_of_2009_on_a_32_bit_machine_is_read(tmp_path: Path) -> None:
    assert _body(_strace("old.strace", tmp_path)) == [
        "stat job", "open 0 log wo,create,append", "write 0 0 7 1 0", "spawn 1", "task 1",
        "write 0 7 6 2 0", "task 0", "fsync 0", "utimens log",
    ]  # fmt: skip


def test_an_unfinished_clone_keeps_its_comma(tmp_path: Path) -> None:
    """The rest was joined without it: `SIGCHLDchild_tidptr=0x7f` is not a known number."""
    recording = _strace("stacks.strace", tmp_path)
    assert not any("cannot be read" in text for text in recording.about.lacks)
    assert [(call.task, call.name, call.result) for call in recording.calls()] == [
        (0, "execve", 0), (0, "openat", 3), (0, "write", 3), (0, "clone", 1), (1, "write", 6),
        (1, "exit_group", 0), (1, "exit", 0), (0, "fdatasync", 0),
    ]  # fmt: skip
    assert any(text.startswith("files outside /data/app") for text in recording.about.lacks)


@pytest.mark.parametrize(
    ("begun", "rest"),
    [
        ('pwrite64(3, "ab", 2,', " 0) = 2"),
        ('pwrite64(3, "ab", 2', ", 0) = 2"),
        ("pwrite64(3, ", '"ab", 2, 0) = 2'),
        ("pwrite64(3", ', "ab", 2, 0) = 2'),
        ("pwrite64(", ' 3, "ab", 2, 0) = 2'),
    ],
)
def test_a_call_may_be_cut_before_or_behind_any_comma(
    tmp_path: Path, begun: str, rest: str
) -> None:
    trace = tmp_path / "x.strace"
    trace.write_text(
        '1 openat(AT_FDCWD, "a", O_RDWR|O_CREAT, 0600) = 3\n'
        f"1 {begun} <unfinished ...>\n2 getpid() = 2\n1 <... pwrite64 resumed>{rest}\n"
    )
    import_strace(trace, tmp_path / "x.rec")
    assert _body(open_recording(tmp_path / "x.rec")) == ["open 0 a rw,create", "write 0 0 2 1 0"]
