"""A request for the agent: the command, the files that go with it, the program's environment.

Everything is checked here, before a kernel boots. The agent reads `text` (agent/host/request.c has
the format).
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from flashbed.base.errors import InputError
from flashbed.stack.profiles import Board
from flashbed.stack.stack import Stack
from flashbed.targets.exec.folders import AT, COVERS, KERNELS, USUAL_PATH, at
from flashbed.targets.exec.software import FREE, Costs
from flashbed.targets.exec.sysroot import Sysroot
from flashbed.targets.guest.flash_dump import Dump
from flashbed.targets.guest.layout_images import NO_IMAGES, Images
from flashbed.targets.guest.layout_images import lines as layout_lines

__all__ = [
    "PATH_BYTES_MAX",
    "ExecRequest",
    "Put",
    "environment",
    "find",
    "puts_of",
]

PATH_BYTES_MAX = 1023
"""MAX_PATH_BYTES of agent/base/base.h."""
PUTS_MAX = 100_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = frozenset(range(0x21, 0x7F)) - {ord("%")}


@dataclass(frozen=True)
class Put:
    """A file, folder or link that is put onto the flash before the program begins."""

    kind: str
    """`file`, `folder` or `link`."""
    mode: int
    path: str
    """Its path below the folder on flash."""
    source: str
    """The host's file, or the target of a link; empty for a folder."""


@dataclass(frozen=True, kw_only=True)
class ExecRequest:
    """One program on one stack."""

    stack: Stack
    words: Sequence[str]
    program: str
    """The path to execute, as the program sees it."""
    variables: Mapping[str, str]
    puts: Sequence[Put] = ()
    images: Images = NO_IMAGES
    """Of the volumes of the stack's layout."""
    dump: Dump | None = None
    """What the flash holds at first; None for a new file system."""
    memory_mib: int | None = None
    """Memory of the guest; None for the board's."""
    patience_s: float | None = 600.0
    """Real seconds that it may run; None for no limit, where a user is at a terminal."""
    costs: Costs = FREE
    until_s: float | None = None
    """Virtual seconds after which it gets SIGTERM."""
    keep: Path | None = None
    """A folder for what is left on the flash."""
    terminal: bool = False
    """Whether the program has the user's terminal."""
    shell: str | None = None
    """A shell that is opened on the terminal afterwards."""
    where: Literal["sim", "uml", "emulator", "board"] = "uml"
    address: str = ""
    """Where it runs; `board` is one over ssh."""
    symbols: bool = False
    """Boots the emulated board only to read its kernel's symbols."""
    home: str = ""
    """The agent's folder on a board."""
    record: Path | None = None
    """A file for the recording of the program."""
    contents: bool = False
    """Whether the recording keeps the bytes written."""
    sysctls: Sequence[tuple[str, str]] = ()
    """Settings of the kernel besides the stack's."""
    spin_s: float | None = None
    """Seconds that a process of it may compute without a system call; None for no limit."""
    changes: Sequence[tuple[str, str]] = ()
    """What was chosen for this stack: axes and sysctls, with their values."""
    boot: Literal["", "clean", "unclean"] = ""
    """How the machine is switched off and booted again once the program has ended."""
    cuts: int = 0
    """Instead of one boot, a boot after so many power cuts while the program runs."""
    reads: Sequence[str] = ()
    """Files on flash that are read after each boot."""
    sysroot: Sysroot | None = None
    """The programs of the emulated board."""
    gdb: int | None = None
    """A port on which the emulated board waits for a debugger."""
    kernel_release: str = ""
    """The kernel of a board over ssh, in place of the stack's."""

    @property
    def name(self) -> str:
        """What it is called: its command, or a boot without one."""
        return self.words[0] if self.words else "boot"

    @property
    def board(self) -> Board:
        """The stack's board."""
        return self.stack.board

    @property
    def fs(self) -> str:
        """The stack's file system."""
        return self.stack.fs

    @property
    def kernel(self) -> str:
        """The kernel that runs it: its series, or a board's release."""
        return self.kernel_release or self.stack.kernel.name

    def source(self, number: int) -> str:
        """The path at which the agent finds a file that it puts onto the flash."""
        if self.where == "uml":
            return self.puts[number].source
        return f"{self.home}/put/{number}"

    @property
    def memory(self) -> int:
        """Memory of the machine in MiB."""
        return self.memory_mib or self.board.board.ram_mib

    @property
    def put_bytes(self) -> int:
        """Bytes of the files that are on the flash before the program begins."""
        sizes = 0
        for put in self.puts:
            if put.kind == "file":
                with suppress(OSError):  # it was there when it was checked
                    sizes += Path(put.source).stat().st_size
        return sizes

    def _flash(self) -> list[str]:
        """What is made on the flash first, as the agent reads it."""
        if self.dump is None:
            return layout_lines(self.stack, self.images)
        place = _field(self.dump.place(copied=self.where == "emulator"))
        return self.dump.lines(place, self.stack.layout)

    def text(self) -> str:
        """The request as the agent reads it."""
        user = f"user {os.getuid()} {os.getgid()} {' '.join(map(str, sorted(os.getgroups())))}"
        lines = [
            "flashbed-program 1",
            f"fs {_field(self.stack.mounted)}",
            f"at {_field(at() if self.where == 'uml' else AT)}",
            *([f"program {_field(self.program)}"] if self.program else ()),
            user.rstrip() if self.dump is None else self.dump.user,
            f"memory {self.memory << 19}",
            *(f"cover {folder}" for folder in COVERS),
        ]
        lines += self._flash()
        for number, put in enumerate(self.puts):
            source = ""
            if put.kind != "folder":
                source = self.source(number) if put.kind == "file" else put.source
                source = f" {_field(source)}"
            lines.append(f"{put.kind} {put.mode:o} {_field(put.path)}{source}")
        if self.stack.read_ahead_kib is not None:
            lines.append(f"read_ahead {self.stack.read_ahead_kib}")
        sysctls = (*self.stack.vm.sysctls, *self.sysctls)
        lines += (f"sysctl {name} {value}" for name, value in sysctls)
        if self.until_s is not None:
            lines.append(f"until {round(self.until_s * 1e9)}")
        lines += (
            name
            for name, given in (
                ("keep yes", self.keep),
                ("record yes", self.record),
                ("terminal yes", self.terminal),
                ("symbols yes", self.symbols),
            )
            if given
        )
        if self.boot:
            lines.append(f"boot {self.boot}")
        if self.cuts:
            lines.append(f"cuts {self.cuts}")
        lines += (f"read {_field(path)}" for path in self.reads)
        if self.shell is not None:
            lines.append(f"shell {_field(self.shell)}")
        lines += (f"cost {cost.name} {cost.ns} {cost.byte_ps}" for cost in self.costs.kinds)
        lines += (f"arg {_field(word)}" for word in self.words)
        lines += (f"env {_field(f'{key}={value}')}" for key, value in self.variables.items())
        return "\n".join([*lines, "run", ""])


def _field(text: str) -> str:
    """Writes bytes other than visible ASCII, and %, as %XX."""
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in os.fsencode(text))


def environment(given: Sequence[str], *, path: str | None = None) -> dict[str, str]:
    """The program's environment: a few variables, and those of `--env`. Raises `InputError`.

    `path` is PATH on a machine other than this one.
    """
    variables = {
        "PATH": path or os.environ.get("PATH") or USUAL_PATH,
        "LANG": "C.UTF-8",
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
    }
    if "TERM" in os.environ:
        variables["TERM"] = os.environ["TERM"]
    for word in given:
        name, equals, value = word.partition("=")
        if not _NAME.fullmatch(name):
            raise InputError(f"--env {word}: NAME or NAME=VALUE")
        if not equals and name not in os.environ:
            raise InputError(f"--env {name}: no such variable here; NAME=VALUE sets one")
        variables[name] = value if equals else os.environ[name]
    return variables


def find(word: str, search: str, puts: Sequence[Put]) -> str:
    """The path of a command as the program will see it. Raises `InputError`.

    A name is looked up in the folders of `search`. A relative path is below the folder on flash if
    `--put` put something there; otherwise it is relative to the user's working directory.
    """
    if not word:
        raise InputError("the command is empty")
    if "/" not in word:
        found = shutil.which(word, path=search)
        if found is None:
            raise InputError(f"{word}: no such command")
        path = Path(found)
    else:
        below = os.path.normpath(word)
        for put in puts:
            if put.path == below:
                _executable(put, word)
                return f"{at()}/{below}"
        path = Path(word)
    path = path.absolute()
    if not path.is_file():
        raise InputError(f"{word}: {'is not a program' if path.exists() else 'no such command'}")
    if not os.access(path, os.X_OK):
        raise InputError(f"{word}: not executable")
    for place in (path, path.resolve()):
        hidden = _hidden(place)
        if hidden:
            named = "is" if str(place) == word else f"{place} is"
            raise InputError(
                f"{word}: {named} in {hidden}, where the program sees another folder; --put copies"
                " it onto the flash"
            )
    _check_interpreter(word, path)
    return str(path)


def _check_interpreter(word: str, path: Path) -> None:
    """Refuses a script whose interpreter the program does not see: its ENOENT names neither."""
    try:
        with path.open("rb") as file:
            first = os.fsdecode(file.readline(PATH_BYTES_MAX))
    except OSError:
        return
    interpreter = Path((first.removeprefix("#!").split() or [""])[0])
    hidden = _hidden(interpreter) if first.startswith("#!") else None
    if hidden:
        raise InputError(
            f"{word}: its interpreter {interpreter} is in {hidden}, where the program sees another"
            " folder"
        )


def _executable(put: Put, word: str) -> None:
    if put.kind == "folder":
        raise InputError(f"{word}: is not a program")
    if put.kind == "file" and not put.mode & 0o111:
        raise InputError(f"{word}: not executable")


def _hidden(path: Path) -> str | None:
    """The folder around `path` that differs between the host and what the program sees."""
    for folder in (*COVERS, *KERNELS, at()):
        if path.is_relative_to(folder):
            return folder
    return None


def puts_of(given: Sequence[Path], board: Board) -> list[Put]:
    """Files, and folders with all they hold, sorted by name. Raises `InputError`."""
    puts: list[Put] = []
    names = set()
    bytes_ = 0
    for path in given:
        name = path.name or path.resolve().name
        if name in ("", ".."):
            name = path.resolve().name
        if not name:
            raise InputError(f"--put {path}: the root folder holds too many files")
        if name in names:
            raise InputError(f"--put {path}: {name} is already taken by another --put")
        names.add(name)
        for put, size in _walked(path, name):
            puts.append(put)
            bytes_ += size
            if len(puts) > PUTS_MAX:
                raise InputError(f"--put {path}: more than {PUTS_MAX:,} files")
    space_bytes = board.partition_bytes
    if bytes_ > space_bytes:
        raise InputError(
            f"--put: {bytes_ >> 20:,} MiB of files do not fit a partition of"
            f" {space_bytes >> 20:,} MiB"
        )
    return puts


def _walked(path: Path, name: str) -> Iterator[tuple[Put, int]]:
    """The file or folder and all it holds, each with its size."""
    try:
        about = path.lstat()
        mode = stat.S_IMODE(about.st_mode) & 0o777
        if len(os.fsencode(name)) > PATH_BYTES_MAX:
            raise InputError(f"--put {path}: its path is too long")
        if stat.S_ISLNK(about.st_mode):
            yield Put("link", 0, name, str(path.readlink())), 0
        elif stat.S_ISREG(about.st_mode):
            if not os.access(path, os.R_OK):
                raise InputError(f"--put {path}: cannot be read")
            source = str(path.absolute())
            if len(os.fsencode(source)) > PATH_BYTES_MAX:
                raise InputError(f"--put {path}: its path is too long")
            yield Put("file", mode, name, source), about.st_size
        elif stat.S_ISDIR(about.st_mode):
            yield Put("folder", mode, name, ""), 0
            for inner in sorted(path.iterdir()):
                yield from _walked(inner, f"{name}/{inner.name}")
        else:
            raise InputError(f"--put {path}: neither a file, a folder nor a link")
    except OSError as why:
        raise InputError(f"--put {path}: {why.strerror}") from None
