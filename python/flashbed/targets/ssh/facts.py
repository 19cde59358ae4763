"""A board's facts, `flashbed-board 1`, and which cases it cannot run.

A case for which the board lacks something is not measured, with the reason. Everything that can be
known before the first case is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from flashbed.base import paths
from flashbed.stack.changes import AS_BOOTED
from flashbed.stack.conditions import NONE
from flashbed.stack.file_systems import RAW
from flashbed.stack.nearest_kernel import nearest
from flashbed.stack.profiles import USUAL_COMPRESSOR, Board
from flashbed.targets.base import Program
from flashbed.targets.ssh.address import AllowedBoard

__all__ = [
    "HEADER",
    "FoundBoard",
    "Mounted",
    "MtdPartition",
    "StrangeRowsError",
    "other_flash",
    "read_facts",
    "why_no_program",
    "why_not",
]

HEADER = "flashbed-board 1"
_FACTS = ("kernel", "machine", "word_bits", "user", "ram_kib", "free_kib")
_ABILITIES = ("kprobes", "drop_caches", "mount")


@dataclass(frozen=True, kw_only=True)
class MtdPartition:
    """A partition, in bytes; `refused` says why it must not be erased, None if it may be.

    `offset_bytes` is its place on the chip, None before Linux 4.1.
    """

    number: int
    page_bytes: int
    oob_bytes: int
    block_bytes: int
    size_bytes: int
    offset_bytes: int | None
    kind: str
    name: str
    refused: str | None = None


@dataclass(frozen=True)
class Mounted:
    """A directory's file system, partition and read-ahead window; None for unknown."""

    fs: str
    mtd: int | None
    read_ahead_kib: int | None


@dataclass(kw_only=True)
class FoundBoard:
    """What the agent found. `can` and `file_systems` hold the reason if not, else None."""

    facts: dict[str, str] = field(default_factory=dict)
    can: dict[str, str | None] = field(default_factory=dict)
    file_systems: dict[str, str | None] = field(default_factory=dict)
    partitions: dict[int, MtdPartition] = field(default_factory=dict)
    mounted: Mounted | None = None
    no_directory: str | None = None
    """Why the directory cannot be used."""

    @property
    def kernel(self) -> str:
        """The kernel's release."""
        return self.facts["kernel"]


def _known(text: str) -> int | None:
    return None if text == "-" else int(text)


class StrangeRowsError(Exception):
    """The agent's output is no `flashbed-board 1`."""


def read_facts(text: str) -> FoundBoard:
    """Parses the rows of `flashbed-agent board`. Raises `StrangeRowsError`."""
    lines = text.splitlines()
    strange = next((line for line in lines if not line.isprintable()), None)
    if strange is not None:
        raise StrangeRowsError(f"no row of {HEADER}: {strange[:80]!r}")
    if not lines or lines[0] != HEADER or lines[-1] != "end":
        raise StrangeRowsError(f"not a whole {HEADER}")
    board = FoundBoard()
    try:
        for line in lines[1:-1]:
            _take(line, board)
    except (ValueError, LookupError):
        raise StrangeRowsError(f"no row of {HEADER}: {line[:80]!r}") from None
    missing = [name for name in _FACTS if name not in board.facts]
    missing += [name for name in _ABILITIES if name not in board.can]
    if missing:
        raise StrangeRowsError(f"no row about {missing[0]}")
    return board


def _take(line: str, board: FoundBoard) -> None:
    """Takes one row. Raises `ValueError` or `LookupError`."""
    word, *rest = line.split(" ")
    why = None if rest[1:2] == ["yes"] else " ".join(rest[2:])
    if word == "fact":
        board.facts[rest[0]] = " ".join(rest[1:])
    elif word == "can":
        board.can[rest[0]] = why
    elif word == "fs":
        board.file_systems[rest[0]] = why
    elif word == "mtd":
        number, page, oob, block, size = map(int, rest[:5])
        board.partitions[number] = MtdPartition(
            number=number,
            page_bytes=page,
            oob_bytes=oob,
            block_bytes=block,
            size_bytes=size,
            offset_bytes=_known(rest[5]),
            kind=rest[6],
            name=rest[7],
        )
    elif word == "use":
        before = board.partitions[int(rest[0])]
        board.partitions[before.number] = replace(before, refused=why)
    elif word == "dir" and rest[0] == "-":
        board.no_directory = " ".join(rest[3:])
    elif word == "dir":
        board.mounted = Mounted(rest[0], _known(rest[1]), _known(rest[2]))
    else:
        raise ValueError(line)


def why_not(program: Program, board: FoundBoard, allowed: AllowedBoard) -> str | None:
    """Why a program cannot be measured on the board; None if it can be tried."""
    return (
        _other_kernel(program, board)
        or other_flash(program.stack.board, board, allowed)
        or _other_file_system(program.stack.fs, board, allowed)
        or _asks_too_much(program, allowed)
        or (program.dump and "a recording on a dump: no board's flash is overwritten with it")
        or _lacking(program, board, allowed)
    )


def why_no_program(profile: Board, fs: str, board: FoundBoard, allowed: AllowedBoard) -> str | None:
    """Why no program can run on a fresh file system of the board; None if it can be tried."""
    lacking = board.can["mount"] and f"erasing and mounting: {board.can['mount']}"
    return lacking or other_flash(profile, board, allowed) or _other_file_system(fs, board, allowed)


def _other_kernel(program: Program, board: FoundBoard) -> str | None:
    neighbours, wanted = nearest(board.kernel), program.stack.kernel.name
    near = neighbours.names
    if wanted in (*near, f"{neighbours.before}-{board.facts['word_bits']}bit"):
        return None
    how = f"; --set kernel={' or '.join(near)} is nearest" if near else ""
    return f"kernel {wanted}: the board has Linux {board.kernel}{how}"


def other_flash(profile: Board, board: FoundBoard, allowed: AllowedBoard) -> str | None:
    """How the flash differs from the profile; None if it does not."""
    mounted = board.mounted
    number = allowed.erase.number if allowed.erase else mounted.mtd if mounted else None
    there = None if number is None else board.partitions.get(number)
    if there is None:
        return f"the directory {allowed.address.directory} is on no MTD partition"
    chip, name = profile.chip, paths.shown(profile.path)
    block_bytes = chip.page_bytes * chip.pages_per_block
    for key, wanted, found in (
        ("chip.page_bytes", chip.page_bytes, there.page_bytes),
        ("chip.oob_bytes", chip.oob_bytes, there.oob_bytes),
        ("chip.pages_per_block", chip.pages_per_block, there.block_bytes // there.page_bytes),
        ("partition.blocks", profile.partition.blocks, there.size_bytes // block_bytes),
    ):
        if wanted != found:
            return f"{name}: {key}: {wanted}, mtd{number} of the board has {found}"
    return None


def _other_file_system(fs: str, board: FoundBoard, allowed: AllowedBoard) -> str | None:
    mounted = board.mounted
    if allowed.address.directory is not None and mounted is not None:
        if fs != mounted.fs:
            return f"fs {fs}: {allowed.address.directory} of the board is {mounted.fs}"
        return None
    if fs in RAW:
        return None
    why = board.file_systems.get(fs, "the agent knows no such file system")
    return why and f"fs {fs}: {why}"


def _asks_too_much(program: Program, allowed: AllowedBoard) -> str | None:
    """What a program needs that no real board can do."""
    if program.record_changes or program.cuts or program.chip_commands:
        return "power cuts: a real chip does not record its changes"
    if program.stack.erases or program.stack.faults != NONE:
        return "wear and faults: a real chip cannot be set up for them"
    if program.stack.layout is not None:
        name = program.stack.layout.name
        return f"layout {name}: a board's flash is laid out as it is; --on sim and uml have layouts"
    if program.stack.only_in_user_mode is not None:
        return program.stack.only_in_user_mode
    if program.stack.board.nor is not None:
        return "SPI-NOR: real boards are measured on NAND; sim, uml and emulator have NOR"
    if program.stack.vm != AS_BOOTED:
        return "vm: a board keeps the settings of its kernel; sysctl(8) on the board changes them"
    if program.stack.fs == "mtd-driver":
        return "mtd-driver: a real board has no file for its driver"
    if allowed.address.directory is None:
        return None
    if program.filled:
        return f"state: {allowed.address.directory} is used in the state that it has"
    if program.stack.mount_options:
        return f"mount: {allowed.address.directory} keeps its mount options"
    if program.stack.compressor != USUAL_COMPRESSOR:
        return f"compressor: {allowed.address.directory} keeps its mount options"
    if "\nremount" in program.prepare or "\nremount" in program.body:
        return f"remount: {allowed.address.directory} is never unmounted"
    return None


def _lacking(program: Program, board: FoundBoard, allowed: AllowedBoard) -> str | None:
    """What this board's kernel or user does not allow."""
    if allowed.erase is not None and board.can["mount"]:
        return f"erasing and mounting: {board.can['mount']}"
    drops = "\ndrop_caches" in program.prepare or "\ndrop_caches" in program.body
    if drops and board.can["drop_caches"]:
        return f"drop_caches: {board.can['drop_caches']}"
    if program.tracers and board.can["kprobes"]:
        return f"tracing: {board.can['kprobes']}"
    mounted = board.mounted
    if mounted is None or program.stack.read_ahead_kib in (None, mounted.read_ahead_kib):
        return None
    if mounted.read_ahead_kib is not None and board.facts["user"] != "root":
        now = mounted.read_ahead_kib
        return f"read_ahead_kib: it is {now} on the board, and changing it needs root"
    return None
