"""Writes the profile of a board that has a chip of the catalogue: short, and it runs at once.

What is assumed says so in a comment and in `source`. What is not known and not needed is a comment.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from flashbed.base.errors import InputError
from flashbed.stack.bounds import MHZ_MAX
from flashbed.stack.chips import CatalogueChip
from flashbed.stack.fitted_chip import ASSUMED_CLOCK_HZ, ASSUMED_LINES

__all__ = ["NamedPartition", "Processor", "begun_board_text"]

_PROCESSOR = re.compile(r"([a-z][a-z0-9-]*)@(\d+)MHz", re.IGNORECASE)
_LIKE = {"cortex-a7": "emulated", "cortex-a8": "omap3evm", "arm926": "apf27"}
"""Processors of boards that are calibrated; any other borrows of the first."""
_OF_64_BITS = re.compile(r"cortex-a(34|35|5[357]|7[0-9])|riscv64|rv64|x86|c906|c910|u74")
_FREE_OF_RAM = 3, 4
_KIB = 1 << 10


@dataclass(frozen=True)
class NamedPartition:
    """A partition of MTD by its name and its bytes on the chip."""

    name: str
    first_byte: int
    size_bytes: int


@dataclass(frozen=True)
class Processor:
    """A processor's core and clock, as `--processor` names them."""

    core: str
    mhz: int

    @classmethod
    def parse(cls, text: str) -> Processor:
        """`cortex-a7@528MHz`. Raises `InputError`."""
        found = _PROCESSOR.fullmatch(text)
        if found is None or not 0 < int(found[2]) <= MHZ_MAX:
            raise InputError(f"--processor {text}: CORE@NMHz, such as cortex-a7@528MHz")
        return cls(found[1].lower(), int(found[2]))

    @property
    def like(self) -> str:
        """The board whose prices it borrows."""
        return _LIKE.get(self.core, "emulated")

    @property
    def pointer_bytes(self) -> int:
        """Of its kernel."""
        return 8 if _OF_64_BITS.match(self.core) else 4


def begun_board_text(
    name: str, part: CatalogueChip, processor: Processor, *, ram_mib: int, like: str | None,
    partition: NamedPartition | None = None, said_by: str = "its options",
) -> str:  # fmt: skip
    """The text of boards/NAME.toml. `said_by` names who said processor and memory."""
    prices = like or processor.like
    other = "" if processor.core in _LIKE and like is None else ", another processor"
    free_kib = ram_mib * _KIB * _FREE_OF_RAM[0] // _FREE_OF_RAM[1]
    lines = [
        f"# {name}: {part.name} on a {processor.core} of {processor.mhz} MHz."
        f" `flashbed board check {name}` says what is odd.",
        "",
        "[board]",
        f'name = "{name}"',
        f'title = "{name}: {part.name}, {processor.core} at {processor.mhz} MHz"',
        f"ram_mib = {ram_mib}",
        f"cpu_mhz = {processor.mhz}",
        f"source = {json.dumps(f'flashbed board new: processor and memory as {said_by} said')}",
        "",
        "[chip]",
        f'part = "{part.name}"  # boards/chips/{part.name}.toml; a key below replaces its number',
        *_times(part),
        "",
        *_controller(part),
        *_partition(part, partition, said_by),
        "[memory]",
        f'source = "assumed: three quarters of {ram_mib} MiB"',
        f"free_kib = {free_kib:_}  # MemFree of /proc/meminfo after boot",
        "",
        "[software]",
        f'like = "{prices}"  # borrowed{other}, by the clocks: an estimate; `flashbed calibrate`',
        "# like_permille = 1_000  # more, if this core takes more cycles for the same code",
        f"pointer_bytes = {processor.pointer_bytes}  # of the kernel: 4 on 32 bits, 8 on 64",
        "",
    ]
    return "\n".join(lines)


def _partition(part: CatalogueChip, there: NamedPartition | None, said_by: str) -> list[str]:
    if there is None:
        return [
            "# [partition]  # without it: the whole chip",
            '# source = "our partition table"',
            "# first_block = 64",
            "# blocks = 400",
            "",
        ]
    block_bytes = part.geometry.page_bytes * part.geometry.pages_per_block
    return [
        "[partition]",
        f"source = {json.dumps(f'{there.name}, {said_by}')}",
        f"first_block = {there.first_byte // block_bytes:_}",
        f"blocks = {there.size_bytes // block_bytes:_}",
        "",
    ]


def _times(part: CatalogueChip) -> list[str]:
    """A `?` for each time that no source says, which a run needs."""
    words = {"read": "tR", "program": "tPROG", "erase": "tBERS"}
    lacking = [
        operation
        for operation in words
        if part.array_ns(operation, "typical") is None
        and part.array_ns(operation, "maximum") is None
    ]
    return [
        f'{operation}_array_ns = "?"  # {words[operation]} of the data sheet; no source of the'
        " catalogue says it"
        for operation in lacking
    ]


def _controller(part: CatalogueChip) -> list[str]:
    if part.chip.bus == "spi":
        return [
            "[controller]",
            f"clock_hz = {ASSUMED_CLOCK_HZ:_}  # assumed; what your controller really makes",
            f"lines = {ASSUMED_LINES}  # assumed; data lines that are connected",
            "# op_ns = 0  # what controller and driver take for an operation, beside its cycles",
            "",
        ]
    lines = [
        "# [controller]  # without it: as fast as the chip",
        "# cycle_ns = 25  # of your controller, a byte",
        "",
    ]
    if part.ecc is not None and (part.ecc.strength_bits or part.corrects_itself):
        return lines
    return [
        *lines,
        "[ecc]",
        'source = "the controller\'s manual"',
        'kind = "hardware-page"',
        'step_bytes = "?"  # 512, 1024',
        'strength_bits = "?"  # 1, 4, 8; no source of the catalogue says what the chip asks for',
        "",
    ]
