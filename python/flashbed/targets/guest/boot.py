"""One boot of a guest: a child process in a folder of its own, watched through its files.

The agent reads the folder's file `job` and writes `stream` (agent/base/channel.c), or uses the
process's standard input and output. The console is `console.log`; `said.log` has the process's own
messages. All names are relative to the folder, so that no path of the host reaches the guest.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep

from flashbed.targets.guest.children import GroupKeeper, dies_with_us
from flashbed.targets.unavailable import Unavailable

__all__ = ["Boot", "Machine", "Stopped"]

_POLL_S = 0.005
_CHUNK_BYTES = 1 << 20
_PANIC = re.compile(r"Kernel panic[^\n]*|Internal error:[^\n]*|BUG: [^\n]*")


class Stopped(Exception):
    """The guest stopped before its job was done; the message says why in one line."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """How a guest is started, and its name in messages."""

    name: str
    """The guest's name with its article, as in "the board hung"."""
    process: str
    """The host's process, as in "QEMU ended by signal 9"."""
    command: Sequence[str]
    patience_s: float
    """Seconds of wall time without a new row until it counts as hung."""
    patience_variable: str
    """The environment variable that overrides them."""
    console_is_output: bool = False
    """Whether the process writes the console to its standard output."""
    one_processor: bool = False
    """Whether to pin it and its children to one of the host's processors."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables; `{folder}` in a value becomes the boot's folder."""
    by_pipes: bool = False
    """Whether job and stream are the process's standard input and output."""
    has_children: bool = False
    """Whether the process has children that do not end with it."""
    ready: Callable[[], None] | None = None
    """Called before each boot. Raises `Stopped`."""
    why_ended: Callable[[int, str], str] | None = None
    """Explains the end of a process without a console, from its status and messages."""


def _keep_on_one_processor(pid: int, number: int) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    with suppress(OSError):  # it has ended, or the host forbids it; that only costs speed
        os.sched_setaffinity(pid, {allowed[number % len(allowed)]})


class Boot:
    """A running guest. Use it as a context; leaving it ends the process."""

    def __init__(
        self, folder: Path, machine: Machine, job: str, processor: int | None = None
    ) -> None:
        self.folder = folder
        self.machine = machine
        folder.mkdir(parents=True)
        (folder / "job").write_text(job, encoding="ascii", newline="\n")
        try:
            self.process = self._started()
        except OSError as error:
            raise Unavailable(f"{machine.command[0]} does not start: {error}") from None
        self._keeper = GroupKeeper(self.process.pid) if machine.has_children else None
        if machine.one_processor:
            own = self.process.pid if processor is None else processor
            _keep_on_one_processor(self.process.pid, own)

    def _started(self) -> subprocess.Popen[bytes]:
        machine, folder = self.machine, self.folder
        console = folder / "console.log"
        output = console if machine.console_is_output else self._said
        source, stream = Path(os.devnull), output
        if machine.by_pipes:
            source, stream = folder / "job", folder / "stream"
        with source.open("rb") as given, stream.open("wb") as out, output.open("ab") as said:
            return subprocess.Popen(
                # On SIGTERM user-mode Linux kills its traced processes; the keeper ends the rest.
                [*dies_with_us("TERM" if machine.has_children else "KILL"), *machine.command],
                cwd=folder,
                stdin=given,
                stdout=out,
                stderr=said if machine.by_pipes else subprocess.STDOUT,
                start_new_session=True,
                env=self._environment(),
            )

    def _environment(self) -> dict[str, str]:
        given = self.machine.environment.items()
        folder = str(self.folder.resolve())
        return {**os.environ, **{name: value.replace("{folder}", folder) for name, value in given}}

    @property
    def _said(self) -> Path:
        return self.folder / "said.log"

    def __enter__(self) -> Boot:
        return self

    def __exit__(self, *_: object) -> None:
        if self._keeper:
            self._keeper.dismiss()
        # Ends the children too: user-mode Linux has a process for each program it runs.
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stream(self) -> Iterator[bytes]:
        """The stream's bytes as they arrive, until the process ends.

        Raises `Stopped` if nothing arrived for `patience_s`.
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
            elif monotonic() - heard > self.machine.patience_s:
                raise Stopped(
                    f"{self.machine.name} hung: no progress in {self.machine.patience_s:g} s"
                    f" ({self.machine.patience_variable}); console: {self.folder / 'console.log'}"
                )
            else:
                sleep(_POLL_S)

    def why_ended(self) -> str:
        """Why the process ended before its job was done, from its status and the logs."""
        if self.machine.why_ended is not None:
            words = self._said.read_text(encoding="utf-8", errors="replace")
            return self.machine.why_ended(self.process.returncode, words)
        console = self.folder / "console.log"
        text = console.read_text(errors="replace") if console.exists() else ""
        panic = _PANIC.search(text)
        agent = re.findall(r"flashbed-agent: [^\n\r]*", text)
        driver = re.findall(r"flashbed_nand: [^\n\r]*", text)
        status = self.process.returncode
        name = self.machine.name
        if panic:
            return f"{name}'s kernel died: {panic[0].strip()}; console: {console}"
        if agent:
            why = "; ".join(lines[0].strip() for lines in (agent, driver) if lines)
            return f"{name} gave up: {why}; console: {console}"
        if status:
            ended = f"by signal {-status}" if status < 0 else f"with status {status}"
            said = self._said if self._said.exists() else console
            last = said.read_text(errors="replace").strip().splitlines()[-1:]
            words = f"{self.machine.process} ended {ended}{': ' + last[0] if last else ''}"
            return f"{words}; console: {console}"
        return f"{name} powered off before its job was done; console: {console}"
