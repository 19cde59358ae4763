"""What `--set` takes for each layout that ships: the file system of its program, a chip for it."""

from __future__ import annotations

from flashbed.base.paths import layout_files
from flashbed.stack.layouts import load_layout

__all__ = ["NOR_CHIP", "ON_MTD", "ON_UBI", "settings_of"]

NOR_CHIP = "W25Q128JV"
_ALL = sorted(layout_files())
ON_UBI = [name for name in _ALL if load_layout(name).on == "ubi"]
ON_MTD = [name for name in _ALL if load_layout(name).on == "mtd"]


def settings_of(layout: str, chip: str | None = NOR_CHIP) -> list[str]:
    """The settings of a layout, `NAME` or `NAME+KEY=VALUE`.

    Those on MTD are on this chip, or on the board's own.
    """
    name = layout.partition("+")[0]
    found = [f"layout={layout}", f"fs={load_layout(name).fs}"]
    return [*found, *([f"chip={chip}"] if name in ON_MTD and chip else [])]
