"""A program inside changes nothing of the host, as root and as an ordinary user.

It tries what a program could: every folder that it finds, every device, other processes, memory
that is shared by name, the network. The host is compared before and after.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from flashbed.base.paths import cache_folder
from flashbed.targets.uml.programs_kernel import SERIES, programs_kernel
from flashbed.targets.uml.uml_kernel import cached_kernel
from tests.agreement.test_exec import FLASHBED
from tests.support import PROJECT

pytestmark = [pytest.mark.uml, pytest.mark.timeout(300)]

NOBODY = 65534
PLACES = ("/", "/etc", "/etc/cron.d", "/root", "/home", "/opt", "/srv", "/boot", "/usr/bin",
          "/usr/local/bin", "/var/lib", "/var/spool", "/dev", "/dev/shm", "/dev/mqueue",
          "/tmp", "/var/tmp", "/run", "/proc", "/sys")  # fmt: skip
WATCHED = ("/", "/etc", "/root", "/home", "/opt", "/srv", "/boot", "/usr/local", "/var/spool",
           "/dev/shm", "/dev/mqueue", "/var/tmp")  # fmt: skip
WICKED = """
import ctypes, mmap, os, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
port, places = int(sys.argv[1]), sys.argv[2:]
reached = []
def tried(call):
    try:
        call()
        return True
    except (OSError, ValueError):
        return False
for place in places:
    for what in (lambda: open(place + '/flashbed-was-here', 'w').write('x'),
                 lambda: os.mkdir(place + '/flashbed-was-here.d'),
                 lambda: os.symlink('x', place + '/flashbed-was-here.l'),
                 lambda: os.mknod(place + '/flashbed-was-here.n', 0o60666, 2049)):
        tried(what)
    try:
        names = os.listdir(place)
    except OSError:
        continue
    for name in names:
        path = place + '/' + name
        if 'flashbed-was-here' in name: continue
        tried(lambda: os.utime(path, (1, 1), follow_symlinks=False))
        tried(lambda: os.lchown(path, 1, 1))
        tried(lambda: os.chmod(path, 0o7777))
        tried(lambda: os.rename(path, path + '.flashbed-was-here'))
        tried(lambda: os.unlink(path))
        tried(lambda: os.rmdir(path))
        tried(lambda: os.setxattr(path, 'user.flashbed', b'x'))
        tried(lambda: os.truncate(path, 0))
for path in ('/etc/passwd', '/etc/hostname'):
    fd = os.open(path, os.O_RDONLY)
    tried(lambda: mmap.mmap(fd, 10, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE))
    tried(lambda: open('/proc/self/fd/%d' % fd, 'r+').write('x'))
for kind in (0o60666, 0o20666):
    for number in (0x801, 0x800, 0x101, 0x102, 0x104):
        if tried(lambda: os.mknod('/tmp/node', kind, number)):
            if tried(lambda: open('/tmp/node', 'r+b').write(b'x')): reached.append('device')
            os.unlink('/tmp/node')
for pid in range(2, 5000):
    if pid != os.getpid(): tried(lambda: os.kill(pid, signal.SIGUSR1))
libc.shmget(0x464c4253, 4096, 0o1666); libc.msgget(0x464c4253, 0o1666)
for family, address in ((socket.AF_INET, ('127.0.0.1', port)), (socket.AF_INET, ('192.0.2.1', 80)),
                        (socket.AF_UNIX, '\\0flashbed-test-%d' % port)):
    with socket.socket(family) as s:
        s.settimeout(1)
        if tried(lambda: s.connect(address)): reached.append(address)
tried(lambda: libc.reboot(0x01234567))
print('reached', reached, 'environment', sorted(os.environ), 'user', os.getuid(), os.getgid())
tried(lambda: print(open('/proc/1/environ').read()))
"""


@pytest.fixture(autouse=True)
def _kernel() -> None:
    if cached_kernel(cache_folder(), SERIES[0], programs_kernel()) is None:
        pytest.skip("the kernel for programs is not built: make uml")


def _host() -> dict[str, tuple[int, ...]]:
    """What can be seen of the host's files: kind, mode, owner, size, links, both times."""
    seen: dict[str, tuple[int, ...]] = {}
    for folder in WATCHED:
        try:
            names = sorted(path.name for path in Path(folder).iterdir())
        except OSError:
            continue
        for name in ["", *names]:
            path = Path(folder) / name
            try:
                about = path.lstat()
            except OSError:
                continue
            times = () if path in _MOVING or not name else (about.st_mtime_ns, about.st_ctime_ns)
            of = (about.st_mode, about.st_uid, about.st_gid, about.st_nlink, *times)
            seen[str(path)] = of if path not in _MOVING else of[:3]
    return seen


_MOVING = {Path(path) for path in ("/", "/tmp", "/proc", "/run", "/dev", "/sys", "/root/.cache")}
"""Of the host's own doings."""


def _shared() -> str:
    """Shared memory and queues that have names."""
    return "".join(
        Path(f"/proc/sysvipc/{kind}").read_text() for kind in ("shm", "msg", "sem")
        if Path(f"/proc/sysvipc/{kind}").exists()
    )  # fmt: skip


@pytest.fixture(params=["this user", "nobody"])
def user(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """The prefix of a command that runs as that user; without root only one user is possible."""
    if request.param == "this user":
        yield []
        return
    setpriv = shutil.which("setpriv")
    if os.getuid() != 0 or setpriv is None:
        pytest.skip("needs root and setpriv")
    work = PROJECT / "build" / "exec"
    work.mkdir(parents=True, exist_ok=True)
    before = work.stat().st_mode
    prefix = [setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
    work.chmod(0o1777)
    if subprocess.run([*prefix, FLASHBED, "--version"], capture_output=True).returncode != 0:
        work.chmod(before)
        pytest.skip("another user cannot read this checkout")
    yield prefix
    work.chmod(before)


def test_the_host_is_the_same_after_a_program_that_tries_everything(user: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.socket(socket.AF_UNIX) as unix:
            unix.bind(f"\0flashbed-test-{port}")
            unix.listen()
            before, shared = _host(), _shared()
            ran = subprocess.run(
                [*user, FLASHBED, "exec", "--", "/usr/bin/python3", "-c", WICKED, str(port),
                 *PLACES],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                cwd="/", env={**os.environ, "FLASHBED_TEST_SECRET": "s3cr3t"}, timeout=250,
            )  # fmt: skip
            after = _host()
    assert ran.returncode == 0, ran.stderr
    assert "reached []" in ran.stdout
    assert "s3cr3t" not in ran.stdout
    assert f"user {NOBODY if user else os.getuid()} " in ran.stdout
    assert {path: (before.get(path), after.get(path)) for path in before.keys() | after.keys()
            if before.get(path) != after.get(path)} == {}  # fmt: skip
    assert _shared() == shared
    assert not [path for path in after if "flashbed-was-here" in path]
