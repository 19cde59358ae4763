"""Programs on the emulated board: flash as on user-mode Linux, time with software's."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from flashbed.base.paths import cache_folder
from flashbed.targets.emulator.machine import find_qemu
from flashbed.targets.guest.agent import path_of
from flashbed.targets.uml.programs_kernel import SERIES, programs_kernel
from flashbed.targets.uml.uml_kernel import cached_kernel
from flashbed.targets.unavailable import Unavailable

pytestmark = [pytest.mark.emulator, pytest.mark.timeout(600)]

FLASHBED = Path(sys.executable).parent / "flashbed"
OPERATIONS = """\
flashbed-ops 1
mkdir d
open 0 d/a rw,create
write 0 0 30000 1 50
fsync 0
close 0
open 1 d/a ro
read 1 0 30000
close 1
rename d/a b
"""


@pytest.fixture(autouse=True)
def _qemu() -> None:
    try:
        find_qemu()
    except Unavailable as why:
        pytest.skip(str(why))
    if not path_of("armv7").is_file():
        pytest.skip("the agent for armv7 is not built")


@pytest.fixture
def sysroot(tmp_path: Path) -> Path:
    """A tree with one static program, the agent."""
    (tmp_path / "root" / "bin").mkdir(parents=True)
    shutil.copy(path_of("armv7"), tmp_path / "root" / "bin" / "agent")
    (tmp_path / "program.ops").write_text(OPERATIONS)
    return tmp_path / "root"


def _exec(*words: str, given: bytes = b"") -> tuple[int, str, str]:
    done = subprocess.run(
        [FLASHBED, "exec", *words], input=given, capture_output=True, check=False, timeout=500,
        env={**os.environ, "TERM": "dumb"},
    )  # fmt: skip
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def _answer(out: str) -> dict[str, Any]:
    answers: list[dict[str, Any]] = json.loads(out)["exec"]
    return answers[0]


@pytest.mark.parametrize("fs", ["ubifs", pytest.param("jffs2", marks=pytest.mark.long)])
def test_the_flash_does_what_it_does_on_user_mode_linux(
    sysroot: Path, tmp_path: Path, fs: str
) -> None:
    put = ("--fs", fs, "--put", str(tmp_path / "program.ops"), "--format", "json")
    words = ("run", "program.ops", "--dir", ".")
    board = ("--on", "emulator", "--sysroot", str(sysroot))
    status, out, err = _exec(*board, *put, "--", "agent", *words)
    assert status == 0, err
    assert _exec(*board, *put, "--", "agent", *words) == (status, out, err)
    emulated = _answer(out)
    assert emulated["time_ns"] > emulated["run"]["busy_ns"]
    if cached_kernel(cache_folder(), SERIES[0], programs_kernel()) is None:
        pytest.skip("the kernel for programs is not built: make uml")
    if path_of("host").is_relative_to("/tmp"):
        pytest.skip("the checkout is in /tmp, which is another folder for a program")
    status, out, err = _exec(*put, "--", str(path_of("host")), *words)
    assert status == 0, err
    here = _answer(out)
    for kind in ("reads", "programs", "erases"):
        counts = [answer["run"][kind] + answer["flush"][kind] for answer in (emulated, here)]
        assert counts[0] == counts[1], kind
    assert emulated["erases_by_block"] == here["erases_by_block"]


def test_what_is_left_is_kept(sysroot: Path, tmp_path: Path) -> None:
    board = ("--on", "emulator", "--sysroot", str(sysroot), "--keep", str(tmp_path / "k"))
    words = ("run", "program.ops", "--dir", ".")
    status, _, err = _exec(*board, "--put", str(tmp_path / "program.ops"), "--", "agent", *words)
    assert status == 0, err
    assert (tmp_path / "k" / "b").stat().st_size == 30_000
    assert (tmp_path / "k" / "program.ops").read_text() == OPERATIONS


REACHES_OUT = r"""
static long call(long number, long first, const void *second, long third)
{
	register long r7 __asm__("r7") = number;
	register long r0 __asm__("r0") = first;
	register const void *r1 __asm__("r1") = second;
	register long r2 __asm__("r2") = third;

	__asm__ volatile("svc 0" : "+r"(r0) : "r"(r7), "r"(r1), "r"(r2) : "memory");
	return r0;
}

void _start(void)
{
	static const char aim[] = AIM;
	const unsigned long open_to_write[3] = {(unsigned long)aim, 5, sizeof(aim) - 1};
	register long r0 __asm__("r0") = 1;
	register const unsigned long *r1 __asm__("r1") = open_to_write;

	__asm__ volatile(".inst 0xe10f0070" : "+r"(r0) : "r"(r1) : "memory");
	call(1, r0 < 0, 0, 0);
}
"""


def test_a_program_cannot_open_files_of_the_host_by_semihosting(
    sysroot: Path, tmp_path: Path
) -> None:
    compiler = shutil.which("arm-linux-gnueabihf-gcc")
    if compiler is None:
        pytest.skip("arm-linux-gnueabihf-gcc is not installed")
    source, aim = tmp_path / "out.c", tmp_path / "opened"
    source.write_text(REACHES_OUT)
    subprocess.run(
        [compiler, "-static", "-nostdlib", "-marm", "-O1", f'-DAIM="{aim}"', "-o",
         sysroot / "bin" / "out", source],
        check=True,
    )  # fmt: skip
    status, _, err = _exec("--on", "emulator", "--sysroot", str(sysroot), "--", "out")
    assert status == 128 + 4, err  # SIGILL
    assert not aim.exists()


def test_statuses_and_what_is_not_there(sysroot: Path) -> None:
    board = ("--on", "emulator", "--sysroot", str(sysroot))
    status, out, err = _exec(*board, "--", "agent")
    assert (status, out) == (2, "")
    assert "usage: flashbed-agent" in err
    assert "exit status    2" in err
    assert "no such command" in _exec(*board, "--", "other")[2]


def test_a_debugger_stops_the_kernel_on_loopback_only(sysroot: Path, tmp_path: Path) -> None:
    gdb = shutil.which("gdb-multiarch")
    if gdb is None:
        pytest.skip("gdb-multiarch is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [FLASHBED, "exec", "--on", "emulator", "--sysroot", str(sysroot), "--gdb", str(port),
         "--put", str(tmp_path / "program.ops"), "--", "agent", "run", "program.ops", "--dir", "."],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    line = ""
    while "waits for a debugger" not in line:
        line = process.stderr.readline()
        assert line
    time.sleep(1)
    listening = f":{port:04X} "
    open_to = [row.split()[1] for row in Path("/proc/net/tcp").read_text().splitlines()
               if listening in row]  # fmt: skip
    assert all(address.startswith("0100007F:") for address in open_to)
    symbols = line.split("gdb-multiarch ")[1].split(" ")[0]
    said = subprocess.run(
        [gdb, "-batch", "-nx", symbols, "-ex", "set tcp connect-timeout 60",
         "-ex", f"target remote 127.0.0.1:{port}", "-ex", "hbreak ubifs_rename", "-ex", "continue",
         "-ex", "bt", "-ex", "delete", "-ex", "continue"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300,
    ).stdout  # fmt: skip
    assert "in ubifs_rename ()" in said
    assert "in vfs_rename ()" in said
    process.communicate(timeout=120)
    assert process.returncode == 0


TOOLS = """\
head -c 4194304 /dev/urandom > /tmp/in
now() { date +%s%N; }
now; dd if=/tmp/in of=partition bs=2048 seek=2048 conv=notrunc 2> /dev/null
now; nandwrite -q partition /tmp/in > /dev/null
now; dd if=partition of=/tmp/out bs=2048 count=2048 2> /dev/null
now; nanddump -q -l 4194304 -f /tmp/out partition
now; cmp /tmp/in /tmp/out || echo different
now; nanddump -q -o -l 4194304 -f /tmp/out partition
now
"""


def test_the_tools_of_mtd_take_what_their_calls_take() -> None:
    """Table I of the SQLite paper has 1.44 and 1.56 times the driver's time for its programs.

    nanddump of the paper's time read the spare area of each page unless told not to, which is
    another read of the chip.
    """
    packages = [
        word for name in ("coreutils", "mtd-utils", "diffutils") for word in ("--package", name)
    ]
    status, out, err = _exec("--on", "emulator", *packages, "--fs", "mtd", "--", "sh", "-c", TOOLS)
    if "could not be" in err:
        pytest.skip(err)
    assert status == 0, err
    times = [int(line) for line in out.splitlines()[:7]]
    wrote, nandwrite, read, nanddump, _, spare = (b - a for a, b in itertools.pairwise(times))
    assert 1 <= nandwrite / wrote < 1.1
    assert 1 <= nanddump / read < 1.2
    assert nanddump / read < 1.56 < spare / read < 2.2


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--on", "emulator", "--fs", "mtd-driver"), "no program reaches it; mtd is"),
        (("--on", "emulator", "--fs", "mtd", "--put", __file__), "--put: there is no file system"),
        (("--fs", "mtd"), "--set fs=mtd: no such file system"),
    ],
)
def test_the_partition_is_for_programs_of_the_emulated_board(
    words: tuple[str, ...], why: str
) -> None:
    status, _, err = _exec(*words, "--", "true")
    assert status == 2
    assert why in err


CODE_ON_FLASH = """\
cp /usr/lib/arm-linux-gnueabihf/libsqlite3.so.0 /usr/bin/sqlite3 .; sync
export LD_LIBRARY_PATH=$PWD
echo 'create table t(id integer primary key, val text)' | ./sqlite3 /tmp/x.db
for file in libsqlite3.so.0 sqlite3; do dd if=$file iflag=nocache count=0 2> /dev/null; done
printf '.timer on\\nBEGIN;\\ninsert into t values(1, 1);\\nEND;\\n' | ./sqlite3 /tmp/x.db
"""


def test_begin_waits_for_code_on_jffs2_only_if_it_is_read_page_by_page() -> None:
    """Table II of the SQLite paper has 32 ms for BEGIN, and 7 for the first insert.

    With a window of 128 KiB the program's start has read the code that BEGIN runs.
    """
    packages = ("--package", "coreutils", "--package", "sqlite3")
    real_s = {}
    for window in (128, 0):
        system = ("--fs", "jffs2", "--set", f"read_ahead_kib={window}")
        status, out, err = _exec(
            "--on", "emulator", *packages, *system, "--", "sh", "-c", CODE_ON_FLASH
        )
        if "could not be" in err:
            pytest.skip(err)
        assert status == 0, err
        real_s[window] = [float(found) for found in re.findall(r"Run Time: real (\S+)", out)]
    assert len(real_s[128]) == len(real_s[0]) == 3
    assert real_s[128][0] < 0.002
    assert real_s[128][1] < 0.004
    assert 0.02 < real_s[0][0] < 0.04
    assert real_s[0][1] > 0.04
