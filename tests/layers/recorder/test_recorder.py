"""Programs of every kind recorded: tasks, descriptors, mapped files, signals, kills, memory."""

from __future__ import annotations

import os
import pty
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl
import pytest

from flashbed._sim import PieceSizer
from flashbed.program.recording.calls import Call
from flashbed.program.recording.file import open_recording
from flashbed.program.recording.translate import translate
from tests.support.recorded import calls_of, compiled, needs, recorded
from tests.support.replayed import replay
from tests.support.sizer import Sizer

FLASHBED = str(Path(sys.executable).parent / "flashbed")
WAIT_S = 60.0
MUSL = ("-static", "-target", "x86_64-linux-musl", "-mcpu=baseline")
"""As the agent, whose C library zig has compiled."""

THREADS = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static int shared;
static void *work(void *who)
{
    char bytes[100];
    memset(bytes, 'a' + (int)(long)who, sizeof bytes);
    for (int i = 0; i < 50; i++)
        if (write(shared, bytes, sizeof bytes) != sizeof bytes) abort();
    int own = open(who ? "own1" : "own0", O_CREAT | O_RDWR, 0600);
    if (write(own, bytes, 7) != 7 || lseek(own, 3, SEEK_SET) != 3) abort();
    if (read(own, bytes, 100) != 4 || write(own, "end", 3) != 3) abort();
    return (void *)(long)own;
}
int main(void)
{
    pthread_t thread[2];
    void *own;
    shared = open("shared", O_CREAT | O_RDWR, 0600);
    for (long i = 0; i < 2; i++) pthread_create(&thread[i], 0, work, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], &own);
    /* A descriptor that a thread opened is open in all of them. */
    if (pwrite((int)(long)own, "main", 4, 20) != 4) abort();
    int other = dup(shared);
    if (write(other, "dup", 3) != 3 || write(shared, "ped", 3) != 3) abort();
    if (fork() == 0) { if (write(shared, "child", 5) != 5) abort(); _exit(3); }
    wait(0);
    return write(shared, "parent", 6) == 6 ? 0 : 1;
}
"""

MAPPED = r"""
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
    int file = open("mapped", O_CREAT | O_RDWR, 0600);
    if (ftruncate(file, 8 * 4096)) return 1;
    char *at = mmap(0, 8 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    at[4096] = 'x';
    at[4097] = 'y';
    if (msync(at, 8 * 4096, MS_SYNC)) return 2;
    at[3 * 4096 + 1] = 'z';
    if (fsync(file)) return 3;
    at[5 * 4096] = at[6 * 4096] = 'w';
    if (munmap(at + 5 * 4096, 3 * 4096)) return 4;
    at[0] = 'e';
    return 0;
}
"""

FOLLOWED = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words)
{
    if (count > 1) return write(7, "again", 5) == 5 && write(8, "no", 2) == -1 ? 0 : 9;
    int file = open("kept", O_CREAT | O_WRONLY, 0600);
    int closed = open("closed", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (dup2(file, 7) != 7 || dup3(closed, 8, O_CLOEXEC) != 8 || write(7, "first", 5) != 5) abort();
    execl(words[0], words[0], "x", (char *)0);
    return 8;
}
"""

MANY = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words)
{
    int file = open("many", O_CREAT | O_RDWR, 0600);
    for (long left = atol(words[1]); left > 0; left--)
        if (pwrite(file, "byte", 1, left & 4095) != 1) return 1;
    return 0;
}
"""


def names(calls: list[Call], *wanted: str) -> list[str]:
    return [call.name for call in calls if not wanted or call.name in wanted]


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode >> 12,
            os.fsencode(path.readlink()) if path.is_symlink()
            else path.read_bytes() if path.is_file() else b"",
        )
        for path in folder.rglob("*")
    }  # fmt: skip


def replayed(recording: Path, folder: Path) -> dict[str, tuple[int, bytes]]:
    """What the recorded calls make of an empty folder, as operations."""
    _, body, made = translate(open_recording(recording), None, 0, think=False)
    assert not set(made.left_out) - {"munmap of a part of a mapping: all of it stays mapped"}
    folder.mkdir()
    replay(body, folder)
    return tree(folder)


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "for i in 1 2 3; do echo $i >> log; cp log log.$i; done; mv log.2 z; rm log"],
        ["sh", "-c", "mkdir d; echo x > d/a; ln d/a d/b; ln -s a d/l; truncate -s 9000 d/a"],
        [sys.executable, "-I", "-c", "import sqlite3; c = sqlite3.connect('x.db');"
         "c.execute('create table t(a)'); c.executemany('insert into t values(?)',"
         "[(str(i) * 50,) for i in range(200)]); c.commit();"
         "c.execute('delete from t where a < 5'); c.commit()"],
        ["sh", "-c", "seq 1 3000 > a; dd if=a of=b bs=777 conv=notrunc; (echo one; cat a) > c"],
    ],
    ids=["sh", "names", "sqlite", "dd"],
)  # fmt: skip
def test_what_was_recorded_makes_the_same_files_again(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    out = tmp_path / "x.parquet"
    assert recorded(command, tmp_path / "work", out, contents=True).status == 0
    assert replayed(out, tmp_path / "again") == tree(tmp_path / "work")


def test_threads_and_children_share_descriptors_as_the_kernel_has_it(tmp_path: Path) -> None:
    program = compiled(THREADS, tmp_path, "-pthread")
    (tmp_path / "work").mkdir()
    out = tmp_path / "x.parquet"
    came = recorded([str(program)], tmp_path / "work", out, contents=True)
    assert (came.status, came.tasks) == (0, 4)
    calls = calls_of(out)
    assert names(calls, "clone", "exit", "wait4") == ["clone"] * 2 + ["exit"] * 2 + [
        "clone", "exit", "wait4", "exit",
    ]  # fmt: skip
    assert replayed(out, tmp_path / "again") == tree(tmp_path / "work")


@pytest.mark.parametrize("flags", [(), MUSL])
def test_pages_that_changed_are_written_at_a_sync_or_when_the_mapping_goes(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    program = compiled(MAPPED, tmp_path, *flags)
    (tmp_path / "work").mkdir()
    out = tmp_path / "x.parquet"
    assert recorded([str(program)], tmp_path / "work", out, contents=True).status == 0
    calls = calls_of(out)
    (base,) = [call.result for call in calls if call.name == "mmap"]
    seen = [
        (call.name, (call.number("address") - base) // 4096, call.number("length") // 4096)
        for call in calls
        if call.name in ("mapped_write", "msync", "munmap")
    ]
    assert seen == [
        ("mapped_write", 1, 1), ("msync", 0, 8), ("mapped_write", 3, 1), ("mapped_write", 5, 2),
        ("munmap", 5, 3), ("mapped_write", 0, 1),
    ]  # fmt: skip
    assert replayed(out, tmp_path / "again") == tree(tmp_path / "work")


def test_descriptors_live_over_an_exec_unless_they_are_told_not_to(tmp_path: Path) -> None:
    program = compiled(FOLLOWED, tmp_path, *MUSL)
    (tmp_path / "work").mkdir()
    out = tmp_path / "x.parquet"
    assert recorded([str(program)], tmp_path / "work", out, contents=True).status == 0
    written = [call for call in calls_of(out) if call.name == "write"]
    assert [(call.number("descriptor"), call.written) for call in written] == [
        (7, b"first"), (7, b"again"),
    ]  # fmt: skip
    assert (tmp_path / "work" / "kept").read_bytes() == b"firstagain"


def test_a_descriptor_that_was_inherited_is_opened_at_its_position(tmp_path: Path) -> None:
    needs("sh")
    work = tmp_path / "work"
    work.mkdir()
    (work / "log").write_text("before\n", encoding="ascii")
    with (work / "log").open("ab") as log:
        command = [FLASHBED, "record", "-o", str(tmp_path / "x.parquet"), "--", "sh", "-c"]
        subprocess.run(
            [*command, "echo one; echo two"], cwd=work, stdout=log, check=True,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
    opened, *rest = [
        call for call in calls_of(tmp_path / "x.parquet")
        if call.name in ("openat", "write") and not (call.path() or b".").startswith(b"/")
    ]  # fmt: skip
    assert (opened.name, opened.path(), opened.result) == ("openat", b"log", 1)
    assert [(call.name, call.number("descriptor"), call.result) for call in rest] == [
        ("write", 1, 4), ("write", 1, 4),
    ]  # fmt: skip


def test_a_recording_holds_no_bytes_of_the_data_unless_asked_for(tmp_path: Path) -> None:
    secret = "the password is swordfish "
    (tmp_path / "work").mkdir()
    script = f"import os; f = open('a', 'wb'); f.write(b'{secret}' * 1000); f.flush();" + (
        f"os.pwrite(f.fileno(), b'{secret}', 99); os.setxattr('a', 'user.x', b'{secret}')"
    )
    (tmp_path / "work" / "script.py").write_text(script, encoding="ascii")
    command = [sys.executable, "-I", "script.py"]
    for contents in (False, True):
        out = tmp_path / f"{contents}.parquet"
        recorded(command, tmp_path / "work", out, contents=contents)
        held = False
        for column in pl.read_parquet(out).select(pl.col(pl.Binary, pl.String)).iter_columns():
            values = column.drop_nulls().to_list()
            held |= any(
                secret[:16].encode()
                in bytes(str(v), "utf-8") + (v if isinstance(v, bytes) else b"")
                for v in values
            )
        assert held == contents


def test_sizes_are_those_that_the_importers_compute(tmp_path: Path) -> None:
    """Two implementations: one for batches in Rust, one a write at a time in Python."""
    random_numbers = random.Random(4)
    sizer, other = PieceSizer(2), Sizer()
    for _ in range(20):
        writes, parts = [], []
        for _ in range(5):
            length = random_numbers.choice([1, 60, 200, 4096, 5000, 9000])
            writes.append((random_numbers.randrange(3), random_numbers.randrange(3) * 1500, length))
            word = random_numbers.randbytes(random_numbers.randrange(1, 40))
            parts.append((word * length)[:length])
        ours = sizer.sizes(b"".join(parts), writes)
        theirs = b"".join(
            int(number).to_bytes(2, "little")
            for (file, at, _), data in zip(writes, parts, strict=True)
            for piece in other.sizes(file, at, data)
            for number in piece
        )
        assert ours == theirs


def test_a_long_write_comes_in_parts_and_is_measured_as_one(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    script = (
        "import os; f = os.open('a', os.O_CREAT | os.O_WRONLY); os.lseek(f, 5, 0);"
        "os.write(f, bytes(range(256)) * 12000); os.writev(f, [b'x' * 300_001] * 5)"
    )
    out = tmp_path / "x.parquet"
    recorded([sys.executable, "-I", "-c", script], tmp_path / "work", out)
    sizes = [len(call.written or ()) for call in calls_of(out) if call.written]
    assert sizes == [751, 367 + (5 + 3072000) % 4096 // 4096]
    out = tmp_path / "y.parquet"
    recorded([sys.executable, "-I", "-c", script], tmp_path / "work", out, contents=True)
    first, second = [call.written for call in calls_of(out) if call.written]
    assert (first, second) == (bytes(range(256)) * 12000, b"x" * 1_500_005)


def test_the_programs_exit_status_is_that_of_the_command(tmp_path: Path) -> None:
    needs("sh")
    for number, (script, status) in enumerate({"exit 7": 7, "kill -TERM $$": 143}.items()):
        out = str(tmp_path / f"{number}.parquet")
        command = [FLASHBED, "record", "-o", out, "--", "sh", "-c", script]
        assert subprocess.run(command, cwd=tmp_path, check=False).returncode == status
    missing = [FLASHBED, "record", "-o", str(tmp_path / "m.parquet"), "--", "no-such-program"]
    done = subprocess.run(missing, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 127
    assert "no-such-program" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_command_reaches_the_program(
    number: signal.Signals, tmp_path: Path
) -> None:
    needs("sh")
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo got; exit 5' {name}; echo ready; while :; do sleep 0.1; done"
    command = [FLASHBED, "record", "-o", str(tmp_path / "x.parquet"), "--", "sh", "-c", script]
    with running(command, tmp_path) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(number)
        assert child.stdout.readline() == "got\n"
        assert child.wait(WAIT_S) == 5
    assert open_recording(tmp_path / "x.parquet").about.complete


@contextmanager
def running(command: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """It is killed at the end, for a test that fails must not wait for its program."""
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def state_of(process: int) -> str:
    text = Path(f"/proc/{process}/stat").read_text(encoding="ascii")
    return text.rpartition(")")[2].split()[0]


def until(condition: object, what: str) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, what
        time.sleep(0.02)


def test_a_program_can_be_stopped_and_goes_on(tmp_path: Path) -> None:
    needs("sh")
    script = "echo x > log; echo $$; while [ ! -e go ]; do echo x >> log; done; echo over"
    command = [FLASHBED, "record", "-o", str(tmp_path / "x.parquet"), "--", "sh", "-c", script]
    with running(command, tmp_path) as child:
        assert child.stdout is not None
        process = int(child.stdout.readline())
        os.kill(process, signal.SIGSTOP)
        until(lambda: state_of(process) in "tT", "it did not stop")
        time.sleep(0.3)
        size = (tmp_path / "log").stat().st_size
        time.sleep(0.3)
        assert (tmp_path / "log").stat().st_size == size
        os.kill(process, signal.SIGCONT)
        until(lambda: (tmp_path / "log").stat().st_size > size, "it did not continue")
        (tmp_path / "go").touch()
        assert child.stdout.readline() == "over\n"
        assert child.wait(WAIT_S) == 0


def test_a_shell_stops_it_continues_it_and_interrupts_it(tmp_path: Path) -> None:
    """As a user does on a terminal: Ctrl-Z, fg, Ctrl-C."""
    needs("bash")
    count = tmp_path / "count"
    count.write_text("0", encoding="ascii")
    script = "i=0; while :; do i=$((i+1)); echo $i > new; mv new count; sleep 0.05; done"
    command = f"{FLASHBED} record -o {tmp_path}/x.rec -- sh -c '{script}'; echo status $? > end"
    shell, terminal = pty.fork()
    if shell == 0:
        os.chdir(tmp_path)
        os.execvp("bash", ["bash", "--norc", "-i"])
    threading.Thread(target=lambda: drain(terminal), daemon=True).start()
    try:
        os.write(terminal, f"{command}\n".encode())
        until(lambda: int(count.read_text(encoding="ascii")) > 5, "it did not begin")
        os.write(terminal, b"\x1a")
        until(lambda: settled(count), "it did not stop")
        at = count.read_text(encoding="ascii")
        os.write(terminal, b"fg\n")
        until(lambda: count.read_text(encoding="ascii") != at, "it did not continue")
        os.write(terminal, b"\x03")
        until((tmp_path / "x.rec").exists, "it was not interrupted")
    finally:
        os.kill(shell, signal.SIGKILL)
        os.waitpid(shell, 0)
    assert open_recording(tmp_path / "x.rec").about.complete


def drain(terminal: int) -> None:
    with suppress(OSError):
        while os.read(terminal, 4096):
            pass


def settled(file: Path) -> bool:
    """Whether it does not change for a while."""
    before = file.read_text(encoding="ascii")
    time.sleep(0.7)
    return file.read_text(encoding="ascii") == before


def recorder_of(flashbed: int) -> int:
    """The agent's process, a child of the command's."""
    for thread in Path(f"/proc/{flashbed}/task").iterdir():
        for child in (thread / "children").read_text(encoding="ascii").split():
            if b"\0record\0" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
    return 0


@pytest.mark.parametrize("struck", ["recorder", "program", "command"])
def test_what_came_before_a_kill_is_whole(struck: str, tmp_path: Path) -> None:
    needs("sh")
    work = tmp_path / "work"
    work.mkdir()
    out = tmp_path / "x.parquet"
    script = "echo $$; i=0; while :; do i=$((i+1)); echo $i > file; done"
    command = [FLASHBED, "record", "-o", str(out), "--", "sh", "-c", script]
    parts = out.with_name(f"{out.name}.parts")
    with running(command, work) as child:
        assert child.stdout is not None
        program = int(child.stdout.readline())
        until(lambda: len(list(parts.glob("*.parquet"))) > 1, "no part was written")
        recorder = recorder_of(child.pid)
        os.kill({"recorder": recorder, "program": program, "command": child.pid}[struck], 9)
        child.wait(WAIT_S)
    until(lambda: not Path(f"/proc/{program}").exists(), "the program outlived its recorder")
    recording = open_recording(out)
    calls = list(recording.calls())
    assert recording.about.complete == (struck == "program")
    assert len([call for call in calls if call.name == "write" and call.written]) > 100
    # Every write but the last has been seen to be opened for.
    opened = sum(call.name == "openat" and call.path() == b"file" for call in calls)
    assert opened - sum(call.name == "write" for call in calls) in (0, 1)


def peak_kib(process: int) -> int:
    text = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(text.partition("VmHWM:")[2].split()[0])


@pytest.mark.timeout(900)
def test_many_calls_are_recorded_in_the_memory_of_few(tmp_path: Path) -> None:
    program = compiled(MANY, tmp_path)
    peaks = {}
    for count in (30_000, 300_000):
        out = tmp_path / f"{count}.parquet"
        command = [FLASHBED, "record", "-o", str(out), "--", str(program), str(count)]
        with subprocess.Popen(command, cwd=tmp_path) as child:
            command_peak = recorder_peak = 0
            while child.poll() is None:
                try:
                    # Not the largest value: before its exec a process has its parent's memory.
                    command_peak = peak_kib(child.pid)
                    # Asked each time: before its exec, any child has the command's arguments.
                    recorder = recorder_of(child.pid)
                    recorder_peak = peak_kib(recorder) if recorder else recorder_peak
                except (OSError, ValueError, IndexError):
                    pass
                time.sleep(0.05)
        assert child.returncode == 0
        recording = open_recording(out)
        kept = recording.rows().filter(call="pwrite64").select(pl.len()).collect().item()
        assert kept == count
        peaks[count] = (command_peak, recorder_peak)
    few, many = peaks[30_000], peaks[300_000]
    assert 256 < many[1] < few[1] + 256
    assert many[0] < few[0] * 1.3 + 64 * 1024


def test_privileges_are_given_up(tmp_path: Path) -> None:
    """A setuid program runs without its privileges: seccomp without root needs that."""
    out = tmp_path / "x.parquet"
    command = [FLASHBED, "record", "-o", str(out), "--", "grep", "NoNewPrivs", "/proc/self/status"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["NoNewPrivs:", "1"]


def test_files_of_another_folder_are_followed_if_asked(tmp_path: Path) -> None:
    for name in ("work", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "other" / "old").write_bytes(b"12345")
    script = f"echo x > a; echo y > {tmp_path}/other/b; echo z > {tmp_path}/outside"
    out = tmp_path / "x.parquet"
    recorded(["sh", "-c", script], tmp_path / "work", out, below=[str(tmp_path / "other")])
    inside = os.fsencode(str(tmp_path)[1:])
    opened = [call.path() for call in calls_of(out) if call.name == "openat"]
    assert opened == [b"a", inside + b"/other/b"]
    there = [call.path() for call in open_recording(out).existed()]
    assert inside + b"/other/old" in there
    assert inside + b"/other" in there
