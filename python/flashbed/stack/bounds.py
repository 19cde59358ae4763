"""Bounds of the quantities of boards and kernels: no number of a profile is physically impossible.

Sums and products within these bounds fit into 63 bits, here and in the simulator.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

__all__ = [
    "MHZ_MAX",
    "PAGES_MAX",
    "Blocks",
    "ClockHz",
    "EccBits",
    "EccStatus",
    "EraseNs",
    "Erases",
    "Hertz",
    "Kib",
    "Lines",
    "Mhz",
    "Mib",
    "MicroWatt",
    "Nj",
    "Ns",
    "OobBytes",
    "PageBytes",
    "PagesPerBlock",
    "Pj",
    "Ps",
    "RaPages",
    "SpareBytes",
]  # fmt: skip

Ns = Annotated[int, Field(ge=0, le=1_000_000_000)]
"""Time of a step of a chip or of code: at most a second. NAND's longest erase takes 0.1 s."""
EraseNs = Annotated[int, Field(ge=0, le=2_000_000_000)]
"""Time of an erase: at most 2 s, which a block of NOR may take."""
Ps = Annotated[int, Field(ge=0, le=1_000_000_000)]
"""Time of a byte: at most a millisecond."""
Blocks = Annotated[int, Field(gt=0, le=65_536)]
PagesPerBlock = Annotated[int, Field(gt=0, le=1_024)]
PageBytes = Annotated[int, Field(ge=256, le=65_536)]
OobBytes = Annotated[int, Field(ge=8, le=16_384)]
"""No NAND has fewer than 8 pages of 256 bytes in a block; JFFS2's cleanmarker is as long."""


def _none_or_room(bytes_: int) -> int:
    if 0 < bytes_ < 8:
        raise ValueError("should be 0, of NOR, or at least 8")
    return bytes_


SpareBytes = Annotated[int, Field(ge=0, le=16_384), AfterValidator(_none_or_room)]
"""The same of any chip: NOR has none."""
PAGES_MAX = 1 << 23
"""Pages of a chip: 64 GiB in pages of 8 KiB."""
MHZ_MAX = 100_000
Mhz = Annotated[int, Field(gt=0, le=MHZ_MAX)]
Mib = Annotated[int, Field(gt=0, le=65_536)]
Kib = Annotated[int, Field(gt=0, le=65_536 * 1_024)]
Erases = Annotated[int, Field(gt=0, le=100_000_000)]
Hertz = Annotated[int, Field(gt=0, le=10_000)]
"""Ticks of a kernel's clock, CONFIG_HZ: 24 to 1,200."""
ClockHz = Annotated[int, Field(ge=100_000, le=400_000_000)]
"""Clock of a serial bus: 0.1 to 400 MHz."""
EccBits = Annotated[int, Field(gt=0, le=64)]
"""Wrong bits of a step that a controller corrects; more than 64 the kernel module cannot."""
Lines = Literal[1, 2, 4, 8]
"""Data lines of a serial bus."""
EccStatus = Literal[
    "core", "tx58cxgxsxraix", "w25n02kv", "macronix", "micron_8", "gd5fxgq4xa", "gd5fxgq4uexxg",
    "gd5fxgq5xexxg", "gd5fxgq4ufxxg", "xt26g0xa", "xt26xxxd",
]  # fmt: skip
"""`EccStatus` of sim/src/profile/spi.rs: what each tells."""
RaPages = Annotated[int, Field(ge=0, le=1 << 18)]
"""1 GiB."""
MicroWatt = Annotated[int, Field(ge=0, le=1_000_000_000)]
"""Power: at most a kilowatt."""
Nj = Annotated[int, Field(ge=0, le=1_000_000_000)]
"""Energy of an operation of the chip: at most a joule."""
Pj = Annotated[int, Field(ge=0, le=1_000_000_000)]
"""Energy of a byte: at most a millijoule."""
