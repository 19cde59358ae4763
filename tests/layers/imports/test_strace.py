"""A trace of strace, made by a real strace, becomes the recording of the same program."""

from __future__ import annotations

from pathlib import Path

import pytest

from flashbed.base.errors import InputError
from flashbed.program.imports.constants import number_of
from flashbed.program.imports.lines import ImportedError
from flashbed.program.imports.strace_line import arguments_of, strip_place, text_of
from flashbed.program.imports.strace_trace import import_strace
from flashbed.program.recording.calls import Piece
from flashbed.program.recording.file import Recording, open_recording
from flashbed.program.recording.translate import translate

CORPUS = Path(__file__).parents[2] / "corpus" / "imports"


def _imported(folder: Path, text: str, below: str | None = "/w") -> Recording:
    trace = folder / "x.strace"
    trace.write_text(text, encoding="utf-8")
    import_strace(trace, folder / "x.rec", below)
    return open_recording(folder / "x.rec")


def _body(recording: Recording) -> list[str]:
    return translate(recording, None, 0, think=False)[1].splitlines()[1:]


def test_a_shell_script_with_children_keeps_its_files_tasks_and_order(tmp_path: Path) -> None:
    about = import_strace(CORPUS / "shell.strace", tmp_path / "x.rec")
    recording = open_recording(tmp_path / "x.rec")
    assert about.command == ("sh", "job.sh")
    assert [call.path() for call in recording.existed()] == [b"job.sh"]
    body = _body(recording)
    for lines in (
        ["open 1 conf.new wo,create,trunc", "write 1 0 8 1 0", "close 1"],
        ["open 1 conf.new ro", "fsync 1", "close 1"],
        ["open 1 log wo,create,append", "write 1 32 16 4 0", "close 1"],
        ["copy 2 0 1 0 48", "close 2", "open 2 copy ro", "close 2", "task 3"],
        ["open 1 d ro,directory,nofollow", "readdir 1", "unlink d/copy", "close 1", "rmdir d"],
    ):
        at = body.index(lines[0]) if lines[0] in body else -1
        places = [n for n in range(len(body)) if body[n : n + len(lines)] == lines]
        assert at >= 0
        assert places, lines


def test_calls_are_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    recording = _imported(
        tmp_path,
        "7 100.000000 openat(AT_FDCWD</w>, \"a\", O_RDWR|O_CREAT, 0644) = 3</w/a> <0.000010>\n"
        "7 100.000100 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 8 <0.000010>\n"
        "7 100.000200 fsync(3</w/a> <unfinished ...>\n"
        "8 100.000300 mkdir(\"d\", 0777) = 0 <0.000010>\n"
        "7 100.000400 <... fsync resumed>) = 0 <0.000200>\n"
        "8 100.000500 write(3</w/a>, \"xy\", 2) = 2 <0.000010>\n"
        "8 100.000600 +++ exited with 0 +++\n"
        "7 100.000700 exit_group(0) = ?\n",
    )  # fmt: skip
    names = [(call.task, call.name) for call in recording.calls()]
    assert names == [
        (0, "openat"), (0, "clone"), (0, "fsync"), (1, "mkdir"), (1, "write"), (1, "exit"),
        (0, "exit_group"),
    ]  # fmt: skip
    fsync = list(recording.calls())[2]
    assert (fsync.start_ns, fsync.duration_ns) == (200_000, 200_000)


def test_a_process_number_that_is_used_again_is_another_task(tmp_path: Path) -> None:
    child = (
        "7 100.{0}00000 vfork( <unfinished ...>\n"
        '8 100.{0}01000 mkdir("d{0}", 0777) = 0 <0.000010>\n'
        "8 100.{0}02000 +++ exited with 0 +++\n"
        "7 100.{0}03000 <... vfork resumed>) = 8 <0.003000>\n"
        "7 100.{0}04000 wait4(-1, NULL, 0, NULL) = 8 <0.000010>\n"
    )
    recording = _imported(
        tmp_path,
        '7 100.000000 openat(AT_FDCWD</w>, "a", O_RDWR|O_CREAT, 0644) = 3</w/a> <0.000010>\n'
        + child.format(1)
        + child.format(2),
    )
    rows = [(call.task, call.name, call.result) for call in recording.calls()]
    assert [row for row in rows if row[1] in ("vfork", "mkdir", "wait4")] == [
        (0, "vfork", 1), (1, "mkdir", 0), (0, "wait4", 1),
        (0, "vfork", 2), (2, "mkdir", 0), (0, "wait4", 2),
    ]  # fmt: skip


def test_a_clock_that_was_set_back_stands_still(tmp_path: Path) -> None:
    recording = _imported(
        tmp_path,
        '7 100.500000 openat(AT_FDCWD</w>, "a", O_RDWR|O_CREAT, 0644) = 3</w/a> <0.000010>\n'
        "7 100.000100 fsync(3</w/a>) = 0 <0.000200>\n"
        "7 100.600000 close(3</w/a>) = 0 <0.000010>\n",
    )
    assert [call.start_ns for call in recording.calls()] == [0, 0, 100_000_000]
    assert any("the times of 1 lines" in lack for lack in recording.about.lacks)


def test_texts_that_are_whole_give_sizes_and_those_cut_short_none(tmp_path: Path) -> None:
    recording = _imported(
        tmp_path,
        '7 1.000000 openat(AT_FDCWD</w>, "a", O_WRONLY|O_CREAT, 0644) = 3</w/a> <0.000010>\n'
        '7 1.000100 write(3</w/a>, "\\0\\0\\0\\0\\x41\\n", 6) = 6 <0.000010>\n'
        '7 1.000200 write(3</w/a>, "abc"..., 600) = 600 <0.000010>\n'
        '7 1.000300 writev(3</w/a>, [{iov_base="ab", iov_len=2}, {iov_base="c,d", iov_len=3}], 2)'
        " = 5 <0.000010>\n",
    )
    writes = [call for call in recording.calls() if call.name.startswith("write")]
    assert [isinstance(call.written, tuple) for call in writes] == [True, False, True]
    assert isinstance(writes[0].written, tuple)
    assert isinstance(writes[0].written[0], Piece)
    assert [call.number("length") for call in writes] == [6, 600, 5]
    assert any("1 of 3 writes" in text for text in recording.about.lacks)


def test_forms_of_32_bit_machines_are_those_of_64(tmp_path: Path) -> None:
    recording = _imported(
        tmp_path,
        "[ Process PID=7 runs in 32 bit mode. ]\n"
        '7 1.000000 open("a", O_RDWR|O_CREAT|O_LARGEFILE, 0644) = 3</w/a> <0.000010>\n'
        "7 1.000100 _llseek(3</w/a>, 4294967296, [4294967296], SEEK_SET) = 0 <0.000010>\n"
        '7 1.000200 write(3</w/a>, "x"..., 50) = 50 <0.000010>\n'
        "7 1.000300 fstat64(3</w/a>, {st_mode=S_IFREG|0644, st_size=50, ...}) = 0 <0.000010>\n"
        "7 1.000400 arm_fadvise64_64(3</w/a>, POSIX_FADV_DONTNEED, 0, 100) = 0 <0.000010>\n"
        "7 1.000500 ftruncate64(3</w/a>, 7) = 0 <0.000010>\n"
        "7 1.000600 fcntl64(3</w/a>, F_SETLK, {l_type=F_RDLCK, l_len=1}) = 0 <0.000010>\n"
        "7 1.000700 unlink(\"/w/a\") = 0 <0.000010>\n",
    )  # fmt: skip
    assert _body(recording) == [
        "open 0 a rw,create", "write 0 4294967296 50 1 0", "fadvise 0 0 100 dontneed",
        "truncate 0 7", "unlink a",
    ]  # fmt: skip


def test_yy_and_deleted_files_are_read_too(tmp_path: Path) -> None:
    recording = _imported(
        tmp_path,
        '7 1.000000 openat(AT_FDCWD</w>, "/dev/null", O_RDWR) = 3</dev/null<char 1:3>> <0.00001>\n'
        '7 1.000100 openat(AT_FDCWD</w>, "t", O_RDWR|O_CREAT|O_EXCL, 0600) = 4</w/t> <0.00001>\n'
        '7 1.000200 unlinkat(AT_FDCWD</w>, "t", 0) = 0 <0.000010>\n'
        '7 1.000300 write(4</w/t>(deleted), "a"..., 9) = 9 <0.000010>\n'
        "7 1.000400 sendto(5<TCP:[127.0.0.1:1->127.0.0.1:2]>, \"x\", 1, 0, NULL, 0) = 1 <0.0001>\n"
        "7 1.000500 close(4</w/t>(deleted)) = 0 <0.000010>\n",
    )  # fmt: skip
    assert _body(recording) == [
        "open 0 t rw,create,excl", "unlink t", "write 0 0 9 1 0", "close 0",
    ]  # fmt: skip


def test_a_file_that_was_open_before_is_opened_where_it_is_first_used(tmp_path: Path) -> None:
    recording = _imported(tmp_path, '7 1.000000 write(1</w/out>, "a"..., 9) = 9 <0.000010>\n')
    assert _body(recording) == ["open 0 out rw", "write 0 0 9 1 0"]
    assert [call.path() for call in recording.existed()] == [b"out"]


def test_what_was_there_is_found_by_what_was_read_and_looked_at(tmp_path: Path) -> None:
    recording = _imported(
        tmp_path,
        '7 1.000000 stat("d/s", {st_mode=S_IFREG|0644, st_size=777, ...}) = 0 <0.000010>\n'
        '7 1.000100 openat(AT_FDCWD</w>, "db", O_RDWR|O_CREAT, 0644) = 3</w/db> <0.000010>\n'
        '7 1.000200 pread64(3</w/db>, "x"..., 4096, 8192) = 4096 <0.000010>\n'
        '7 1.000300 readlink("l", "d/s", 4095) = 3 <0.000010>\n'
        '7 1.000400 openat(AT_FDCWD</w>, "new", O_RDWR|O_CREAT, 0644) = 4</w/new> <0.000010>\n'
        '7 1.000500 access("none", F_OK) = -1 ENOENT (No such file or directory) <0.000010>\n',
    )
    there = {call.path(): call.number("length") for call in recording.existed()}
    assert there == {b"d": 0, b"d/s": 777, b"db": 12_288, b"l": 0}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('7 1.000000 rmdir("a"...) = 0 <0.1>', "a path that is cut short"),
        ('7 1.000000 openat(AT_FDCWD</w>, "a", O_WRONLY|NOT_A_FLAG) = 3 <0.1>', "NOT_A_FLAG"),
        ('7 1.000000 mkdir("a", 0755) = -1 EWHAT (x) <0.1>', "EWHAT"),
        ('7 1.000000 unlinkat(9, "a", 0) = 0 <0.1>', "whose opening is not in the trace"),
        ('7 1.000000 mkdir("a\\0b", 0755) = 0 <0.1>', "a name with a NUL byte"),
        ("7 1.000000 write(1</w/a>, \"\"..., 3000000000) = 3000000000 <0.1>", "2,147,479,552"),
        ("7 1.000000 ftruncate(1</w/a>, 99999999999999999999) = 0 <0.1>", "more than 64 bits"),
        ("7 1.000000 ftruncate(1</w/a>, 18446744073709551615) = 0 <0.1>", "length is below 0"),
        (
            "7 1.000000 writev(1</w/a>, [{\"a\", 9223372036854775807},"
            " {\"b\", 9223372036854775807}], 2) = 9 <0.1>", "length is below 0",
        ),
        (f'7 1.000000 mkdir("{"a/" * 300}b", 0755) = 0 <0.1>', "301 folders deep"),
        (f'7 1.000000 mkdir("{"a" * 4096}", 0755) = 0 <0.1>', "a name of 4,099 bytes"),
        ('7 1.000000 execve("a") = 99999999999999999999999 <0.1>', "not a known number"),
    ],
)  # fmt: skip
def test_a_call_that_cannot_be_meant_is_named_and_left_out(
    tmp_path: Path, line: str, why: str
) -> None:
    """One such call stopped the import of 100,000 others, or ended it in an internal error."""
    first = '7 0.500000 mkdir("z", 0777) = 0 <0.000010>\n'
    recording = _imported(tmp_path, first + line + "\n" + first.replace("0.5", "2.5"))
    assert [call.name for call in recording.calls() if call.path() == b"z"] == ["mkdir"] * 2
    (sentence,) = (text for text in recording.about.lacks if "cannot be read" in text)
    assert sentence.startswith("calls that cannot be read: 1, the first in line 2: ")
    assert why in sentence
    with pytest.raises(ImportedError, match=rf"x\.strace:1: .*{why}"):
        _imported(tmp_path, line + "\n")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["x.rec", "x.strace"]


def test_a_pid_of_5000_digits_and_a_long_duration_are_no_line_of_strace(tmp_path: Path) -> None:
    first = '7 0.500000 mkdir("z", 0777) = 0 <0.000010>\n'
    odd = f'{"9" * 5000} 1.000000 mkdir("y", 0777) = 0\n7 1.0 rmdir("z") = 0 <{"9" * 40}.1>\n'
    recording = _imported(tmp_path, first + odd)
    calls = [(call.name, call.duration_ns) for call in recording.calls()]
    assert calls == [("mkdir", 10_000), ("rmdir", None)]


def test_a_trace_without_a_folder_or_a_call_in_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportedError, match="no call in the working folder; run strace with -y"):
        _imported(tmp_path, "7 1.000000 close(3) = 0 <0.000010>\n", None)
    with pytest.raises(ImportedError, match=r"its files are in /etc \(1\): name a folder"):
        _imported(tmp_path, '7 1.0 open("/etc/fstab", O_RDONLY) = 3 <0.000010>\n', None)
    with pytest.raises(ImportedError, match="no call in the folder"):
        _imported(tmp_path, "7 1.000000 close(3) = 0 <0.000010>\n")
    with pytest.raises(InputError, match="must be an absolute path"):
        _imported(tmp_path, "", "w")


def test_arguments_are_cut_at_their_own_commas() -> None:
    text = rb'3</w/a,b>, "x,\"y", {a=1, b=[2, 3]}, 5 /* a, b */, AT_FDCWD</w>'
    parts = arguments_of(text)
    assert len(parts) == 5
    assert strip_place(parts[0]) == (b"3", b"/w/a,b")
    assert text_of(parts[1]) == (b'x,"y', True)
    assert text_of(b'"\\1\\12\\377\\x41"...') == (b"\x01\n\xffA", False)
    assert number_of(b"O_RDWR|O_CREAT|O_CLOEXEC") == 0o2000102
    assert number_of(b"0644") == 0o644


def test_a_time_centuries_later_and_an_offset_below_0_are_no_internal_error(tmp_path: Path) -> None:
    recording = _imported(
        tmp_path,
        '7 1.0 openat(AT_FDCWD</w>, "a", O_RDWR|O_CREAT, 0644) = 3</w/a> <0.000010>\n'
        '7 1.1 pwrite64(3</w/a>, "xy", 2, -8) = 2 <0.000010>\n'
        "7 999999999999.5 fsync(3</w/a>) = 0 <0.000200>\n"
        '7 1.5 write(3</w/a>, "xy", 2) = 2 <0.000010>\n',
    )
    calls = [(call.name, call.start_ns) for call in recording.calls()]
    assert calls == [("openat", 0), ("fsync", 100_000_000), ("write", 500_000_000)]
    assert any("or years later" in text for text in recording.about.lacks)
