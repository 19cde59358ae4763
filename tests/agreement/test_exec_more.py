"""Programs on user-mode Linux: what they leave, their terminal, their end, what is counted."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import termios
import time
from pathlib import Path

import pytest

from flashbed.base.paths import cache_folder
from flashbed.targets.uml.programs_kernel import SERIES, programs_kernel
from flashbed.targets.uml.uml_kernel import cached_kernel
from tests.agreement.test_exec import FLASHBED, _exec

pytestmark = [pytest.mark.uml, pytest.mark.timeout(300)]

MAPPED = """
import mmap
f = open('m', 'w+b'); f.truncate(20000); m = mmap.mmap(f.fileno(), 20000)
m[0:3] = b'abc'; m[5000] = 1; m[19999] = 2; m.flush(); m[1] = 5; m.flush()
"""


@pytest.fixture(autouse=True)
def _kernel() -> None:
    if cached_kernel(cache_folder(), SERIES[0], programs_kernel()) is None:
        pytest.skip("the kernel for programs is not built: make uml")


def test_what_is_left_is_kept_and_links_out_of_it_are_not(tmp_path: Path) -> None:
    script = (
        "mkdir -p d/e; seq 1 20000 > d/big; printf 'a\\0b' > 'd/e/na me'; ln -s big d/in;"
        " ln -s /etc/passwd out; mkfifo pipe; chmod 700 d/e/*; head -c 3 d/big"
    )
    kept = tmp_path / "kept"
    ran = _exec("--keep", str(kept), "--", "sh", "-c", script)
    assert ran.status == 0, ran.err
    assert (kept / "d" / "big").read_text() == "".join(f"{n}\n" for n in range(1, 20001))
    assert (kept / "d" / "e" / "na me").read_bytes() == b"a\0b"
    assert (kept / "d" / "e" / "na me").stat().st_mode & 0o777 == 0o700
    assert (kept / "d" / "in").is_symlink()
    assert not (kept / "out").is_symlink()
    assert "not out: a link to /etc/passwd" in ran.err
    assert "not pipe" in ran.err
    again = _exec("--keep", str(kept), "--", "true")
    assert (again.status, "not empty" in again.err) == (2, True)


def test_a_daemon_is_told_to_end_when_its_time_is_up() -> None:
    script = "(trap 'echo bye; exit 0' TERM; while :; do sleep 1; done) & echo started"
    ran = _exec("--until", "30", "--", "sh", "-c", script)
    assert ran.status == 0
    assert ran.out == "started\nbye\n"
    assert "after 30 s, by --until: SIGTERM, exit status 0" in ran.err
    deaf = "trap '' TERM; while :; do sleep 1; done"
    ran = _exec("--until", "3", "--format", "json", "--", "sh", "-c", deaf)
    assert (ran.status, ran.answer["until_signal"]) == (0, 9)
    assert 3.9e9 <= ran.answer["time_ns"] < 4.1e9
    ran = _exec("--until", "30", "--", "sh", "-c", "exit 4")
    assert (ran.status, "--until" in ran.err) == (4, False)


@pytest.mark.parametrize("fs", ["ubifs", "yaffs2"])
def test_pages_written_through_a_mapping_are_counted(fs: str) -> None:
    ran = _exec("--fs", fs, "--format", "json", "--", "/usr/bin/python3", "-c", MAPPED)
    if "fs yaffs2" in ran.err:
        pytest.skip(ran.err)
    assert ran.status == 0, ran.err
    # Three pages, the last with 3,616 bytes; and the first one again, behind the first msync.
    assert ran.answer["bytes_mapped"] == 4 * 4096
    assert ran.answer["bytes_written"] == ran.answer["bytes_mapped"]
    files = {file["path"]: file for file in ran.answer["files"]}
    assert files["/m"]["bytes_mapped"] == ran.answer["bytes_mapped"]


def test_reads_writes_and_syncs_are_counted_by_file() -> None:
    script = "echo 12345 > a; cat a a > b; cat a > /tmp/c; sync b; rm a; echo 1 > a"
    ran = _exec("--format", "json", "--", "sh", "-c", script)
    files = {file["path"]: file for file in ran.answer["files"]}
    assert set(files) == {"/a", "/b"}
    assert (files["/a"]["bytes_written"], files["/b"]["bytes_written"]) == (8, 12)
    assert files["/a"]["bytes_read"] == 18
    assert (files["/b"]["syncs"], files["/a"]["syncs"]) == (1, 0)


def test_calls_cost_what_the_board_says_of_their_kinds() -> None:
    words = ("--format", "json", "--software")
    script = "i=0; while [ $i -lt 50 ]; do : > f$i; i=$((i + 1)); done"
    none, flat, calls = (
        _exec(*words, how, "--", "sh", "-c", script).answer for how in ("none", "flat", "calls")
    )
    # Beside the chip's time there is what a timer's interrupt is late.
    assert 0 <= none["time_ns"] - none["run"]["busy_ns"] < 20_000
    each = flat["software"]["syscall_ns"]
    made = {call["name"]: call["calls"] for call in flat["system_calls"]}
    asked = sum(made.values())
    assert abs(flat["time_ns"] - none["time_ns"] - asked * each) < 20_000 + 3 * each
    more = calls["software"]["kinds"]["openat"]["ns"] - each
    assert calls["time_ns"] - flat["time_ns"] >= made["openat"] * more


class _Session:
    """flashbed on a terminal of flashbed's."""

    def __init__(self, *words: str) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"SHELL": "/bin/sh", "TERM": "dumb", "PS1": "ready> "})
            os.execv(FLASHBED, [str(FLASHBED), "exec", *words])
        self.seen = b""
        self.size(30, 100)

    def size(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self.fd, keys)

    def sees(self, wanted: bytes, seconds: float = 60) -> bool:
        """Whether it comes, in what was not seen yet."""
        until = time.monotonic() + seconds
        while wanted not in self.seen:
            if time.monotonic() > until or not self._read():
                return False
        self.seen = self.seen.split(wanted, 1)[1]
        return True

    def _read(self) -> bool:
        if select.select([self.fd], [], [], 0.2)[0]:
            try:
                self.seen += os.read(self.fd, 65536)
            except OSError:
                return False
        return True

    def status(self) -> int:
        while self._read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_a_shell_has_a_terminal_with_a_size_and_keys_that_stop() -> None:
    shell = _Session("--shell", "--env", "PS1=ready> ")
    assert shell.sees(b"ready> ")
    shell.type(b"tty; stty size\n")
    assert shell.sees(b"/dev/ttyF0")
    assert shell.sees(b"30 100")
    shell.size(50, 120)
    shell.type(b"sleep 1; stty size\n")
    assert shell.sees(b"50 120")
    shell.type(b"/usr/bin/python3 -c 'print(6 * 7)\nwhile True: pass'\n")
    assert shell.sees(b"42")
    shell.type(b"\x03")
    assert shell.sees(b"KeyboardInterrupt")
    shell.type(b"sleep 1000\n")
    assert shell.sees(b"sleep 1000")
    time.sleep(1)
    shell.type(b"\x1a")
    assert shell.sees(b"Stopped")
    shell.type(b"fg\n")
    assert shell.sees(b"sleep 1000")
    time.sleep(1)
    shell.type(b"\x03")
    assert shell.sees(b"ready> ")
    shell.type(b"echo left > file; exit 5\n")
    assert shell.sees(b"exit status    5")
    assert shell.sees(b"written        5 bytes")
    assert shell.status() == 5


def test_a_shell_behind_a_command_looks_at_what_it_left() -> None:
    shell = _Session("--shell", "--", "sh", "-c", "echo made > file; exit 3")
    assert shell.sees(b"# ") or shell.sees(b"$ ")
    shell.type(b"cat file; rm file; exit\n")
    assert shell.sees(b"made")
    assert shell.sees(b"exit status    3")
    assert shell.sees(b"written        5 bytes")
    assert shell.status() == 3


def test_a_key_ends_a_session_and_the_terminal_is_as_it_was() -> None:
    shell = _Session("--shell")
    before = termios.tcgetattr(shell.fd)
    assert shell.sees(b"# ") or shell.sees(b"$ ")
    assert termios.tcgetattr(shell.fd) != before
    shell.type(b"\x1d")
    assert shell.sees(b"interrupted")
    assert termios.tcgetattr(shell.fd) == before
    assert shell.status() == 130


def test_without_a_terminal_a_shell_is_refused() -> None:
    ran = _exec("--shell")
    assert (ran.status, "terminal" in ran.err) == (2, True)


FULL = """
import os
f = os.open('log', os.O_CREAT | os.O_WRONLY)
for n in range(1500):
    try:
        os.write(f, os.urandom(4096))
    except OSError:
        pass
open('/etc/hostname', 'rb').read()
"""


@pytest.mark.parametrize("fs", ["ubifs", "jffs2"])
def test_calls_that_failed_on_flash_are_counted_and_leave_no_lifetime(fs: str) -> None:
    """A logger that ignores ENOSPC wrote a twentieth of its data, and was promised decades."""
    board = {"ubifs": "emulated-46-lebs", "jffs2": "emulated-small"}[fs]
    small = ("--fs", fs, "--board", board, "--rate", "1/h", "--format", "json")
    ran = _exec(*small, "--", "/usr/bin/python3", "-c", FULL)
    assert ran.status == 0, ran.err
    failed = {(each["name"], each["why"]): each["calls"] for each in ran.answer["failed_calls"]}
    assert failed["write", "ENOSPC"] > 100
    assert set(failed) <= {("write", "ENOSPC"), ("write", "short")}
    assert (ran.answer["years"], "calls failed" in ran.answer["failure"]) == (None, True)


def test_a_mapping_that_a_file_system_lacks_is_a_failed_call() -> None:
    jffs2 = ("--fs", "jffs2", "--format", "json")
    ran = _exec(*jffs2, "--", "/usr/bin/python3", "-c", MAPPED)
    (failed,) = ran.answer["failed_calls"]
    assert (failed["name"], failed["calls"]) == ("mmap", 1)


def test_names_that_are_not_there_and_other_files_are_no_failed_calls() -> None:
    script = (
        "ls nothing; mkdir d; mkdir d; echo x > /dev/full; echo x > /etc/x; rmdir nothing; true"
    )
    ran = _exec("--format", "json", "--", "sh", "-c", script)
    assert (ran.status, ran.answer["failed_calls"]) == (0, [])
