"""The stack: everything below a program, as one value.

A board and a kernel, a file system and how it is mounted, the read-ahead window, settings of
write-back, and what the chip has been through. A target runs programs on stacks. Two stacks with
the same values are equal, wherever their parts came from: `sha256` tells them apart, in keys of
results, in groups that are run together and in boots that are shared.

`mounted` and `boot_parameters` are what a real kernel is told, the names that begin with
`simulated` what the simulator is told. Left out: what is done on the stack before a program begins
(plan/workloads/state.py makes operations of it).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property

from flashbed.stack.bit_errors import ErrorRates, error_rates
from flashbed.stack.changes import AS_BOOTED, VmChange
from flashbed.stack.conditions import NONE, Faults
from flashbed.stack.file_systems import FILE_SYSTEMS, ON_FTL, only_in_user_mode
from flashbed.stack.layouts import Layout, Volume, in_layout, on_partition
from flashbed.stack.mounts import PROTECTED
from flashbed.stack.names import DEFAULT_WINDOW
from flashbed.stack.nearest_kernel import release_of
from flashbed.stack.policies import Policy
from flashbed.stack.profiles import USUAL_COMPRESSOR, Board, Kernel

__all__ = ["Stack"]

_OF_MLC = {
    "jffs2": "jffs2: mount: EINVAL (jffs2_do_fill_super: MLC NAND is not supported)",
    "yaffs2": "yaffs: MTD device is not NAND it's type 8",
}
"""What refuses chips whose cells hold several bits."""
_SQUASHFS_OF = "6.1"
_VERSION = 1
"""Of `json`: another one makes every kept result out of date."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Stack:
    """Equal stacks run a program alike."""

    board: Board
    kernel: Kernel
    fs: str
    """A name of boards/parts/file_systems.toml."""
    mount_options: str = ""
    """Options the file system is mounted with before anything is prepared: `bulk_read`."""
    compressor: str = USUAL_COMPRESSOR
    """The option `compr=` of JFFS2 and UBIFS; the usual value leaves the kernel's default."""
    read_ahead_kib: int | None = None
    """None keeps the window that the kernel gives the mount; `Batch.cases` says which it was."""
    vm: VmChange = AS_BOOTED
    """Settings of the kernel's write-back, from its boot on."""
    layout: Layout | None = None
    """What lies on the flash besides; None for one volume or partition with one file system."""
    policies: tuple[Policy, ...] = ()
    """What decides in the kernel's place; only the simulator runs such a stack."""
    erases: tuple[int, ...] = ()
    """Erases of each block of the partition before anything is written; empty for none."""
    faults: Faults = NONE
    """The factory's bad blocks are there first, other faults begin when measuring starts."""

    @cached_property
    def bit_errors(self) -> ErrorRates | None:
        """`faults.bit_errors` on this board. Raises `InputError`."""
        asked = self.faults.bit_errors
        return None if asked is None else error_rates(asked, self.board)

    @cached_property
    def json(self) -> str:
        """All of it, with the profiles' values in full."""
        values: dict[str, object] = {
            "version": _VERSION,
            "board": self.board.values_json,
            "kernel": self.kernel.values_json,
            "mounted": self.mounted,
            "read_ahead_kib": DEFAULT_WINDOW
            if self.read_ahead_kib is None
            else self.read_ahead_kib,
            "vm": dict(self.vm.values),
            "erases": self.erases,
            "faults": self.faults.model_dump_json(exclude={"bit_errors"}),
        }
        if self.layout is not None:
            values["layout"] = self.layout.values_json
        if self.policies:
            values["policies"] = [policy.key for policy in self.policies]
        if self.bit_errors is not None:
            values["bit_errors"] = asdict(self.bit_errors)
        return json.dumps(values)

    @cached_property
    def sha256(self) -> str:
        """Tells stacks apart, on every machine alike."""
        return hashlib.sha256(self.json.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stack):
            return NotImplemented
        return self is other or self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    @property
    def root_volume(self) -> Volume | None:
        """The volume whose image holds what a preparation makes; None where it makes that."""
        return None if self.layout is None else self.layout.root_volume

    @cached_property
    def blocks(self) -> range:
        """The chip's blocks that the program's file system lies on. Raises `InputError`."""
        chip, partition = self.board.chip, self.board.partition
        found = range(partition.blocks)
        if self.layout is not None:
            there = len(found)
            found = self.layout.program_blocks(None, block_bytes=chip.block_bytes, there=there)
        first = partition.first_block
        return range(first + found.start, first + found.stop)

    @cached_property
    def in_user_mode(self) -> Stack:
        """The stack with user-mode Linux's board and kernel, for the simulator."""
        board, kernel = self.board.without_software(), self.kernel.in_user_mode
        return replace(self, board=board, kernel=kernel)

    @property
    def only_simulated(self) -> str | None:
        """Why no real kernel can be this stack's; None if one can."""
        if self.board.has_other_memory:
            return "memory: a real kernel's is what it leaves free; --on sim has others"
        if not self.policies:
            return None
        chosen = ", ".join(f"policy.{each.decision}={each.name}" for each in self.policies)
        return f"{chosen}: a real kernel decides by its own code; --on sim has policies"

    @property
    def refused_by_kernel(self) -> str | None:
        """What the kernel says if it refuses the file system on such cells."""
        chip, kernel = self.board.chip, self.kernel.kernel
        if chip.slc_mode and not kernel.slc_mode:
            return f"chip.slc_mode: Linux {self.kernel.name} has no such partitions (5.8 has)"
        of_bus = self._refused_bus
        if of_bus is not None or chip.cells == "slc" or self.fs not in FILE_SYSTEMS:
            return of_bus
        on_ubi = FILE_SYSTEMS[self.fs].stands_on == "ubi"
        if on_ubi and "ubi" in kernel.mlc_refused_by and not chip.slc_mode:
            return "ubi: refuse attaching mtd0 - MLC NAND is not supported"
        if self.fs in kernel.mlc_refused_by:
            return _OF_MLC[self.fs]
        return None

    @property
    def not_simulated(self) -> str | None:
        """Why the simulator cannot be this stack; None if it can."""
        if self.refused_on_nor is not None:
            return self.refused_on_nor
        if self.layout is not None and self.layout.not_simulated is not None:
            return f"{self.layout.not_simulated}; --on uml runs the kernel's"
        if self.root_volume is not None and self.kernel.name.partition("-")[0] != _SQUASHFS_OF:
            return f"layout.files=root: the simulator has the squashfs of Linux {_SQUASHFS_OF}"
        if self.fs not in ON_FTL:
            return None
        return f"fs {self.fs}: the simulator has no {self.fs}; --on uml runs the kernel's"

    @property
    def _nor_chip(self) -> str:
        fit = self.board.fit
        return f"chip {fit.part.name}" if fit is not None else 'chip.kind = "nor"'

    @property
    def refused_on_nor(self) -> str | None:
        """Why this stack cannot be on its chip of SPI-NOR; None if it can, or is on NAND."""
        if self.board.nor is None:
            return None
        if self.layout is not None and self.layout.on == "ubi":
            return f"layout={self.layout.name}: UBI is not on SPI-NOR here ({self._nor_chip})"
        facts = FILE_SYSTEMS.get(self.fs)
        if facts is None or not facts.on_nor:
            able = ", ".join(name for name, row in FILE_SYSTEMS.items() if row.on_nor)
            return f"fs={self.fs}: SPI-NOR has {able} only ({self._nor_chip})"
        return None

    @property
    def _refused_bus(self) -> str | None:
        """Why this kernel's driver of SPI-NAND does not attach the chip as the board says."""
        spi, name = self.board.spi, self.kernel.name
        if spi is None:
            return None
        since = spi.linux_since
        if since is not None and release_of(name) < release_of(since):
            bytes_ = " ".join(f"{one:02x}" for one in spi.id)
            return f"Linux' SPI-NAND driver does not know the chip {bytes_}"
        if spi.dtr and not self.kernel.kernel.octal_dtr:
            return (
                f"controller.dtr: Linux {name} has no octal DTR of SPI-NAND (7.3 has) and falls"
                " back to single data rate: --set controller.dtr=0"
            )
        return None

    @property
    def only_in_user_mode(self) -> str | None:
        """Why the emulated board and a real one cannot be this stack; None if they can."""
        if self.refused_on_nor is not None:
            return self.refused_on_nor
        if self.layout is not None and self.layout.fastmap:
            return "layout.fastmap: Debian's kernel has none; --on uml has it"
        if "authenticated" in self.protection:
            return "mount=ubifs:authenticated: Debian's kernel has none; --on uml has it"
        return self.only_simulated or only_in_user_mode(self.fs)

    @property
    def modelled_kib(self) -> int:
        """The window of the mount's files on a kernel that behaves as its profile says."""
        if self.read_ahead_kib is not None:
            return self.read_ahead_kib
        return self.kernel.shipped_kib(self.fs)

    @property
    def protection(self) -> frozenset[str]:
        """Which of the agent's own mount options it has: `authenticated`, `encrypted`."""
        return PROTECTED.intersection(self.mount_options.split(","))

    @property
    def mounted(self) -> str:
        """File system and mount options, as the agent reads them."""
        usual = self.compressor == USUAL_COMPRESSOR
        return self.simulated_fs if usual else f"{self.simulated_fs},compr={self.compressor}"

    @property
    def simulated_fs(self) -> str:
        """File system and mount options, as the simulator reads them with `simulated_kernel`."""
        return f"{self.fs},{self.mount_options}" if self.mount_options else self.fs

    @property
    def simulated_board(self) -> str:
        """The board as the simulator reads it, with the prices of this compressor."""
        return on_partition(self.board.sim_json_with(self.compressor), self.layout)

    @property
    def simulated_kernel(self) -> str:
        """The kernel as the simulator reads it, with this compressor and layout.

        Raises `InputError`.
        """
        return in_layout(self.kernel_alone, self.layout)

    @property
    def kernel_alone(self) -> str:
        """The same without the layout. Raises `InputError`."""
        return self.kernel.sim_json_with(self.fs, self.compressor, self.vm.values)

    @property
    def boot_parameters(self) -> list[str]:
        """Settings on the kernel's command line (since 5.8, fs/proc/proc_sysctl.c)."""
        return [*(f"sysctl.{name}={value}" for name, value in self.vm.sysctls), *self.of_ubi]

    @property
    def of_ubi(self) -> list[str]:
        """Parameters of UBI's module: a fastmap is written when it first can be."""
        fastmap = self.layout is not None and self.layout.fastmap
        return ["ubi.fm_autoconvert=1"] if fastmap else []
