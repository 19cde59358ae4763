"""A user's board over ssh: the agent is copied there, runs the cases, and is removed again.

docs/reference/boards-over-ssh.md says what is used on the board, what is never touched, and what
happens when the connection drops. Cases run as on every guest (guest/guest.py): the job on standard
input, the stream on standard output.
"""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from flashbed.base import paths
from flashbed.base.locking import clear
from flashbed.targets.base import PLAIN, Apart, Batch, Program, RunOptions
from flashbed.targets.guest.agent import NoSqlite, agent, agent_with_sqlite, has_statements
from flashbed.targets.guest.architectures import architecture_of
from flashbed.targets.guest.boot import Machine, Stopped
from flashbed.targets.guest.guest import RUN, Guest, run_guest
from flashbed.targets.guest.results import Measuring, failed
from flashbed.targets.ssh.address import Address, AllowedBoard
from flashbed.targets.ssh.connection import Connection, RefusedCommand, explained
from flashbed.targets.ssh.facts import FoundBoard, StrangeRowsError, read_facts, why_not
from flashbed.targets.unavailable import Unavailable

__all__ = ["BoardTarget", "OnBoard"]

PATIENCE_S = 3600.0
_PATIENCE = "FLASHBED_BOARD_PATIENCE_S"
_FOLDERS = ("/tmp", "/run", "/dev/shm", "/var/tmp")
"""Folders for the agent; the first that accepts it is used."""
_SSH_FAILED = 255


@dataclass(frozen=True)
class _Home:
    """The agent's folder on the board."""

    path: str

    @property
    def agent(self) -> str:
        return f"{self.path}/flashbed-agent"


class OnBoard:
    """A connected board: the agent on it, and the facts it reported."""

    def __init__(self, allowed: AllowedBoard, *, sqlite: bool = False) -> None:
        self.erase = allowed.erase
        address = self.address = allowed.address
        self.connection = Connection(address)
        self.architecture = self._architecture()
        self.program = self._program(sqlite)
        self.home, self.facts = self._placed()
        if self.facts.no_directory is not None:
            self.leave()
            raise Unavailable(f"{address}: {self.facts.no_directory}")

    def _architecture(self) -> str:
        """From uname, and the byte order from the shell's ELF header: some machines have two."""
        try:
            said = self.connection.run("uname -m; head -c 6 /proc/self/exe")
        except RefusedCommand as why:
            raise Unavailable(f"{self.address.destination}: uname: {why}") from None
        machine, _, header = said.partition(b"\n")
        name = machine.decode("ascii", "replace").strip()
        little = header[5:6] != b"\2"
        architecture = architecture_of(name, little)
        if architecture is None:
            order = "" if little else ", big endian"
            raise Unavailable(f"{self.address.destination}: no agent for a board of {name}{order}")
        return architecture

    def _program(self, sqlite: bool) -> bytes:
        return agent_with_sqlite(self.architecture) if sqlite else agent(self.architecture)

    def _placed(self) -> tuple[_Home, FoundBoard]:
        """Copies the agent into the first folder in which it can be stored and run."""
        reasons = []
        for folder in _FOLDERS:
            home = _Home(f"{folder}/flashbed-{secrets.token_hex(4)}")
            try:
                return home, self._put(home)
            except RefusedCommand as why:
                reasons.append(f"{folder}: {why.said}")
        shown = "; ".join(reasons)
        raise Unavailable(f"{self.address.destination}: the agent cannot be put there: {shown}")

    def _put(self, home: _Home) -> FoundBoard:
        """Copies the agent. Raises `RefusedCommand` and leaves nothing behind."""
        directory = (
            f" --dir {shlex.quote(self.address.directory)}" if self.address.directory else ""
        )
        put = f"cat >{home.agent} && chmod 700 {home.agent} && {home.agent} board{directory}"
        remote = (
            f"umask 077; mkdir {home.path} && {{ {put} || {{ rm -rf {home.path}; exit 1; }}; }}"
        )
        said = self.connection.run(remote, self.program).decode("utf-8", "replace")
        try:
            return read_facts(said)
        except StrangeRowsError as why:
            self.connection.run(f"rm -rf {home.path}")
            raise RefusedCommand(
                0, f"the agent's facts about the board are unreadable ({why})"
            ) from None

    def put_again(self) -> None:
        """Copies the agent for another job: it removes its folder after one. Raises `Stopped`."""
        try:
            self.connection.run(f"test -x {self.home.agent}")
            return
        except RefusedCommand:
            pass
        except Unavailable as why:
            raise Stopped(str(why)) from None
        try:
            self.facts = self._put(self.home)
        except (RefusedCommand, Unavailable) as why:
            raise Stopped(f"{self.address.destination}: {why}") from None

    def leave(self) -> None:
        """Removes the agent, if no job did."""
        # What cannot be removed is in a folder of memory, which is gone when the board is off.
        with suppress(RefusedCommand, Unavailable):
            self.connection.run(f"rm -rf {self.home.path}")
        self.connection.close()

    def program_command(self) -> list[str]:
        """The client's command line that runs the program of the home's `request`."""
        if self.erase is None:
            raise Unavailable(f"{self.address}: a program needs a partition (--erase)")
        return self.connection.own(
            f"{self.home.agent} program --home {self.home.path}"
            f" --mtd {self.erase.number} --name {shlex.quote(self.erase.name)}"
        )

    def put_file(self, below: str, content: bytes) -> None:
        """Copies a file into the agent's folder. Raises `Unavailable`."""
        path = shlex.quote(f"{self.home.path}/{below}")
        try:
            self.connection.run(f"umask 077; mkdir -p {self.home.path}/put && cat >{path}", content)
        except RefusedCommand as why:
            raise Unavailable(f"{self.address.destination}: {below}: {why}") from None

    def job_command(self) -> list[str]:
        """The client's command line that runs a job."""
        remote = f"{self.home.agent} job --home {self.home.path}"
        if self.erase is not None:
            remote += f" --mtd {self.erase.number} --name {shlex.quote(self.erase.name)}"
        else:
            remote += f" --dir {shlex.quote(self.address.directory or '')}"
        return self.connection.own(remote)


class BoardTarget:
    """A board over ssh. All have the same `name` in tables; the profile says which it is."""

    name = "board"
    software_time = True
    apart = Apart()

    def __init__(
        self, board: AllowedBoard, work_dir: Path | None = None, *, patience_s: float | None = None
    ) -> None:
        given = os.environ.get(_PATIENCE)
        self.allowed = board
        self.address: Address = board.address
        self.work = work_dir or paths.work_folder("board")
        clear(self.work, RUN)  # leftovers of an earlier run, even if nothing is run now
        self.patience_s = patience_s or (float(given) if given else PATIENCE_S)

    def prepare(self, say: Callable[[str], None]) -> None:
        """Connects, and copies the agent to see whether that works. See `Target.prepare`."""
        say(f"connecting to {self.address.destination}")
        OnBoard(self.allowed).leave()

    def run(self, programs: Sequence[Program], options: RunOptions = PLAIN) -> Iterator[Batch]:
        """See `Target.run`. A case for which the board lacks something is not measured."""
        self.work.mkdir(parents=True, exist_ok=True)
        done = 0
        for sqlite in (False, True):
            same = [program for program in programs if has_statements(program) == sqlite]
            if not same:
                continue
            options.progress(f"connecting to {self.address.destination}", done)
            try:
                board = OnBoard(self.allowed, sqlite=sqlite)
            except NoSqlite as why:
                yield failed([program.not_measured(str(why)) for program in same])
                done += len(same)
                continue
            try:
                yield from self._run_on(board, same, options, done)
            finally:
                board.leave()
            done += len(same)

    def _run_on(
        self,
        board: OnBoard,
        programs: Sequence[Program],
        options: RunOptions,
        done: int,
    ) -> Iterator[Batch]:
        refused = []
        able: dict[str, list[Program]] = {}
        for program in programs:
            why = why_not(program, board.facts, self.allowed)
            if why is None:
                able.setdefault(program.stack.board.sha256, []).append(program)
            else:
                refused.append(program.not_measured(why))
        if refused:
            yield failed(refused)
        done += len(refused)
        for same in able.values():
            guest = self._guest(board, same[0])
            yield from run_guest(guest, same, self.work, options, done=done)
            done += len(same)

    def _guest(self, board: OnBoard, first: Program) -> Guest:
        def why_ended(status: int, said: str) -> str:
            if status == _SSH_FAILED:
                return explained(self.address, said)
            lines = [line.strip() for line in said.splitlines() if line.strip()]
            agents = [line for line in lines if line.startswith("flashbed-agent: ")]
            last = (agents or lines or [f"the agent ended with status {status}"])[-1]
            return f"{self.address.destination}: {last.removeprefix('flashbed-agent: ')}"

        machine = Machine(
            name=f"the board {self.address.destination}",
            process="ssh",
            command=board.job_command(),
            patience_s=self.patience_s,
            patience_variable=_PATIENCE,
            by_pipes=True,
            ready=board.put_again,
            why_ended=why_ended,
        )
        return Guest(
            machine=machine,
            board=first.stack.board,
            kernel=first.stack.kernel.name,
            measuring=Measuring(software_time=True),
        )
