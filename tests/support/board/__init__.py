"""A board for the tests that a real ssh server answers on: QEMU's, reached over loopback.

    with ssh_board(folder) as board:
        subprocess.run([*board.ssh(), "uname", "-r"])

Debian's armhf kernel as the emulator target boots it, flashbed_nand with the board's chip, dropbear
and busybox of Debian (packages.py) in an initramfs (image.py). Every boot has a key of its own,
and the client's configuration knows the server's. Leaves out semihosting: the network is the only
way in. Time is counted in instructions but not jumped over (sleep=on): what waits, waits in the
host's time, so timeouts on both sides mean the same.
"""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from flashbed.base.paths import cache_folder
from flashbed.stack.profiles import Board, load_board
from flashbed.targets.emulator.debian_kernel import fetch_headers, fetch_kernel
from flashbed.targets.emulator.image import bootable
from flashbed.targets.emulator.machine import KERNEL_ARGUMENTS, find_qemu
from flashbed.targets.guest import nand, yaffs2
from flashbed.targets.guest.boot import Boot, Machine
from flashbed.targets.guest.initramfs import MODULES, load_order
from flashbed.targets.guest.module import ModuleNotBuilt, ModuleSource, built_module
from flashbed.targets.unavailable import Unavailable
from tests.support.board import image
from tests.support.board.packages import userland

__all__ = ["Parts", "SshBoard", "parts", "ssh_board"]

HOST = "127.0.0.1"
_BOOT_S = 240.0
"""Wall time until the server has to listen."""
_POLL_S = 0.02
_NETWORK = ("virtio_mmio", "virtio_net")
_NO_TRACING = "initcall_blacklist=tracefs_init"
"""The file system is never registered, and nothing is below debugfs either, as in a kernel without
CONFIG_FTRACE. debugfs itself stays: flashbed_nand needs it to load. perf_event_open still could."""
_NAMES = "board_names"


@dataclass(frozen=True)
class SshBoard:
    """A board that runs: how to reach it, and what runs it."""

    host: str
    port: int
    config: Path
    """ssh's configuration: `ssh -F CONFIG board` is root, `ssh -F CONFIG guest` is not. The
    address instead of `board` does as well."""
    release: str
    """What `uname -r` prints."""
    folder: Path
    """With console.log and the keys."""
    process: subprocess.Popen[bytes]
    """QEMU."""

    def ssh(self, name: str = "board") -> list[str]:
        """The client's command line up to the remote command's."""
        return ["ssh", "-F", str(self.config), name]

    def run(
        self, command: str, *, name: str = "board", timeout_s: float = 60, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command on the board to its end."""
        return subprocess.run(
            [*self.ssh(name), command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=check,
        )

    def pull_the_plug(self) -> None:
        """Kills the board. Unlike a power cut this closes its connections."""
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        """Stops the board: it does not answer, and connections stay open, as after a power cut."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Continues where it was stopped."""
        self.process.send_signal(signal.SIGCONT)


@dataclass(frozen=True)
class Parts:
    """What a board is made of; fetched and built once."""

    qemu: str
    kernel: Path
    release: str
    programs: dict[str, Path]
    modules: tuple[Path, ...]


def parts(say: Callable[[str], None] = print) -> Parts:
    """Everything a board needs, fetched and built where it is not there. Raises `Unavailable`."""
    for program in ("ssh", "ssh-keygen"):
        if shutil.which(program) is None:
            raise Unavailable(f"{program} is missing (on Debian: apt-get install openssh-client)")
    cache = cache_folder()
    qemu = find_qemu()
    kernel = fetch_kernel(cache, "6.1", say)
    tree = fetch_headers(cache, kernel, say)
    folder = Path(__file__).parent / "names"
    names = ModuleSource(
        _NAMES, {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    )
    ours = [built_module(cache, source, tree, say) for source in (nand.source(), names)]
    more = []
    try:
        more = yaffs2.modules_of(yaffs2.FS, cache, tree, say)
    except ModuleNotBuilt as why:
        say(str(why))
    wanted = [*_NETWORK, nand.MODULE, "nandsim", _NAMES, "mtdblock", *MODULES]
    wanted += [path.stem for path in more]
    modules = load_order(kernel.modules, wanted, [*ours, *more])
    return Parts(
        qemu=qemu,
        kernel=bootable(kernel.image),
        release=kernel.modules.name,
        programs=userland(cache),
        modules=tuple(modules),
    )


@contextmanager
def ssh_board(
    folder: Path,
    board: str = "emulated",
    *,
    tracefs: bool = True,
    tmp_kib: int = 65_536,
    jffs2_on: str | None = None,
    ubi_on: str | None = None,
    arguments: Sequence[str] = (),
    extra_init: Sequence[str] = (),
    icount: bool = True,
) -> Iterator[SshBoard]:
    """Boots a board, in a folder that is made; on leaving it is ended, whatever happened.

    `jffs2_on` is a partition to mount on /data, `ubi_on` one to attach UBI to; `arguments` are for
    the kernel's command line (root=/dev/mtdblock2 changes nothing but what it says, the root file
    system is the initramfs); `extra_init` are lines of shell, run before the server starts. Without
    `tracefs` the kernel has no such file system, so no kprobe_events. Without `icount` the guest's
    time is the host's, which is quicker and never the same. Raises `Unavailable`.
    """
    made = parts()
    profile = load_board(board)
    folder.mkdir(parents=True)
    key = _key(folder)
    plan = image.Plan(
        authorized_key=key,
        tracefs=tracefs,
        tmp_kib=tmp_kib,
        jffs2_on=jffs2_on,
        extra_init=extra_init,
    )
    parameters = {
        nand.MODULE: nand.parameters(profile, wait="halt"),
        "nandsim": image.NANDSIM,
        _NAMES: f"names={','.join(image.PARTITIONS)}",
    }
    if ubi_on:
        parameters["ubi"] = f"mtd={ubi_on}"
    initramfs = folder / "initramfs"
    initramfs.write_bytes(image.build(made.programs, made.modules, parameters, plan))
    arguments = [*KERNEL_ARGUMENTS, *([] if tracefs else [_NO_TRACING]), *arguments]
    port = _free_port()
    command = _command(
        made, profile, initramfs=initramfs, arguments=arguments, port=port, icount=icount
    )
    machine = Machine(
        name="the board",
        process="QEMU",
        command=command,
        patience_s=_BOOT_S,
        patience_variable="no variable",
    )
    with Boot(folder / "boot", machine, "") as boot:
        host_key = _wait(boot)
        config = _config(folder, port, host_key)
        yield SshBoard(
            host=HOST,
            port=port,
            config=config,
            release=made.release,
            folder=folder,
            process=boot.process,
        )


def _key(folder: Path) -> str:
    """Makes the client's key: its public half."""
    path = folder / "key"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tests", "-f", str(path)]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return path.with_suffix(".pub").read_text(encoding="ascii").strip()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    assert isinstance(port, int)
    return port


def _command(
    made: Parts,
    board: Board,
    initramfs: Path,
    arguments: Sequence[str],
    port: int,
    *,
    icount: bool,
) -> list[str]:
    emulator = board.emulator
    if emulator is None:
        raise Unavailable(f"{board.path}: the board has no [emulator]")
    forward = f"hostfwd=tcp:{HOST}:{port}-{image.GUEST_ADDRESS}:22"
    return [
        made.qemu,
        *("-M", emulator.machine, "-cpu", emulator.cpu, "-m", str(board.board.ram_mib)),
        *(("-icount", f"shift={emulator.icount_shift},sleep=on") if icount else ()),
        *("-rtc", "base=2020-01-01,clock=vm"),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none"),
        *("-serial", "file:console.log"),
        *("-netdev", f"user,id=net,restrict=on,{forward}"),
        *("-device", "virtio-net-device,netdev=net"),
        *("-kernel", str(made.kernel), "-initrd", str(initramfs)),
        *("-append", " ".join(arguments)),
    ]


def _wait(boot: Boot) -> str:
    """Waits until the server listens: its public key. Raises `RuntimeError`."""
    console, begun = boot.folder / "console.log", monotonic()
    while monotonic() - begun < _BOOT_S:
        text = console.read_text(errors="replace") if console.exists() else ""
        if image.READY in text:
            found = re.search(rf"{image.HOST_KEY_IS} (ssh-ed25519 \S+)", text)
            assert found, f"no host key on {console}"
            return found[1]
        if "board: init failed" in text or boot.process.poll() is not None:
            break
        sleep(_POLL_S)
    why = boot.why_ended() if boot.process.poll() is not None else f"console: {console}"
    raise RuntimeError(f"the board did not come up: {why}")


def _config(folder: Path, port: int, host_key: str) -> Path:
    known = folder / "known_hosts"
    known.write_text(f"[{HOST}]:{port} {host_key}\n", encoding="ascii")
    common = (
        f"  HostName {HOST}",
        f"  Port {port}",
        f'  IdentityFile "{folder / "key"}"',
        "  IdentitiesOnly yes",
        f'  UserKnownHostsFile "{known}"',
        "  GlobalKnownHostsFile /dev/null",
        "  StrictHostKeyChecking yes",
        "  BatchMode yes",
    )
    lines: list[str] = []
    for names, user in ((f"board {HOST}", "root"), ("guest", "guest")):
        lines += [f"Host {names}", f"  User {user}", *common]
    path = folder / "ssh_config"
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
    return path
