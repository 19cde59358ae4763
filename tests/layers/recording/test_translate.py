"""A recording of a known program becomes the operations that are known of it."""

from __future__ import annotations

import base64
import errno
import stat
from pathlib import Path

import pytest

from flashbed._sim import compressed_size
from flashbed.program.content import generated_pieces
from flashbed.program.operations import HEADER_2, parse
from flashbed.program.recording.about import About, Think
from flashbed.program.recording.calls import EXISTED, Call, Piece
from flashbed.program.recording.file import RecordingError, RecordingWriter, open_recording
from flashbed.program.recording.fill import Compressor
from flashbed.program.recording.recording_tools import merged
from flashbed.program.recording.translate import translate

CREAT, EXCL, TRUNC, APPEND, CLOEXEC = 0o100, 0o200, 0o1000, 0o2000, 0o2000000
RW, WO = 2, 1
SECOND_NS = 10**9


class Program:
    """Calls one after the other, a microsecond each, with optional gaps before them."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.now_ns = 0

    def __call__(
        self, name: str, /, result: int = 0, task: int = 0, *, gap_ns: int = 0,
        cpu_ns: int | None = None, takes_ns: int = 1000, written: object = None,
        **arguments: object,
    ) -> None:  # fmt: skip
        self.now_ns += gap_ns
        given = {key: value for key, value in arguments.items() if value is not None}
        call = Call(
            task=task, start_ns=self.now_ns, duration_ns=takes_ns, cpu_ns=cpu_ns, name=name,
            arguments=given, result=result, written=written,  # type: ignore[arg-type]
        )  # fmt: skip
        self.calls.append(call)
        self.now_ns += 1000

    def existed(self, path: bytes, length: int = 0, mode: int = stat.S_IFREG) -> None:
        self("existed", path=path, length=length, mode=mode)

    def lines(
        self, folder: Path, compressor: Compressor | None = None, think: Think = "cpu",
        step_ps: int | None = 1000,
    ) -> tuple[list[str], list[str], dict[str, int]]:  # fmt: skip
        """Preparation, body, and what was left out."""
        about = About(source="test", think=think, step_ps=step_ps)
        path = folder / "program.rec"
        with RecordingWriter(path, about) as writer:
            for call in self.calls:
                writer.add(call)
        prepare, body, made = translate(open_recording(path), compressor, 7)
        assert prepare.splitlines()[0] == body.splitlines()[0] == HEADER_2
        parse(prepare)
        parse(body)
        return prepare.splitlines()[1:], body.splitlines()[1:], made.left_out


def _body(program: Program, folder: Path, **more: object) -> list[str]:
    return program.lines(folder, **more)[1]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("flags", "words"),
    [(0o4010000, "sync"), (0o10000, "dsync"), (0o4010000 | CREAT | APPEND, "create,append,sync")],
)
def test_a_file_that_syncs_each_write_is_opened_as_one(
    flags: int, words: str, tmp_path: Path
) -> None:
    """O_SYNC holds O_DSYNC; 109 pages were replayed as 11 when both were dropped."""
    do = Program()
    do("openat", 3, path=b"a", flags=RW | flags)
    assert _body(do, tmp_path) == [f"open 0 a rw,{words}"]


def test_a_write_that_asks_for_it_is_synced_or_appended(tmp_path: Path) -> None:
    do = Program()
    do("openat", 3, path=b"a", flags=RW | CREAT)
    for flags in (2, 4, 16, 0):  # RWF_DSYNC, RWF_SYNC, RWF_APPEND
        do("pwritev2", 9, descriptor=3, offset=0, length=9, flags=flags)
    assert _body(do, tmp_path)[1:] == [
        "write 0 0 9 1 0", "fdatasync 0", "write 0 0 9 2 0", "fsync 0", "write 0 9 9 3 0",
        "write 0 0 9 4 0",
    ]  # fmt: skip


def test_a_hint_beyond_the_largest_offset_ends_with_the_file(tmp_path: Path) -> None:
    """`readahead` near 2^63 made operations that no target ran."""
    do = Program()
    do("openat", 3, path=b"a", flags=RW | CREAT)
    do("readahead", descriptor=3, offset=2**63 - 1, length=1)
    do("fadvise64", descriptor=3, offset=4096, length=2**63 - 1, command=4)
    assert _body(do, tmp_path)[1:] == [
        "fadvise 0 9223372036854775807 0 willneed", "fadvise 0 4096 0 dontneed",
    ]  # fmt: skip


def _elapsed_s(folder: Path) -> float:
    """How long the replay of program.rec takes if no call takes any time."""
    _, body, _ = translate(open_recording(folder / "program.rec"), None, 7)
    own, current, now = {0: 0}, 0, 0
    for line in body.splitlines()[1:]:
        word, *fields = line.split()
        if word == "task":
            current = int(fields[0])
        elif word == "spawn":
            own[int(fields[0])] = own[current]
        elif word == "wait":
            own[current] = max(own[current], own[int(fields[0])])
        elif word == "pause":
            own[current] += int(fields[0])
        else:
            own[current] = now = max(now, own[current])
    return max(own.values()) / SECOND_NS


def test_positions_follow_the_descriptor_and_appends_the_file(tmp_path: Path) -> None:
    do = Program()
    do.existed(b"log", 100)
    do("openat", 3, path=b"log", flags=WO | APPEND)
    do("openat", 4, path=b"log", flags=RW)
    do("write", 10, descriptor=3, length=10)
    do("read", 4, descriptor=4, length=4)
    do("lseek", 50, descriptor=4, offset=50, command=0)
    do("write", 5, descriptor=4, length=9)
    do("pwrite64", 7, descriptor=4, offset=400, length=7)
    do("read", 0, descriptor=4, length=4096)
    do("write", 1, descriptor=3, length=1)
    do("ftruncate", descriptor=4, length=5)
    do("write", 1, descriptor=3, length=1)
    do("close", descriptor=3)
    do("close", descriptor=4)
    prepare, body, _ = do.lines(tmp_path)
    assert prepare == [
        "open 0 log wo,create", "write 0 0 100 1 0", "close 0",
        "sync", "remount", "sync", "pause 7", "prepared",
    ]  # fmt: skip
    assert body == [
        "open 0 log wo,append", "open 1 log rw", "write 0 100 10 1 0", "read 1 0 4",
        "write 1 50 5 2 0", "write 1 400 7 3 0", "read 1 55 4096", "write 0 407 1 4 0",
        "truncate 1 5", "write 0 5 1 5 0", "close 0", "close 1",
    ]  # fmt: skip


def test_a_shared_descriptor_has_one_position_and_is_closed_by_the_last(tmp_path: Path) -> None:
    do = Program()
    do("openat", 3, path=b"a", flags=RW | CREAT)
    do("dup", 4, descriptor=3)
    do("dup2", 9, descriptor=3, to_descriptor=9)
    do("fcntl", 10, descriptor=3, command=1030)
    do("clone", 1)
    do("close", descriptor=3)
    do("write", 5, descriptor=4, length=5)
    do("write", 5, task=1, descriptor=3, length=5)
    do("exit_group", task=1)
    do("close", descriptor=4)
    do("execve", path=b"/bin/x")
    do("write", 1, descriptor=9, length=1)
    do("exit_group")
    assert _body(do, tmp_path) == [
        "open 0 a rw,create", "spawn 1", "write 0 0 5 1 0", "task 1", "write 0 5 5 2 0",
        "open 1 a ro", "close 1", "task 0", "write 0 10 1 3 0", "close 0",
    ]  # fmt: skip


def test_a_process_that_ends_closes_the_file_that_it_wrote_and_inherited(tmp_path: Path) -> None:
    """YAFFS2 flushes a file at each close: 40 programs were replayed as 22."""
    do = Program()
    do("openat", 3, path=b"a", flags=RW | CREAT)
    do("clone", 1)
    do("write", 5, task=1, descriptor=3, length=5)
    do("exit_group", task=1)
    do("clone", 2)
    do("exit_group", task=2)
    do("fsync", descriptor=3)
    assert _body(do, tmp_path) == [
        "open 0 a rw,create", "spawn 1", "task 1", "write 0 0 5 1 0", "open 1 a ro", "close 1",
        "task 0", "spawn 2", "fsync 0",
    ]  # fmt: skip


def test_threads_share_descriptors_and_a_fork_has_its_own(tmp_path: Path) -> None:
    do = Program()
    do("clone3", 1, flags=0x10F00)
    do("openat", 3, task=1, path=b"a", flags=RW | CREAT)
    do("fork", 2)
    do("close", descriptor=3)
    do("write", 1, task=2, descriptor=3, length=1)
    do("exit_group")
    do("close", task=2, descriptor=3)
    assert _body(do, tmp_path) == [
        "spawn 1", "task 1", "open 0 a rw,create", "task 0", "spawn 2",
        "task 2", "write 0 0 1 1 0", "close 0",
    ]  # fmt: skip


def test_what_is_outside_the_folder_is_left_out(tmp_path: Path) -> None:
    do = Program()
    do("openat", 3, path=b"/", flags=0)
    do("read", 10, descriptor=3, length=10)
    do("openat", 4, path=b"in", flags=WO | CREAT | TRUNC)
    do("sendfile", 10, descriptor=3, to_descriptor=4, length=10)
    do("sendfile", 4, descriptor=4, offset=0, to_descriptor=3, length=4)
    do("close", descriptor=3)
    do("rename", path=b"in", to_path=b"/out")
    _, body, left_out = do.lines(tmp_path)
    assert body == ["open 0 in wo,create,trunc", "write 0 0 10 1 0", "send 0 0 4", "stat in"]
    assert list(left_out) == [
        "rename between the folder and another: another file system on the flash"
    ]


def test_failing_calls_are_kept_where_they_cost_something(tmp_path: Path) -> None:
    do = Program()
    do("openat", -2, path=b"none", flags=0)
    do("unlink", -2, path=b"none")
    do("unlink", -13, path=b"somebodys")
    do("mkdir", -17, path=b"there")
    do("access", -2, path=b"none")
    do("read", -9, descriptor=77, length=1)
    do("fsync", -9, descriptor=77)
    assert _body(do, tmp_path) == [
        "stat none", "unlink none", "stat somebodys", "mkdir there", "stat none",
    ]  # fmt: skip


def test_an_open_file_is_renamed_and_keeps_its_descriptor(tmp_path: Path) -> None:
    do = Program()
    do.existed(b"d", 4096, stat.S_IFDIR)
    do("openat", 3, path=b"d/new", flags=RW | CREAT | EXCL)
    do("renameat", path=b"d", to_path=b"e")
    do("rename", path=b"e/new", to_path=b"e/x y")
    do("fchmod", descriptor=3, mode=0o600)
    do("openat", 4, path=b"e/x y", flags=WO | APPEND)
    do("write", 3, descriptor=3, length=3)
    do("write", 3, descriptor=4, length=3)
    assert _body(do, tmp_path) == [
        "open 0 d/new rw,create,excl", "rename d e", "rename e/new e/x%20y", "chmod e/x%20y 384",
        "open 1 e/x%20y wo,append", "write 0 0 3 1 0", "write 1 3 3 2 0",
    ]  # fmt: skip


def test_work_is_scaled_by_steps_and_waiting_is_a_pause(tmp_path: Path) -> None:
    do = Program()
    do("mkdir", path=b"a", cpu_ns=0)
    do("mkdir", path=b"b", gap_ns=5_000_000, cpu_ns=2_000_000)
    do("mkdir", path=b"c", gap_ns=9_000, cpu_ns=6_000)
    do("mkdir", path=b"d", gap_ns=900_000, cpu_ns=6_000)
    line = ["mkdir a", "compute 1000000", "pause 3000000", "mkdir b", "mkdir c", "compute 6000"]
    assert _body(do, tmp_path, step_ps=2000) == [*line, "mkdir d"]
    other = tmp_path / "unscaled"
    other.mkdir()
    assert _body(do, other, step_ps=None) == [
        "mkdir a", "pause 5000000", "mkdir b", "mkdir c", "mkdir d",
    ]  # fmt: skip
    none = tmp_path / "none"
    none.mkdir()
    assert _body(do, none, think="none") == ["mkdir a", "mkdir b", "mkdir c", "mkdir d"]


def test_a_lock_that_was_waited_for_stands_where_it_was_had(tmp_path: Path) -> None:
    do = Program()
    do("openat", 3, path=b"l", flags=RW | CREAT)
    do("clone", 1)
    do("openat", 4, task=1, path=b"l", flags=RW)
    do("flock", descriptor=3, command=2)
    do("flock", task=1, descriptor=4, command=2, takes_ns=2_500)
    do("write", 1, descriptor=3, length=1)
    do("flock", descriptor=3, command=8)
    do("write", 1, task=1, descriptor=4, length=1)
    assert _body(do, tmp_path) == [
        "open 0 l rw,create", "spawn 1", "task 1", "open 1 l rw", "task 0", "flock 0 exclusive",
        "write 0 0 1 1 0", "flock 0 unlock", "task 1", "flock 1 exclusive", "write 1 0 1 2 0",
    ]  # fmt: skip


def test_mapped_pages_are_touched_and_stored(tmp_path: Path) -> None:
    do = Program()
    do.existed(b"m", 8192)
    do("openat", 3, path=b"m", flags=RW)
    at = 0x7F0000000000
    do("mmap", at, descriptor=3, length=8192, mode=3, flags=1, offset=0)
    do("close", descriptor=3)
    do("mapped_read", address=at, length=4096)
    do("mapped_write", address=at + 4096, length=4096)
    do("msync", address=at, length=8192, flags=4)
    do("munmap", address=at, length=8192)
    assert _body(do, tmp_path) == [
        "open 0 m rw", "mmap 0 0 0 8192 rw", "close 0", "touch 0 0 4096", "store 0 4096 4096 1 0",
        "msync 0 0 8192 sync", "munmap 0",
    ]  # fmt: skip


def test_of_the_page_in_which_a_mapping_ends_what_is_mapped_is_stored(tmp_path: Path) -> None:
    """QDBM's database was replayed as incompressible: 27 page writes for 11."""
    do = Program()
    do.existed(b"m", 5000)
    do("openat", 3, path=b"m", flags=RW)
    at = 0x7F0000000000
    do("mmap", at, descriptor=3, length=5000, mode=3, flags=1, offset=0)
    do("mapped_write", address=at + 4096, length=4096, written=b"xyz" * 1365 + b"x")
    pieces = (Piece(*[300] * 6), Piece(*[2000] * 6))
    do("mapped_write", address=at, length=8192, written=pieces)
    _, _, data, stored, generated = _body(do, tmp_path, compressor="zlib")
    assert data == f"data {base64.b64encode(b'xyz' * 301 + b'x').decode()}"
    assert stored == "store 0 4096 904 0 data"
    assert generated.startswith("store 0 0 5000 1 ")
    assert generated.count("+") == len(pieces)


def test_an_attribute_that_was_looked_for_in_vain_is_looked_for(tmp_path: Path) -> None:
    """`ls -l` looked for security.selinux in UBIFS's index, which its replay did not read."""
    do = Program()
    do.existed(b"a", 0, stat.S_IFREG | 0o644)
    do("existed", path=b"l", length=1, mode=stat.S_IFLNK | 0o777, target=b"a")
    do("lgetxattr", -errno.ENODATA, path=b"a", name=b"security.selinux", length=255)
    do("lgetxattr", -errno.ENODATA, path=b"a", name=b"user.x", length=255)
    do("lgetxattr", -errno.ENODATA, path=b"l", name=b"security.selinux", length=255)
    do("getxattr", -errno.EOPNOTSUPP, path=b"a", name=b"system.posix_acl_access", length=255)
    assert _body(do, tmp_path) == [
        "getxattr a user.security.selinux", "getxattr a user.x", "stat l", "stat a",
    ]  # fmt: skip


def test_what_was_there_compresses_as_it_did_where_that_is_known(tmp_path: Path) -> None:
    do = Program()
    held = (Piece(*[99] * 6), Piece(*[900] * 6))
    do("existed", path=b"a", length=5000, mode=stat.S_IFREG, written=held)
    do("openat", 3, path=b"a", flags=RW)
    prepare, _, _ = do.lines(tmp_path, compressor="lzo")
    fill = next(line.split()[-1] for line in prepare if line.startswith("write 0 0 5000"))
    data = generated_pieces(0, 5000, 1, fill).tobytes()
    assert compressed_size("lzo", data[:4096]) in range(97, 101)
    assert compressed_size("lzo", data[4096:]) in range(897, 901)


def test_contents_are_written_as_they_were(tmp_path: Path) -> None:
    do = Program()
    do("openat", 3, path=b"a", flags=WO | CREAT)
    do("write", 4000, descriptor=3, length=4000, written=b"x" * 4000)
    body = _body(do, tmp_path)
    assert [line.split()[0] for line in body] == ["open", "data", "data", "write"]
    assert body[1] == "data " + "eHh4" * 1000
    assert body[-1] == "write 0 0 4000 0 data"


def test_a_folder_that_the_file_system_has_by_itself_is_not_made(tmp_path: Path) -> None:
    do = Program()
    do.existed(b".", 0, stat.S_IFDIR | 0o755)
    do.existed(b"lost+found", 0, stat.S_IFDIR | 0o700)
    do("stat", path=b"lost+found")
    prepare, _, _ = do.lines(tmp_path)
    assert prepare[:2] == ["chmod . 493", "mkdir lost%2Bfound"]
    recording = open_recording(tmp_path / "program.rec")
    made = translate(recording, None, 7, own=b"lost+found")[0].splitlines()
    assert made[1:] == ["chmod . 493", "sync", "remount", "sync", "pause 7", "prepared"]


def test_a_long_write_is_cut_where_a_line_ends(tmp_path: Path) -> None:
    do = Program()
    do("openat", 3, path=b"a", flags=WO | CREAT)
    pieces = tuple(Piece(*[100 + number % 3000] * 6) for number in range(1000))
    do("write", 1000 * 4096, descriptor=3, length=1000 * 4096, written=pieces)
    body = _body(do, tmp_path, compressor="lzo")
    writes = [line.split() for line in body[1:]]
    assert all(len(line) <= 4096 for line in body)
    assert sum(int(write[3]) for write in writes) == 1000 * 4096
    assert [int(write[2]) % 4096 for write in writes] == [0] * len(writes)


def test_a_row_that_cannot_be_translated_is_named(tmp_path: Path) -> None:
    do = Program()
    for number in range(1025):
        do("openat", 3 + number, path=b"a", flags=RW | CREAT)
    with pytest.raises(RecordingError, match=r"call 1025: more than 1,024 open files at once"):
        do.lines(tmp_path)


def test_more_tasks_than_operations_have_take_the_place_of_those_that_ended(
    tmp_path: Path,
) -> None:
    do = Program()
    for task in range(1, 1500):
        do("fork", task)
        do("mkdir", task=task, path=b"d%d" % task)
        do("exit_group", task=task)
    body = _body(do, tmp_path)
    assert len([line for line in body if line.startswith("mkdir")]) == 1499
    first = body.index("wait 1")
    assert body[first : first + 4] == ["wait 1", "spawn 1", "task 1", "mkdir d1024"]


def test_a_task_begins_where_it_was_forked_after_what_its_parent_waited(tmp_path: Path) -> None:
    do = Program()
    do("mkdir", path=b"a")
    do("fork", 1, gap_ns=10 * SECOND_NS)
    do("mkdir", task=1, gap_ns=5 * SECOND_NS, path=b"b")
    assert _body(do, tmp_path, think="gaps") == [
        "mkdir a", "pause 10000000000", "spawn 1", "task 1", "pause 5000001000", "mkdir b",
    ]  # fmt: skip


def test_a_parent_and_the_child_that_it_waits_for_pause_side_by_side(tmp_path: Path) -> None:
    do = Program()
    do("fork", 1)
    do("mkdir", task=1, gap_ns=10 * SECOND_NS, path=b"a")
    do("exit_group", task=1)
    do("wait4", 1)
    do("mkdir", path=b"b")
    body = _body(do, tmp_path, think="gaps")
    assert body[:4] == ["spawn 1", "task 1", "pause 10000001000", "mkdir a"]
    assert _elapsed_s(tmp_path) == pytest.approx(10)


def test_what_an_import_saw_a_parent_wait_in_wait4_is_a_pause_of_it(tmp_path: Path) -> None:
    do = Program()
    do("fork", 1)
    do("wait4", 1, takes_ns=10 * SECOND_NS)
    do("exit_group", task=1, gap_ns=10 * SECOND_NS - 5000)
    do("mkdir", path=b"a", gap_ns=5000)
    assert _body(do, tmp_path, think="gaps") == ["spawn 1", "pause 10000002000", "mkdir a"]


def test_tasks_whose_beginning_was_not_seen_begin_with_the_recording(tmp_path: Path) -> None:
    do = Program()
    do("mkdir", path=b"a")
    do("mkdir", path=b"b", gap_ns=600 * SECOND_NS)
    do("mkdir", task=7, path=b"c", gap_ns=5 * SECOND_NS)
    body = _body(do, tmp_path, think="gaps")
    assert body[:2] == ["spawn 1", "mkdir a"]
    assert body[-3:] == ["task 1", "pause 605000002000", "mkdir c"]


def test_what_the_last_task_waited_before_it_ended_is_not_lost(tmp_path: Path) -> None:
    do = Program()
    do("mkdir", path=b"a")
    do("exit_group", gap_ns=600 * SECOND_NS)
    assert _body(do, tmp_path, think="gaps") == ["mkdir a", "pause 600000001000"]


def test_time_awake_is_no_pause_and_sleeps_add_up(tmp_path: Path) -> None:
    do = Program()
    do("mkdir", path=b"a", cpu_ns=0)
    do("mkdir", path=b"b", gap_ns=2_000_000, cpu_ns=2_000_000)
    for _ in range(3):
        do("lseek", 1, descriptor=3, offset=1, command=0, gap_ns=600_000, cpu_ns=200_000)
    do("mkdir", path=b"c", cpu_ns=0)
    assert _body(do, tmp_path, think="slept", step_ps=None) == [
        "mkdir a", "mkdir b", "pause 1200000", "mkdir c",
    ]  # fmt: skip


def test_programs_merged_together_take_as_long_as_the_longest(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.rec" for name in "abc"]
    for number, path in enumerate(paths):
        do = Program()
        for line in range(10):
            do("mkdir", path=b"%d-%d" % (number, line), gap_ns=60 * SECOND_NS)
        do.lines(tmp_path, think="gaps")
        (tmp_path / "program.rec").rename(path)
    merged(paths, tmp_path / "program.rec", together=True)
    assert _elapsed_s(tmp_path) == pytest.approx(600)


def test_an_existing_link_and_folder_are_made_again(tmp_path: Path) -> None:
    do = Program()
    do.existed(b"z/f", 70_000)
    do.existed(b"z", 0, stat.S_IFDIR)
    do("existed", path=b"l", length=3, mode=stat.S_IFLNK, target=b"z/f")
    do("openat", 3, path=b"l", flags=WO | APPEND)
    do("write", 1, descriptor=3, length=1)
    prepare, body, _ = do.lines(tmp_path)
    assert prepare[:6] == [
        "symlink z/f l", "mkdir z", "open 0 z/f wo,create", "write 0 0 65536 3 0",
        "write 0 65536 4464 3 0", "close 0",
    ]  # fmt: skip
    assert body == ["open 0 l wo,append", "write 0 70000 1 1 0"]
    assert EXISTED not in body


def test_a_recording_that_would_take_minutes_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten million syncs took five minutes to translate, and their replay did not end."""
    monkeypatch.setattr("flashbed.program.recording.translate._ROWS_MAX", 9)
    program = Program()
    for _ in range(10):
        program("sync")
    with pytest.raises(RecordingError, match=r"10 calls and files; 9 .* `flashbed ops cut` makes"):
        program.lines(tmp_path)
