"""Board and kernel profiles: facts with sources, from boards/*.toml and boards/kernels/*.toml.

A profile is complete or refused. Every physical quantity has a unit in its name and no default, and
every table names the source of its numbers. The simulator gets the numbers as JSON (`sim_json`,
read by sim/src/profile/mod.rs, which says what each does).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, TypeVar, get_args

from pydantic import PrivateAttr, model_validator

from flashbed._sim import check_board
from flashbed.base import paths
from flashbed.base.errors import InputError
from flashbed.base.paths import sha256_of
from flashbed.base.toml import FromFile, Strict, read_model, read_toml
from flashbed.stack.board_tables import (
    BoardFacts,
    Chip,
    Ecc,
    Emulator,
    EnduranceFacts,
    Memory,
    Nor,
    Partition,
    Spi,
    Sqlite,
)
from flashbed.stack.borrowed import BorrowedPrices
from flashbed.stack.chips import CatalogueChip, load_chip, read_chip
from flashbed.stack.energy import Energy
from flashbed.stack.expanded import Expanded, expanded
from flashbed.stack.file_systems import COMPRESSING, FILE_SYSTEMS, ON_FTL
from flashbed.stack.fitted_chip import Controller, FittedChip, fitted
from flashbed.stack.kernel_tables import (
    BackingDevices,
    Jffs2Options,
    KernelFacts,
    ReadAheadRules,
    UbifsOptions,
    UserMode,
)
from flashbed.stack.names import is_name
from flashbed.stack.prices import CompressorCosts, Software

__all__ = [
    "USUAL_COMPRESSOR",
    "Board",
    "Kernel",
    "ProfileError",
    "board_names",
    "board_path",
    "default_compressors",
    "kernel_names",
    "load_board",
    "load_kernel",
    "read_board",
]

CACHE_PAGE_KIB = 4
_DISK_KIB = 128
"""VM_READAHEAD_PAGES of include/linux/mm.h, the window of every disk."""
TICK_NS = 4_000_000
"""CONFIG_HZ=250 of kernel/uml/config."""
CLOCK_READ_NS = 256
"""TIMER_MULTIPLIER of arch/um/kernel/time.c."""
HOST_POINTER_BYTES = 8


USUAL_COMPRESSOR = "default"
"""Mounts JFFS2 and UBIFS without the option `compr=`."""


class ProfileError(InputError):
    """A profile that cannot be used; the message names the file and the key."""


def _without_sources(profile: Strict, names: set[str]) -> str:
    """These tables as JSON, without `source`."""
    tables = profile.model_dump(include=names)
    return json.dumps(
        {
            name: {key: value for key, value in table.items() if key != "source"}
            for name, table in tables.items()
        }
    )


class Board(FromFile):
    """A board: its chip, its driver's ECC, the partition, the costs of its CPU."""

    board: BoardFacts
    """What the board is."""
    chip: Chip
    """The NAND chip."""
    ecc: Ecc
    """How its pages are corrected."""
    spi: Spi | None = None
    """The bus of SPI-NAND; without it the chip is raw NAND."""
    nor: Nor | None = None
    """The bus of SPI-NOR."""
    partition: Partition
    """The blocks that the file system lives on."""
    memory: Memory
    """What the page cache may grow into."""
    software: Software
    """What the code of its kernel costs."""
    sqlite: Sqlite | None = None
    """What SQLite's work costs, where its steps differ."""
    endurance: EnduranceFacts | None = None
    """How often a block may be erased."""
    energy: Energy | None = None
    """Constants of energy."""
    emulator: Emulator | None = None
    """How QEMU becomes this board."""
    _changes: dict[str, dict[str, Any]] = PrivateAttr(default_factory=dict)
    _fit: FittedChip | None = PrivateAttr(default=None)
    _like: Board | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.chip.kind == "nor") != (self.nor is not None):
            raise ValueError('nor: chip.kind = "nor" and [nor] need each other')
        check_board(self.sim_json)
        return self

    @property
    def partition_bytes(self) -> int:
        """Bytes of the partition's pages, without spare areas."""
        return self.partition.blocks * self.chip.pages_per_block * self.chip.page_bytes

    @property
    def name(self) -> str:
        """The name that options and experiments use."""
        return self.board.name

    @property
    def fit(self) -> FittedChip | None:
        """How a chip of the catalogue was put onto it; None where `[chip]` has its own numbers."""
        return self._fit

    @property
    def like(self) -> Board | None:
        """The board whose prices it has, by the clock; None where they are its own."""
        return self._like

    @property
    def files(self) -> dict[str, Path]:
        """The files that it takes numbers from, by the names that `read_board` finds them by."""
        files = {f"chip-{self._fit.part.name}": self._fit.part.path} if self._fit else {}
        return files | ({f"board-{self._like.name}": self._like.path} if self._like else {})

    @cached_property
    def sha256(self) -> str:
        """Hash of its file, of the files that it takes numbers from, and of the changes to it."""
        own = sha256_of(self.path)
        others = [one.sha256 for one in (self._fit and self._fit.part, self._like) if one]
        if not (self._changes or others):
            return own
        changed = f"{own}\n{json.dumps(self._changes)}{''.join(others)}".encode()
        return hashlib.sha256(changed).hexdigest()

    @property
    def has_other_memory(self) -> bool:
        """Whether a case gives it other memory than its profile says."""
        return "memory" in self._changes

    def changed(self, changes: Mapping[str, Mapping[str, Any]]) -> Board:
        """The board with other values in its profile's tables. Raises `InputError`.

        `chip.part`, `corner` and `controller` put a chip of the catalogue onto it.
        What was measured with the original chip does not apply: the copy has no energy constants
        and no nandsim chip.
        """
        other = {table: dict(values) for table, values in changes.items() if values}
        if not other:
            return self
        values = self.model_dump(exclude={"energy"})
        fit = self._fit
        own = {key: value for key, value in other.get("chip", {}).items() if key != "part"}
        refits = {"part"} | ({"slc_mode"} if fit is not None else set())
        if {"corner", "controller"} & other.keys() or refits & other.get("chip", {}).keys():
            values, fit = self._refitted(values, other, own)
        values["chip"] |= own
        for table in ("partition", "memory"):
            values[table] |= other.get(table, {})
        if (own or fit is not self._fit) and values["emulator"]:
            values["emulator"]["nandsim"] = None
        board = read_model(Board, values, self.path, ProfileError)
        board._path, board._changes, board._fit, board._like = self.path, other, fit, self._like
        return board

    def _refitted(
        self, values: dict[str, Any], other: Mapping[str, Mapping[str, Any]], own: dict[str, int]
    ) -> tuple[dict[str, Any], FittedChip]:
        name = other.get("chip", {}).get("part")
        before = self._fit
        if name is None and before is None:
            axis = "corner" if "corner" in other else "controller"
            raise ProfileError(
                f"{paths.shown(self.path)}: chip.part: {axis} is of a chip of the catalogue, which"
                " the board does not name; --set chip=NAME puts one onto it"
            )
        if name is not None:
            part, kept = _chip_near(self.path, name), {}
        else:
            assert before is not None
            part, kept = before.part, dict(before.given)
        driver = before.controller if before is not None else Controller()
        driver = driver.model_copy(update=dict(other.get("controller", {})))
        corner = other.get("corner", {}).get("corner", "typical")
        given = kept | own
        return fitted(values, part, corner=corner, controller=driver, given=given)

    @cached_property
    def sim_json(self) -> str:
        """The numbers for the simulator, from chip to software, without sources."""
        return self.sim_json_with(USUAL_COMPRESSOR)

    def sim_json_with(self, compressor: str) -> str:
        """`sim_json` for file systems mounted with `compr=`."""
        text = _without_sources(self, {"chip", "ecc", "partition", "memory", "software"})
        tables = json.loads(text)
        del tables["chip"]["kind"]
        if self.spi:
            tables["chip"]["spi"] = self.spi.sim_tables
        if self.nor:
            pages = self.chip.pages_per_block * self.chip.blocks
            tables["chip"]["nor"] = self.nor.sim_tables(pages * self.chip.page_bytes)
        of_compressors = tables["software"]["compressors"]
        for name in tables["software"].pop("not_known"):
            folder, _, key = name.partition(".")
            if folder == "compressors" and compressor != USUAL_COMPRESSOR:
                of_compressors[key.partition(".")[0]] = None  # what is known of it is not its time
        for name in of_compressors.pop("included"):
            key = {"zlib": "deflate"}.get(name, name.replace("-", "_").replace(".", "_"))
            if compressor == USUAL_COMPRESSOR and of_compressors[key] is None:
                of_compressors[key] = json.loads(_free(CompressorCosts).model_dump_json())[key]
        return json.dumps(tables)

    def without_software(self) -> Board:
        """The board as user-mode Linux has it.

        Code takes no time except the agent's readings of the clock, the scheduler's clock counts
        ticks, and pointers have 64 bits.
        """
        nothing: dict[str, Any] = dict.fromkeys(Software.model_fields, 0)
        nothing |= {"source": "kernel/uml", "clock_read_ns": CLOCK_READ_NS}
        nothing |= {"compressors": _free(CompressorCosts), "squashfs": None, "not_known": ()}
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


class Kernel(FromFile):
    """A kernel as storage sees it; the simulator needs its rules to model it."""

    kernel: KernelFacts
    """What the kernel is."""
    uml: UserMode | None = None
    """The kernel in user mode; needed by the target `uml`."""
    readahead: ReadAheadRules | None = None
    """Its read-ahead; needed by the target `sim`."""
    jffs2: Jffs2Options | None = None
    """Its JFFS2; needed by the target `sim`."""
    ubifs: UbifsOptions | None = None
    """Its UBIFS; needed by the target `sim`."""
    backing_devices: BackingDevices
    """The read-ahead window of a fresh mount."""

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
        if fs in ON_FTL:
            return _DISK_KIB
        if fs not in FILE_SYSTEMS:
            return 0
        return self.backing_devices.ra_pages[self.backing_devices.device(fs)] * CACHE_PAGE_KIB

    def default_compressor(self, fs: str) -> str | None:
        """What the kernel compresses with if no option says; None for no compression."""
        names: list[str] = []
        if fs == "jffs2" and self.jffs2:
            names = [*self.jffs2.compressors]  # in the order in which it tries them
        elif fs == "ubifs" and self.ubifs:
            names = [self.ubifs.compressor]
        return names[0].split("-")[0] if names else None

    @cached_property
    def sim_json(self) -> str:
        """What sim/src/run/mod.rs KernelProfile reads, as JSON. Raises `ProfileError`."""
        return self.sim_json_with("any", USUAL_COMPRESSOR)

    def sim_json_with(
        self, fs: str, compressor: str, vm: Mapping[str, int] = MappingProxyType({})
    ) -> str:
        """`sim_json` with settings of /proc/sys/vm, and a file system mounted with `compr=`.

        Raises `ProfileError`.

        The option names a compressor without its version: zstd means zstd-1.4.10 on 6.1.
        """
        if "sim" not in self.kernel.targets:
            raise ProfileError(
                f"{paths.shown(self.path)}: Linux {self.name} is not simulated (kernel.targets)"
            )
        tables = json.loads(_without_sources(self, {"readahead", *COMPRESSING}))
        told = {"source", "name", "title", "targets", "like", "mlc_refused_by", "slc_mode"}
        told |= {"octal_dtr"}
        tables["kernel"] = self.kernel.model_dump(exclude=told)
        if vm:
            tables["kernel"]["vm"] = dict(vm)
        options = {name: tables[name].pop("compr_option") for name in COMPRESSING}
        if compressor == USUAL_COMPRESSOR:
            return json.dumps(tables)
        able: list[str] = options.get(fs, [])
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
    board = read_board(path)
    _named(path, board.name, path.stem)
    return board


def read_board(path: Path) -> Board:
    """A board's profile, whatever folder it is in. Raises `InputError`."""
    found: Expanded = expanded(
        read_toml(path, ProfileError), path,
        chip=lambda name: _chip_near(path, name),
        prices=lambda name, mhz, permille: _prices_like(path, name, mhz=mhz, permille=permille),
    )  # fmt: skip
    board = read_model(Board, found.values, path, ProfileError)
    board._path, board._fit = path, found.fit
    board._like = _board_near(path, found.like) if found.like is not None else None
    return board


def _prices_like(path: Path, name: str, *, mhz: int, permille: int) -> dict[str, Any]:
    """`[software]` of a profile that names a board. Raises `InputError`."""
    there, known = f"{paths.shown(path)}: software.like = {name!r}", _board_near(path, name)
    if known.board.cpu_mhz is None:
        raise ProfileError(f"{there}: {paths.shown(known.path)} has no board.cpu_mhz")
    if known.like is not None or known.software.is_free:
        raise ProfileError(f"{there}: {paths.shown(known.path)} is not calibrated itself")
    return BorrowedPrices(
        name=name, software=known.software, clock_mhz=known.board.cpu_mhz, mhz=mhz,
        permille=permille,
    ).table()  # fmt: skip


def _chip_near(path: Path, name: str) -> CatalogueChip:
    """A chip, as it was kept beside the profiles of a run, or of the catalogue."""
    kept = path.parent / f"chip-{name}.toml"
    return read_chip(kept) if is_name(name) and kept.is_file() else load_chip(name)


def _board_near(path: Path, name: str) -> Board:
    kept = path.parent / f"board-{name}.toml"
    return read_board(kept) if is_name(name) and kept.is_file() else load_board(name)


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


def default_compressors(kernels: Iterable[str]) -> dict[tuple[str, str], str]:
    """Kernel and file system -> the kernel's default compressor, of the kernels with a profile."""
    known = [load_kernel(name) for name in kernels if name in kernel_names()]
    pairs = ((kernel, fs, kernel.default_compressor(fs)) for kernel in known for fs in FILE_SYSTEMS)
    return {(kernel.name, fs): used for kernel, fs, used in pairs if used is not None}


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
