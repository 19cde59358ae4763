"""What quantities of boards and kernels can be: no number of a profile is beyond its physics.

Sums and products of these stay within 63 bits, here and in the simulator.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

__all__ = [
    "PAGES_MAX",
    "Blocks",
    "Erases",
    "Hertz",
    "Kib",
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
]  # fmt: skip

Ns = Annotated[int, Field(ge=0, le=1_000_000_000)]
"""A step of a chip or of code: a second at most, the longest erase of any NAND is 0.1 s."""
Ps = Annotated[int, Field(ge=0, le=1_000_000_000)]
"""Of a byte: a millisecond at most."""
Blocks = Annotated[int, Field(gt=0, le=65_536)]
PagesPerBlock = Annotated[int, Field(gt=0, le=1_024)]
PageBytes = Annotated[int, Field(ge=256, le=65_536)]
OobBytes = Annotated[int, Field(ge=8, le=16_384)]
"""8 of pages of 256 bytes are the fewest of any NAND; JFFS2's cleanmarker is as long."""
PAGES_MAX = 1 << 23
"""Of a chip: 64 GiB in pages of 8 KiB."""
Mib = Annotated[int, Field(gt=0, le=65_536)]
Kib = Annotated[int, Field(gt=0, le=65_536 * 1_024)]
Erases = Annotated[int, Field(gt=0, le=100_000_000)]
Hertz = Annotated[int, Field(gt=0, le=10_000)]
"""Of a kernel's clock, CONFIG_HZ: 24 to 1,200."""
RaPages = Annotated[int, Field(ge=0, le=1 << 18)]
"""1 GiB."""
MicroWatt = Annotated[int, Field(ge=0, le=1_000_000_000)]
"""A kilowatt at most."""
Nj = Annotated[int, Field(ge=0, le=1_000_000_000)]
"""Of an operation of the chip: a joule at most."""
Pj = Annotated[int, Field(ge=0, le=1_000_000_000)]
"""Of a byte: a millijoule at most."""
