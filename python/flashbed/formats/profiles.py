"""Board and kernel profiles: facts with sources, from boards/*.toml and boards/kernels/*.toml.

A profile is complete or refused. Every physical quantity has a unit in its name and no default, and
every table names the source of its numbers. The simulator gets the numbers as JSON (`sim_json`,
read by sim/src/profile.rs, which says what each does).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import Field, PrivateAttr, model_validator

from flashbed import paths
from flashbed.errors import InputError
from flashbed.formats.bounds import (
    PAGES_MAX,
    Blocks,
    Erases,
    Hertz,
    Kib,
    Mib,
    Ns,
    OobBytes,
    PageBytes,
    PagesPerBlock,
    RaPages,
)
from flashbed.formats.energy import Energy
from flashbed.formats.names import Name, Text, is_name
from flashbed.formats.prices import CompressorCosts, Software
from flashbed.formats.toml import FromFile, Strict, read_model, read_toml
from flashbed.paths import sha256_of

__all__ = [
    "COMPR_OPTIONS",
    "USUAL_COMPRESSOR",
    "Board",
    "Kernel",
    "ProfileError",
    "board_names",
    "board_path",
    "kernel_names",
    "load_board",
    "load_kernel",
]

FILE_SYSTEMS = ("jffs2", "yaffs2", "ubifs")
CACHE_PAGE_KIB = 4
TICK_NS = 4_000_000
"""CONFIG_HZ=250 of kernel/uml/config."""
HOST_POINTER_BYTES = 8

HAMMING_STEP_BYTES = (256, 512)
HAMMING_STRENGTH_BITS = 1
HAMMING_CODE_BYTES = 3
HAMMING_ROOM_BYTES = {8: 3, 16: 6, 64: 24, 128: 48}
"""OOB size -> bytes that the kernel keeps for Hamming codes (drivers/mtd/nand/ecc.c)."""


USUAL_COMPRESSOR = "default"
"""Mounts JFFS2 and UBIFS without the option `compr=`."""

COMPR_OPTIONS = {"jffs2": ("none", "lzo", "zlib"), "ubifs": ("none", "lzo", "zlib", "zstd")}
"""All values of `compr=`, over all kernels."""


class ProfileError(InputError):
    """A profile that cannot be used; the message names the file and the key."""


def _power_of_two(name: str, value: int) -> None:
    if value & (value - 1):
        raise ValueError(f"{name} = {value} is not a power of two")


def _without_sources(profile: Strict, names: set[str]) -> str:
    """These tables as JSON, without `source`."""
    tables = profile.model_dump(include=names)
    return json.dumps(
        {
            name: {key: value for key, value in table.items() if key != "source"}
            for name, table in tables.items()
        }
    )


class Chip(Strict):
    """`[chip]`: geometry and the data sheet's times, array and bus separately."""

    source: Text
    page_bytes: PageBytes
    oob_bytes: OobBytes
    pages_per_block: PagesPerBlock
    blocks: Blocks
    read_array_ns: Ns
    program_array_ns: Ns
    erase_array_ns: Ns
    transfer: Literal["bytes", "page"]
    bus_read_ns: Ns
    bus_program_ns: Ns
    column_change_ns: Ns

    @model_validator(mode="after")
    def _possible(self) -> Self:
        _power_of_two("page_bytes", self.page_bytes)
        _power_of_two("pages_per_block", self.pages_per_block)
        pages = self.pages_per_block * self.blocks
        if pages > PAGES_MAX:
            raise ValueError(f"blocks: {pages:,} pages, {PAGES_MAX:,} at most")
        if self.oob_bytes > self.page_bytes:
            raise ValueError(f"oob_bytes = {self.oob_bytes} is more than a page")
        if min(self.read_array_ns, self.program_array_ns, self.erase_array_ns) == 0:
            raise ValueError("read_array_ns, program_array_ns and erase_array_ns cannot be 0")
        return self


class Ecc(Strict):
    """`[ecc]`: who corrects errors, over how many bytes, and how many bits.

    `none` corrects nothing: the page is its only step (nand_scan_tail), with strength 0.
    """

    source: Text
    kind: Literal["hardware-page", "software-subpage", "none"]
    step_bytes: PageBytes
    strength_bits: Annotated[int, Field(ge=0, le=1_024)]

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if (self.strength_bits == 0) != (self.kind == "none"):
            raise ValueError(
                f"strength_bits = {self.strength_bits} with kind = {self.kind!r}: it is 0 with"
                " 'none' and with nothing else"
            )
        if self.kind == "software-subpage":
            if self.strength_bits != HAMMING_STRENGTH_BITS:
                raise ValueError("strength_bits: the kernel's software ECC is a Hamming code, 1")
            if self.step_bytes not in HAMMING_STEP_BYTES:
                raise ValueError("step_bytes: the kernel's Hamming code has steps of 256 or 512")
        return self


class Partition(Strict):
    """`[partition]`: the blocks of the file system."""

    source: Text
    first_block: Annotated[int, Field(ge=0, lt=65_536)]
    blocks: Blocks


class EnduranceFacts(Strict):
    """`[endurance]`: how often a block may be erased, by the chip's data sheet."""

    source: Text
    cycles: Erases


class Emulator(Strict):
    """`[emulator]`: the options of QEMU and nandsim that make the emulated board this board.

    `nandsim` is missing if nandsim cannot imitate the chip.
    """

    source: Text
    machine: Text
    cpu: Text
    icount_shift: Annotated[int, Field(ge=0, le=10)]
    nandsim: Text | None = None


class BoardFacts(Strict):
    """`[board]`: what the board is."""

    name: Name
    title: Text
    ram_mib: Mib
    source: Text


class Memory(Strict):
    """`[memory]`: limits of the page cache."""

    source: Text
    free_kib: Kib


class Board(FromFile):
    """A board: its chip, its driver's ECC, the partition, the costs of its CPU."""

    board: BoardFacts
    chip: Chip
    ecc: Ecc
    partition: Partition
    memory: Memory
    software: Software
    endurance: EnduranceFacts | None = None
    energy: Energy | None = None
    emulator: Emulator | None = None
    _changes: dict[str, dict[str, int]] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        end = self.partition.first_block + self.partition.blocks
        if end > self.chip.blocks:
            raise ValueError(
                f"partition.blocks: the partition ends at block {end}, the chip at "
                f"{self.chip.blocks} (chip.blocks)"
            )
        if self.chip.page_bytes % self.ecc.step_bytes:
            raise ValueError(
                f"ecc.step_bytes: a page of {self.chip.page_bytes} bytes is not whole steps of "
                f"{self.ecc.step_bytes}"
            )
        self._check_ecc()
        return self

    def _check_ecc(self) -> None:
        """Checks what drivers/mtd/nand/raw/nand_base.c checks when it scans the chip."""
        page_bytes, oob_bytes = self.chip.page_bytes, self.chip.oob_bytes
        if self.ecc.kind == "none" and self.ecc.step_bytes != page_bytes:
            raise ValueError(
                f"ecc.step_bytes: without ECC a page of {page_bytes} bytes is the only step"
            )
        if self.ecc.kind == "software-subpage":
            code_bytes = page_bytes // self.ecc.step_bytes * HAMMING_CODE_BYTES
            room_bytes = HAMMING_ROOM_BYTES.get(oob_bytes, 0)
            if code_bytes > room_bytes:
                raise ValueError(
                    f"chip.oob_bytes: {oob_bytes} bytes have room for {room_bytes} of software"
                    f" ECC, a page has {code_bytes}"
                )

    @property
    def partition_bytes(self) -> int:
        """Bytes of the partition's pages, without spare areas."""
        return self.partition.blocks * self.chip.pages_per_block * self.chip.page_bytes

    @property
    def name(self) -> str:
        """The name that options and experiments use."""
        return self.board.name

    @cached_property
    def sha256(self) -> str:
        """Hash of its file and of the changes to it."""
        own = sha256_of(self.path)
        changed = f"{own}\n{json.dumps(self._changes)}".encode()
        return hashlib.sha256(changed).hexdigest() if self._changes else own

    def changed(self, changes: Mapping[str, Mapping[str, int]]) -> Board:
        """The board with other values in its profile's tables. Raises `ProfileError`.

        What was measured with the original chip does not apply: the copy has no energy constants
        and no nandsim chip.
        """
        other = {table: dict(values) for table, values in changes.items() if values}
        if not other:
            return self
        values = self.model_dump(exclude={"energy"})
        for table, others in other.items():
            values[table] |= others
        if "chip" in other and values["emulator"]:
            values["emulator"]["nandsim"] = None
        board = read_model(Board, values, self.path, ProfileError)
        board._path, board._changes = self.path, other
        return board

    @cached_property
    def sim_json(self) -> str:
        """The numbers for the simulator, from chip to software, without sources."""
        return self.sim_json_with(USUAL_COMPRESSOR)

    def sim_json_with(self, compressor: str) -> str:
        """`sim_json` for file systems mounted with `compr=`."""
        text = _without_sources(self, {"chip", "ecc", "partition", "memory", "software"})
        tables = json.loads(text)
        of_compressors = tables["software"]["compressors"]
        for name in of_compressors.pop("included"):
            key = {"zlib": "deflate"}.get(name, name.replace("-", "_").replace(".", "_"))
            if compressor == USUAL_COMPRESSOR and of_compressors[key] is None:
                of_compressors[key] = json.loads(_free(CompressorCosts).model_dump_json())[key]
        return json.dumps(tables)

    def without_software(self) -> Board:
        """The board as user-mode Linux has it.

        Code takes no time except the agent's two readings of the clock, the scheduler's clock
        counts ticks, and pointers have 64 bits.
        """
        nothing: dict[str, Any] = dict.fromkeys(Software.model_fields, 0)
        nothing |= {"source": "kernel/uml", "syscall_ns": 512}
        nothing |= {"compressors": _free(CompressorCosts)}
        nothing |= {"sched_clock_ns": TICK_NS, "pointer_bytes": HOST_POINTER_BYTES}
        return self.model_copy(update={"software": self.software.model_copy(update=nothing)})


_Costs = TypeVar("_Costs", bound=Strict)


def _free(model: type[_Costs]) -> _Costs:
    """Prices of 0."""
    values: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if not field.is_required() and field.default == ():
            continue
        tables = [of for of in (field.annotation, *get_args(field.annotation)) if _is_table(of)]
        values[name] = _free(tables[0]) if tables else 0
    return model(**values)


def _is_table(given: Any) -> bool:
    return isinstance(given, type) and issubclass(given, Strict)


Rcu = Literal["tiny", "tree", "softirqs"]


class Configuration(Strict):
    """How a kernel is configured for its machine, as far as tasks and counters depend on it.

    `smp` is CONFIG_SMP, `task_groups` CONFIG_FAIR_GROUP_SCHED. An idle processor sleeps for at most
    `longest_idle_ms`; with `first_idle_tick` it still takes the first tick after becoming idle.
    """

    source: Text
    smp: bool
    rcu: Rcu
    task_groups: bool
    first_idle_tick: bool
    longest_idle_ms: Annotated[int, Field(gt=0, le=1_000_000)]


Xattr = Literal["off", "on", "unknown"]


class UserMode(Configuration):
    """`[uml]`: how the kernel is configured as user-mode Linux.

    `jffs2_xattr` is CONFIG_JFFS2_FS_XATTR.
    """

    jffs2_xattr: Xattr


class KernelFacts(Configuration):
    """`[kernel]`: which kernel it is, and which targets can run it.

    `ticks_per_second` is CONFIG_HZ.
    """

    name: Name
    title: Text
    targets: tuple[str, ...] = Field(min_length=1, strict=False)
    ticks_per_second: Hertz


class ReadAheadRules(Strict):
    """`[readahead]`: how this kernel's mm/readahead.c differs from others."""

    source: Text
    backward_jump_is_sequential: bool
    context: Literal["none", "eager", "conservative"]
    first_page_starts_window: bool
    hole_window_adds_request: bool
    window_overflow: Literal["grows", "capped"]
    previous_position: Literal["last-page", "next-byte", "next-byte-at-end"]
    hole_not_found: Literal["page-after", "last-page"]
    hole_not_found_below: Literal["page-after", "last-page"]
    miss_never_continues: bool
    stream_keeps_its_window: bool
    cut_window_moves_its_marker: bool
    window_is_added_first: bool
    faults_around: bool


class Jffs2Options(Strict):
    """`[jffs2]`: how the kernel's JFFS2 is built.

    `compr_option` lists the values of its mount option `compr=`; empty before 3.2.
    """

    source: Text
    summary: bool
    compressors: list[Literal["lzo", "lzo-2.02", "zlib", "rtime"]]
    compr_option: list[Literal["none", "lzo", "zlib"]]
    collector_keeps_signals: bool
    wbuf_flush: Literal["delayed-work", "sync-supers"]
    xattr: Xattr


class UbifsOptions(Strict):
    """`[ubifs]`: how the kernel's UBIFS is built.

    `compr_option` lists the values of its mount option `compr=`.
    """

    source: Text
    compressor: Literal["none", "lzo", "lzo-2.02", "zlib", "zstd-1.4.10"]
    compr_option: list[Literal["none", "lzo", "lzo-2.02", "zlib", "zstd-1.4.10"]]


BackingDevice = Literal["default", "mtd", "block", "ubifs"]


class BackingDevices(Strict):
    """`[backing_devices]`: the device whose `ra_pages` become an opened file's window.

    file_ra_state_init (mm/readahead.c) reads the device of the inode's `mapping`, since 4.0 that of
    the `superblock` (inode_to_bdi). A mapping has default_backing_dev_info, except on a block
    device, where it has the disk's, and on UBIFS, which sets its own. A superblock has that of its
    MTD device, its disk or its UBIFS.
    """

    source: Text
    looked_up: Literal["mapping", "superblock"]
    yaffs2_mounts: Literal["block", "mtd"]
    ra_pages: dict[BackingDevice, RaPages]

    def device(self, fs: str) -> BackingDevice:
        """The device that a file system's inodes refer to."""
        if fs == "ubifs":
            return "ubifs"
        if fs == "yaffs2" and self.yaffs2_mounts == "block":
            return "block"
        return "default" if self.looked_up == "mapping" else "mtd"

    @model_validator(mode="after")
    def _whole(self) -> Self:
        needed = {self.device(fs) for fs in FILE_SYSTEMS}
        odd = sorted(needed ^ self.ra_pages.keys())
        if odd:
            problem = "missing" if odd[0] in needed else "no file system uses it"
            raise ValueError(f"ra_pages.{odd[0]}: {problem}")
        return self


class Kernel(FromFile):
    """A kernel as storage sees it; the simulator needs its rules to model it."""

    kernel: KernelFacts
    uml: UserMode | None = None
    readahead: ReadAheadRules | None = None
    jffs2: Jffs2Options | None = None
    ubifs: UbifsOptions | None = None
    backing_devices: BackingDevices

    @model_validator(mode="after")
    def _simulated_whole(self) -> Self:
        if "sim" in self.kernel.targets and not (self.readahead and self.jffs2 and self.ubifs):
            raise ValueError("kernel.targets: sim needs [readahead], [jffs2] and [ubifs]")
        if ("uml" in self.kernel.targets) != (self.uml is not None):
            raise ValueError("kernel.targets: uml and [uml] need each other")
        return self

    @cached_property
    def in_user_mode(self) -> Kernel:
        """The kernel with user-mode Linux's configuration; unchanged if it has none."""
        if self.uml is None:
            return self
        configured = self.uml.model_dump(exclude={"source", "jffs2_xattr"})
        facts = self.kernel.model_copy(update=configured)
        jffs2 = self.jffs2 and self.jffs2.model_copy(update={"xattr": self.uml.jffs2_xattr})
        return self.model_copy(update={"kernel": facts, "jffs2": jffs2})

    @property
    def name(self) -> str:
        """The name that options and experiments use."""
        return self.kernel.name

    def shipped_kib(self, fs: str) -> int:
        """The kernel's default window for files of a fresh mount, KiB; a partition has none."""
        if fs not in FILE_SYSTEMS:
            return 0
        return self.backing_devices.ra_pages[self.backing_devices.device(fs)] * CACHE_PAGE_KIB

    @cached_property
    def sim_json(self) -> str:
        """What sim/src/run/mod.rs KernelProfile reads, as JSON. Raises `ProfileError`."""
        return self.sim_json_with("any", USUAL_COMPRESSOR)

    def sim_json_with(self, fs: str, compressor: str) -> str:
        """`sim_json` with a file system mounted with `compr=`. Raises `ProfileError`.

        The option names a compressor without its version: zstd means zstd-1.4.10 on 6.1.
        """
        if "sim" not in self.kernel.targets:
            raise ProfileError(
                f"{paths.shown(self.path)}: Linux {self.name} is not simulated (kernel.targets)"
            )
        tables = json.loads(_without_sources(self, {"readahead", "jffs2", "ubifs"}))
        told = {"source", "name", "title", "targets"}
        tables["kernel"] = self.kernel.model_dump(exclude=told)
        of_jffs2, of_ubifs = (tables[name].pop("compr_option") for name in ("jffs2", "ubifs"))
        if compressor == USUAL_COMPRESSOR:
            return json.dumps(tables)
        able: list[str] = {"jffs2": of_jffs2, "ubifs": of_ubifs}.get(fs, [])
        found = [name for name in able if name.split("-")[0] == compressor]
        if not found:
            names = ", ".join(name.split("-")[0] for name in able) or "none at all"
            raise ProfileError(
                f"{paths.shown(self.path)}: {fs} of Linux {self.name} cannot be mounted with "
                f"compr={compressor}: {names}"
            )
        if fs == "jffs2":
            tables["jffs2"]["compressors"] = [name for name in found if name != "none"]
        else:
            tables["ubifs"]["compressor"] = found[0]
        return json.dumps(tables)


def _named(path: Path, name: str, file_name: str) -> None:
    if name != file_name:
        raise ProfileError(f"{paths.shown(path)}: name = {name!r} is not the file's name")


@lru_cache(maxsize=64)
def _load_board(path: Path, _changed_ns: int) -> Board:
    board = read_model(Board, read_toml(path, ProfileError), path, ProfileError)
    _named(path, board.name, path.stem)
    board._path = path
    return board


@lru_cache(maxsize=64)
def _load_kernel(path: Path, _changed_ns: int) -> Kernel:
    kernel = read_model(Kernel, read_toml(path, ProfileError), path, ProfileError)
    _named(path, kernel.name, path.name.removesuffix(".toml"))
    kernel._path = path
    return kernel


def _changed_ns(path: Path, what: str) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        names = board_names() if what == "board" else kernel_names()
        known = ", ".join(names) or "none"
        raise ProfileError(f"{paths.shown(path)}: no such {what}; there are {known}") from None


def load_board(name: str) -> Board:
    """The board of this name. Raises `ProfileError`."""
    path = board_path(name)
    return _load_board(path, _changed_ns(path, "board"))


def load_kernel(name: str) -> Kernel:
    """The kernel of this name. Raises `ProfileError`."""
    if not is_name(name):
        raise _unknown(name, "kernel", kernel_names())
    path = paths.kernel_file(name)
    return _load_kernel(path, _changed_ns(path, "kernel"))


def board_path(name: str) -> Path:
    """The path of a board's profile, existing or not. Raises `ProfileError` for a bad name."""
    if not is_name(name):
        raise _unknown(name, "board", board_names())
    return paths.board_file(name)


def _unknown(name: str, what: str, known: Sequence[str]) -> ProfileError:
    return ProfileError(f"{name}: not a {what}'s name; there are {', '.join(known) or 'none'}")


def board_names() -> list[str]:
    """The names of all board profiles."""
    return sorted(paths.board_files())


def kernel_names() -> list[str]:
    """The names of all kernel profiles."""
    return sorted(paths.kernel_files())
