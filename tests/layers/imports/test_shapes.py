"""Files as strace, fio and blktrace write them with any options, and what is refused."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from flashbed.program.imports.blktrace import import_blktrace
from flashbed.program.imports.fio_iolog import import_fio_iolog
from flashbed.program.imports.fio_job import import_fio_job
from flashbed.program.imports.lines import ImportedError
from flashbed.program.imports.strace_trace import import_strace
from flashbed.program.recording.file import Recording, open_recording
from flashbed.program.recording.translate import translate

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
    "write 0 6014 4098", "read 0 0 100", "truncate 0 5000", "open 1 a.db ro", "close 1",
    "fdatasync 0", "write 0 8192 4096",
    "fsync 0", "write 0 12288 4096", "fsync 0", "write 0 16384 4096", "fsync 0",
    "mmap 0 0 0 4096 rw", "touch 0 0 4096", "rename a.db b.db", "stat b.db", "unlink nosuch",
    "rmdir d%C3%A4%20x", "close 0", "munmap 0",
]  # fmt: skip
CHILD = ["open 1 child wo,create", "write 1 0 6", "close 1", "write 0 100 7", "open 1 a.db ro",
         "close 1"]  # fmt: skip
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
        "write 0 7 6 2 0", "open 1 log ro", "close 1", "task 0", "fsync 0", "utimens log",
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


def test_a_call_that_is_resumed_and_interrupted_again_began_when_it_began(tmp_path: Path) -> None:
    """Its second beginning was another than the first: an internal error."""
    trace = tmp_path / "x.strace"
    trace.write_text(
        '1 100.0 openat(AT_FDCWD, "a", O_RDWR|O_CREAT, 0600) = 3\n'
        "1 100.1 pwrite64(3,  <unfinished ...>\n2 100.2 getpid() = 2\n"
        '1 100.3 <... pwrite64 resumed>"ab", 2,  <unfinished ...>\n2 100.4 getpid() = 2\n'
        "1 100.5 <... pwrite64 resumed>0) = 2\n"
    )
    import_strace(trace, tmp_path / "x.rec")
    calls = list(open_recording(tmp_path / "x.rec").calls())
    assert [(call.name, call.start_ns, call.duration_ns) for call in calls] == [
        ("openat", 0, None), ("pwrite64", 100_000_000, 400_000_000),
    ]  # fmt: skip


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


def _blktrace(name: str, folder: Path) -> Recording:
    import_blktrace(CORPUS / name, folder / "x.rec")
    return open_recording(folder / "x.rec")


def test_requests_of_several_processors_are_sorted_by_time(tmp_path: Path) -> None:
    recording = _blktrace("out-of-order.blkparse", tmp_path)
    assert _body(recording) == [
        "open 0 device rw", "write 0 0 4096 1 0", "read 0 0 4096", "write 0 4096 4096 2 0",
        "fdatasync 0", "write 0 8192 4096 3 0",
    ]  # fmt: skip
    assert [call.start_ns for call in recording.calls()][1:4] == [0, 2_000_000, 3_000_000]


def test_a_trace_of_completions_says_so_and_leaves_out_what_no_request_touches(
    tmp_path: Path,
) -> None:
    recording = _blktrace("completed.blkparse", tmp_path)
    assert _body(recording, think=True) == [
        "open 0 device rw", "write 0 1048576 8192 1 0", "pause 2000000", "read 0 0 4096",
        "pause 5000000", "write 0 1056768 4096 2 0",
    ]  # fmt: skip
    assert any("completed (C)" in text for text in recording.about.lacks)


def test_of_remapped_requests_the_upper_device_counts(tmp_path: Path) -> None:
    recording = _blktrace("remapped.blkparse", tmp_path)
    assert _body(recording) == ["open 0 device rw", "write 0 0 4096 1 0"]
    assert "requests of other devices than 253,0: 8,0 (1)" in recording.about.lacks


def test_lines_of_blkparse_are_found_in_a_page(tmp_path: Path) -> None:
    recording = _blktrace("page.md", tmp_path)
    assert _body(recording) == ["open 0 device rw", "write 0 0 4096 1 0"]
    assert "lines that are no request of blkparse: 8" in recording.about.lacks


@pytest.mark.parametrize("name", ["disk", "disk.blktrace.1", "all-processors.blktrace"])
def test_binary_files_of_blktrace_are_their_processors_together(tmp_path: Path, name: str) -> None:
    recording = _blktrace(name, tmp_path)
    assert _body(recording) == [
        "open 0 device rw", "write 0 0 4096 1 0", "read 0 1048576 8192", "fdatasync 0",
        "write 0 4096 4096 2 0", "fdatasync 0", "write 0 2097152 512 3 0", "fdatasync 0",
        "fallocate 0 0 4096 punch",
    ]  # fmt: skip


def test_binary_files_of_the_other_byte_order_are_read(tmp_path: Path) -> None:
    little = struct.Struct("<IIQQIIIIIHH")
    event = (0x65617407, 1, 10**6, 64, 4096, 1 | 1 << 17, 5, 8 << 20, 0, 0, 0)
    (tmp_path / "x").write_bytes(struct.pack(">IIQQIIIIIHH", *event) + b"")
    import_blktrace(tmp_path / "x", tmp_path / "x.rec")
    assert _body(open_recording(tmp_path / "x.rec")) == ["open 0 device rw", "write 0 0 4096 1 0"]
    (tmp_path / "x").write_bytes(little.pack(0x65617406, *event[1:]))
    with pytest.raises(ImportedError, match="a binary blktrace of version 6; 7 is read"):
        import_blktrace(tmp_path / "x", tmp_path / "x.rec")
    (tmp_path / "x").write_bytes(little.pack(*event) + little.pack(*event)[:30])
    with pytest.raises(ImportedError, match="cut in the event at byte 48"):
        import_blktrace(tmp_path / "x", tmp_path / "x.rec")
    (tmp_path / "x").write_bytes(little.pack(*event) + bytes(48))
    with pytest.raises(ImportedError, match="no event of blktrace at byte 48"):
        import_blktrace(tmp_path / "x", tmp_path / "x.rec")


FOREIGN = {
    "ltrace": "__libc_start_main(0x1, 1) = 0\nmalloc(24) = 0x5581\nprintf(\"x\") = 1\n",
    "perf script": "dd 4711 [000] 12.5: block:block_rq_issue: 8,0 W 4096\n" * 3,
    "perf trace": "     0.000 ( 0.005 ms): ls/4711 openat(dfd: CWD) = 3\n" * 3,
    "ftrace": "# tracer: nop\n#\n",
    "truss": "open(\"/etc/motd\",O_RDONLY,00) = 3 (0x3)\n",
    "strace -c": "% time     seconds  usecs/call     calls    errors syscall\n",
    "latencies": "0, 12034, 0, 4096\n1, 9034, 0, 4096\n",
    "results of fio": "job: (g=0): rw=read, bs=(R) 4096B-4096B\nfio-3.33\n",
    "SPC": "0,20941264,8192,W,0.551706\n0,20939840,8192,W,0.554041\n",
    "MSR": "128166372003061629,hm,0,Read,383496192,32768,413\n" * 2,
    "HTML": "<!DOCTYPE html><html>\n",
    "JSON": "{\n  \"fio version\" : \"fio-3.33\"\n}\n",
    "command line of fio": "fio --name=a --rw=write --size=1m\n",
    "ktrace": "  101 ls CALL open(0x1,0,0)\n  101 ls NAMI \"/etc\"\n",
    "gzip": "\x1f\x8b\x08\x00",
    "program": "\x7fELF\x02",
    "empty": "",
}  # fmt: skip
IMPORTS = {
    "strace": import_strace, "blktrace": import_blktrace, "fio-job": import_fio_job,
    "fio-iolog": import_fio_iolog,
}  # fmt: skip


@pytest.mark.parametrize("kind", IMPORTS)
@pytest.mark.parametrize("what", FOREIGN)
def test_what_is_none_of_these_is_refused_by_what_it_looks_like(
    tmp_path: Path, what: str, kind: str
) -> None:
    (tmp_path / "x").write_bytes(FOREIGN[what].encode("latin-1"))
    with pytest.raises(ImportedError) as error:
        IMPORTS[kind](tmp_path / "x", tmp_path / "x.rec")
    assert what in str(error.value)
    assert "\n" not in str(error.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("kind", IMPORTS)
@pytest.mark.parametrize(
    ("name", "taken_by"),
    [("clock.strace", "strace"), ("blocks.fio", "fio-job"), ("write.iolog", "fio-iolog"),
     ("queue.blkparse", "blktrace"), ("all-processors.blktrace", "blktrace")],
)  # fmt: skip
def test_a_file_of_another_import_is_refused_with_its_name(
    tmp_path: Path, name: str, taken_by: str, kind: str
) -> None:
    if kind == taken_by:
        IMPORTS[kind](CORPUS / name, tmp_path / "x.rec")
        return
    with pytest.raises(ImportedError, match=f"; flashbed import {taken_by} takes it"):
        IMPORTS[kind](CORPUS / name, tmp_path / "x.rec")
