"""Programs of this machine on user-mode Linux: what they do and cannot do, twice the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from flashbed.base.paths import cache_folder
from flashbed.targets.guest.agent import path_of
from flashbed.targets.uml.programs_kernel import SERIES, programs_kernel
from flashbed.targets.uml.uml_kernel import cached_kernel
from flashbed.targets.uml.uml_program import prepare
from tests.support import PROJECT

pytestmark = [pytest.mark.uml, pytest.mark.timeout(300)]

FLASHBED = Path(sys.executable).parent / "flashbed"
SQL = (
    "import sqlite3; d = sqlite3.connect('x.db');"
    "d.execute('create table t(a)');"
    "[(d.execute('insert into t values (?)', (n,)), d.commit()) for n in range(5)];"
    "print(d.execute('select sum(a) from t').fetchone()[0])"
)
THREADS = """
import threading, os
def work(n):
    with open(f'f{n}', 'wb') as out:
        out.write(bytes([n]) * 5000); out.flush(); os.fsync(out.fileno())
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(os.listdir('.')), hash('a' * 3) != 0, id(object()), os.urandom(4).hex())
"""
PROGRAMS = {
    "sh": ["sh", "-c", "for n in 1 2 3; do echo $n > f$n; done; sync; cat f*; date +%s%N; echo $$"],
    "sqlite": ["/usr/bin/python3", "-c", SQL],
    "threads": ["/usr/bin/python3", "-c", THREADS],
    "tar": ["sh", "-c", "mkdir d; seq 1 999 > d/a; tar cf t d; rm -r d; tar xf t; wc -l d/a"],
}  # fmt: skip


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str

    @property
    def answer(self) -> dict[str, Any]:
        answers: list[dict[str, Any]] = json.loads(self.out)["exec"]
        return answers[0]


@pytest.fixture(autouse=True)
def _kernel() -> None:
    if cached_kernel(cache_folder(), SERIES[0], programs_kernel()) is None:
        pytest.skip("the kernel for programs is not built: make uml")
    _prepared()


@lru_cache
def _prepared() -> None:
    """Builds the chip's driver, so that no run says that it does."""
    prepare(SERIES[0], lambda _: None)


def _exec(*words: str, given: bytes = b"", env: dict[str, str] | None = None) -> Ran:
    done = subprocess.run(
        [FLASHBED, "exec", *words],
        input=given, capture_output=True, check=False, timeout=250, cwd=PROJECT,
        env={**os.environ, **(env or {})},
    )  # fmt: skip
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize("fs", ["ubifs", "jffs2"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_twice_says_and_does_the_same(name: str, fs: str) -> None:
    first, second = (_exec("--fs", fs, "--format", "json", "--", *PROGRAMS[name]) for _ in range(2))
    assert first.status == 0, first.err
    assert first.answer["run"]["programs"] + first.answer["flush"]["programs"] > 0
    assert first.answer["bytes_written"] > 0
    assert (first.out, first.err) == (second.out, second.err)


def test_output_and_answer_are_apart() -> None:
    ran = _exec("--", "sh", "-c", "printf 'a\\0b'; echo error >&2; exit 7")
    assert (ran.status, ran.out) == (7, "a\0b")
    assert ran.err.startswith("error\n")
    assert "exit status    7" in ran.err


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["sh", "-c", "kill -9 $$"], 137),
        (["true"], 0),
        (["false"], 1),
        (["no-such-command"], 2),
        (["/etc/passwd"], 2),
    ],
)
def test_exit_statuses_are_passed_on(words: list[str], status: int) -> None:
    assert _exec("--", *words).status == status


def test_what_is_put_is_there_and_a_missing_interpreter_is_127(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    assert _exec("--put", str(script), "--", "./script").status == 127
    script.write_text("#!/bin/sh\nls; cat d/x; pwd\n")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x").write_text("y\n")
    ran = _exec("--put", str(script), "--put", str(tmp_path / "d"), "--", "./script")
    assert ran.out.splitlines()[:3] == ["d", "script", "y"]


def test_a_static_program_runs() -> None:
    agent = path_of("host")
    assert "usage" in _exec("--put", str(agent), "--", f"./{agent.name}").err


def test_standard_input_is_handed_through() -> None:
    text = b"".join(b"%d\n" % n for n in range(20_000))
    assert _exec("--", "sh", "-c", "cat > f; wc -l < f", given=text).out.strip() == "20000"


def test_both_file_systems_in_one_command() -> None:
    ran = _exec("--set", "fs=jffs2,ubifs", "--rate", "1/min", "--", "sh", "-c", "echo a > b")
    assert ran.status == 0
    assert ran.err.count("\n  lifetime ") == 2
    assert "sh on 2 systems, each from a new file system" in ran.err
    assert "sh on jffs2" in ran.err
    assert "sh on ubifs" in ran.err


WICKED = """
import os, socket, subprocess, sys
def tried(what, call):
    try:
        call()
        print('DID', what)
    except OSError as why:
        print('not', what)
path = sys.argv[1]
tried('write', lambda: open(path, 'r+').write('x'))
tried('create', lambda: open(path + '.new', 'w'))
tried('unlink', lambda: os.unlink(path))
tried('rename', lambda: os.rename(path, path + '.2'))
tried('chmod', lambda: os.chmod(path, 0o777))
tried('chown', lambda: os.chown(path, 1, 1))
tried('utime', lambda: os.utime(path, (1, 1)))
tried('truncate', lambda: os.truncate(path, 0))
tried('mkdir', lambda: os.mkdir(path + '.d'))
tried('link', lambda: os.link(path, path + '.3'))
tried('symlink', lambda: os.symlink('a', path + '.4'))
tried('mknod', lambda: os.mknod('node', 0o60600, 0))
tried('fifo', lambda: os.mkfifo(path + '.5'))
tried('chroot', lambda: os.chroot('/tmp'))
for place in ('/proc/sys/kernel/threads-max', '/proc/sys/kernel/hostname', '/proc/sysemu',
              '/proc/sysrq-trigger', '/proc/self/oom_score_adj', '/sys/power/state'):
    tried('write ' + place, lambda: open(place, 'w').write('1'))
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def checked(result):
    if result != 0: raise OSError(ctypes.get_errno(), 'no')
MS_REMOUNT = 32
tried('remount', lambda: checked(libc.mount(b'none', b'/', b'none', MS_REMOUNT, None)))
tried('bind remount', lambda: checked(libc.mount(b'none', b'/', b'none', MS_REMOUNT | 4096, None)))
tried('mount', lambda: checked(libc.mount(b'hostfs', b'/tmp', b'hostfs', 0, b'/')))
tried('umount', lambda: checked(libc.umount2(b'/proc', 2)))
tried('unshare', lambda: checked(libc.unshare(0x10000000)))
tried('init', lambda: os.listdir('/proc/1/root'))
tried('outside', lambda: socket.create_connection(('192.0.2.1', 80), 1))
tried('unix', lambda: socket.socket(socket.AF_UNIX).connect(sys.argv[2]))
server = socket.create_server(('127.0.0.1', 0))
socket.create_connection(server.getsockname())
print('loopback works', sorted(os.environ))
"""


def _state(folder: Path) -> list[tuple[str, int, int, int, int, bytes]]:
    return [
        (str(path), about.st_mode, about.st_mtime_ns, about.st_uid, about.st_nlink,
         path.read_bytes() if path.is_file() else b"")
        for path in sorted([folder, *folder.rglob("*")]) for about in [path.lstat()]
    ]  # fmt: skip


@pytest.fixture
def seen_folder() -> Iterator[Path]:
    """A folder that a program inside can see: those of pytest are below /tmp."""
    folder = PROJECT / "build" / f"exec-test-{os.getpid()}"
    folder.mkdir(parents=True)
    yield folder
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def test_nothing_of_the_host_can_be_changed_or_reached(seen_folder: Path) -> None:
    import socket

    (seen_folder / "file").write_text("kept")
    (seen_folder / "file").chmod(0o666)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(seen_folder / "socket"))
        server.listen()
        before = _state(seen_folder)
        ran = _exec(
            "--", "/usr/bin/python3", "-c", WICKED, str(seen_folder / "file"),
            str(seen_folder / "socket"), env={"FLASHBED_TEST_SECRET": "s"},
        )  # fmt: skip
        assert _state(seen_folder) == before
    assert ran.status == 0, ran.err
    assert "DID" not in ran.out
    assert "loopback works" in ran.out
    assert "SECRET" not in ran.out


def test_the_environment_of_the_host_is_nowhere_in_proc() -> None:
    ran = _exec(
        "--", "sh", "-c", "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'",
        env={"FLASHBED_TEST_SECRET": "s3cr3t"},
    )  # fmt: skip
    assert "LANG=C.UTF-8" in ran.out
    assert "s3cr3t" not in ran.out


def test_a_process_that_wants_all_memory_is_refused_it() -> None:
    hog = "a = []\nwhile True: a.append(bytes(1 << 20))"
    ran = _exec("--memory", "128", "--host-timeout", "60", "--", "/usr/bin/python3", "-c", hog)
    assert ran.status == 1
    assert "MemoryError" in ran.err


def test_a_loop_without_calls_ends_with_patience() -> None:
    began = time.monotonic()
    ran = _exec("--host-timeout", "4", "--", "/usr/bin/python3", "-c", "while True: pass")
    assert ran.status == 124
    assert "--host-timeout" in ran.err
    assert time.monotonic() - began < 60


def test_a_process_that_spins_is_ended_with_its_counts() -> None:
    """Code takes no time there: such a program took `--host-timeout` and left no count at all."""
    spins = "echo a > f; sync; python3 -c 'while True: pass'; echo b > g; while :; do :; done"
    ran = _exec("--spin", "1", "--until", "9", "--format", "json", "--", "sh", "-c", spins)
    found = ran.answer
    assert (found["signal"], found["spun"], found["years"]) == (signal.SIGILL, 2, None)
    assert [file["path"] for file in found["files"]] == ["/f", "/g"]
    assert found["run"]["programs"] > 0
    assert ran.err.count("(--spin)") == 2


def test_a_program_that_computes_between_calls_does_not_spin() -> None:
    """Each call wakes the guest's kernel, however short it is."""
    works = "import os\nfor _ in range(40):\n    sum(range(2_000_000))\n    os.getpid()"
    ran = _exec("--spin", "0.5", "--", "/usr/bin/python3", "-c", works)
    assert (ran.status, "--spin" in ran.err) == (0, False), ran.err


def _started(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [FLASHBED, "exec", *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=PROJECT,
    )  # fmt: skip


def _kernels(mark: str) -> list[int]:
    """Processes of user-mode Linux with this memory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"mem={mark}M".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def _keepers(memory: str) -> list[int]:
    """The shells that kill a run with this memory when flashbed has ended."""
    folders = [str(path.resolve()).encode() for path in _folders(memory)]
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if b"read -r never" in words and any(folder in words for folder in folders):
            found.append(int(path.parent.name))
    return found


def _shared() -> list[str]:
    return sorted(path.name for path in Path("/dev/shm").iterdir())


KILLED = {"flashbed": "201", "kernel": "202", "interrupted": "203", "stub": "204", "keeper": "205"}
STATUSES = {"kernel": 125, "stub": 139, "interrupted": 130}
"""Of a killed stub the guest sees a program that made a fault."""


@pytest.mark.parametrize("killed", KILLED)
def test_nothing_is_left_of_what_is_killed(killed: str) -> None:
    memory = KILLED[killed]
    shared = _shared()
    process = _started("--memory", memory, "--", "sh", "-c", "echo up; while :; do :; done")
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    running, keepers = _kernels(memory), _keepers(memory)
    assert len(running) > 1
    assert len(keepers) == 1
    if killed == "flashbed":
        process.kill()
    elif killed == "interrupted":
        process.send_signal(signal.SIGINT)
    elif killed == "keeper":
        os.kill(keepers[0], signal.SIGKILL)
        process.kill()
    else:
        os.kill(min(running) if killed == "kernel" else max(running), signal.SIGKILL)
    process.wait(60)
    if killed == "keeper":
        _exec("--", "true")  # which clears the folders of those that were killed
    until = time.monotonic() + 20
    while time.monotonic() < until and (
        _kernels(memory) or _folders(memory) or _shared() != shared
    ):
        time.sleep(0.2)
    assert _kernels(memory) == []
    assert _folders(memory) == []
    assert _shared() == shared
    if killed in STATUSES:
        assert process.returncode == STATUSES[killed]
    process.communicate()


def _folders(memory: str) -> list[Path]:
    """Folders of runs with this memory."""
    left = []
    for path in (PROJECT / "build" / "exec").glob("exec-*"):
        try:
            if f"memory {int(memory) << 19}\n" in (path / "job").read_text():
                left.append(path)
        except OSError:
            continue
    return left
