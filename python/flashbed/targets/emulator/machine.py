"""One boot of the emulated board: QEMU as a child process in a folder of its own.

The guest's time is a count of instructions (`-icount shift=N,sleep=off`: 2^N ns each, waits are
jumped over), its date a constant, its random numbers seeded; it gets nothing timed by the host. Job
and stream are the files `job` and `stream` of the folder, reached by ARM semihosting
(agent/channel.c), the console is `console.log`, what QEMU itself says `qemu.log`. All are named
relative to the folder, so that no path of the host reaches the guest.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

from flashbed.profiles import Board
from flashbed.targets.base import Unavailable

__all__ = ["Boot", "Stopped", "command", "find_qemu"]

QEMU = "qemu-system-arm"
_POLL_S = 0.02
_CHUNK_BYTES = 1 << 20


class Stopped(Exception):
    """The board stopped before its job was done; the message says why in one line."""


def find_qemu(program: str = QEMU) -> str:
    """The emulator's path. Raises `Unavailable`."""
    path = shutil.which(program)
    if path is None:
        raise Unavailable(
            f"{program} is not installed (on Debian: apt-get install qemu-system-arm)"
        )
    return path


def command(qemu: str, board: Board, kernel: Path, initramfs: Path) -> list[str]:
    """QEMU's command line for a board."""
    emulator = board.emulator
    if emulator is None:
        raise Unavailable(f"{board.path}: the board has no [emulator]")
    return [
        qemu,
        *("-M", emulator.machine, "-cpu", emulator.cpu, "-m", str(board.board.ram_mib)),
        *("-icount", f"shift={emulator.icount_shift},sleep=off"),
        *("-rtc", "base=2020-01-01,clock=vm", "-seed", "7"),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none"),
        *("-serial", "file:console.log"),
        *("-semihosting-config", "enable=on,userspace=on,target=native"),
        *("-kernel", str(kernel), "-initrd", str(initramfs), "-append"),
        "console=ttyAMA0 quiet nokaslr random.trust_cpu=on panic=-1 oops=panic",
    ]


def _dies_with_us() -> list[str]:
    """A prefix to a command that ends it when this process is killed outright, where it is there.

    setpriv of util-linux sets PR_SET_PDEATHSIG; Python cannot safely between fork and exec.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []


class Boot:
    """A running board. Use it as a context; leaving it ends the process."""

    def __init__(self, folder: Path, arguments: list[str], job: str, patience_s: float) -> None:
        self.folder = folder
        self.patience_s = patience_s
        folder.mkdir(parents=True)
        (folder / "job").write_text(job, encoding="ascii", newline="\n")
        self._said = (folder / "qemu.log").open("wb")
        try:
            self.process = subprocess.Popen(
                [*_dies_with_us(), *arguments],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            self._said.close()
            raise Unavailable(f"{arguments[0]} does not start: {error}") from None

    def __enter__(self) -> Boot:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._said.close()

    def stream(self) -> Iterator[bytes]:
        """The stream's bytes as they come, to the end of the process.

        Raises `Stopped` when nothing came for `patience_s` of wall time.
        """
        path, at, heard = self.folder / "stream", 0, monotonic()
        while True:
            ended = self.process.poll() is not None
            data = b""
            if path.exists():
                with path.open("rb") as stream:
                    stream.seek(at)
                    data = stream.read(_CHUNK_BYTES)
            if data:
                at, heard = at + len(data), monotonic()
                yield data
            elif ended:
                return
            elif monotonic() - heard > self.patience_s:
                raise Stopped(
                    f"the board hung: no progress in {self.patience_s:g} s"
                    f" (FLASHBED_EMULATOR_PATIENCE_S); console: {self.folder / 'console.log'}"
                )
            else:
                sleep(_POLL_S)

    def why_ended(self) -> str:
        """Why the process ended before its job was done, from its status and the logs."""
        console = self.folder / "console.log"
        text = console.read_text(errors="replace") if console.exists() else ""
        panic = re.search(r"Kernel panic[^\n]*|Internal error:[^\n]*", text)
        agent = re.findall(r"flashbed-agent: [^\n\r]*", text)
        status = self.process.returncode
        if panic:
            return f"the board's kernel died: {panic[0].strip()}; console: {console}"
        if agent:
            return f"the board gave up: {agent[0].strip()}; console: {console}"
        if status:
            ended = f"by signal {-status}" if status < 0 else f"with status {status}"
            said = (self.folder / "qemu.log").read_text(errors="replace").strip().splitlines()
            return f"QEMU ended {ended}{': ' + said[-1] if said else ''}; console: {console}"
        return f"the board powered off before its job was done; console: {console}"
