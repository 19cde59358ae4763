"""A board by its name."""

from __future__ import annotations

from pathlib import Path

from flashbed.stack.profiles import Board, load_board

__all__ = ["NamedBoard"]


class NamedBoard:
    """A board: its chip, its partition, its memory.

    `name` is a profile's name: `./boards/NAME.toml`, or one that ships (`flashbed list boards`).
    Raises `errors.InputError`.
    """

    def __init__(self, name: str) -> None:
        self._profile = load_board(name)

    @property
    def name(self) -> str:
        """The profile's name, as experiments use it."""
        return self._profile.name

    @property
    def path(self) -> Path:
        """The profile's file."""
        return self._profile.path

    @property
    def profile(self) -> Board:
        """All tables of the file; docs/reference/profiles.md explains them."""
        return self._profile

    @property
    def page_bytes(self) -> int:
        """Bytes of a page, the unit in which the chip reads and programs."""
        return self._profile.chip.page_bytes

    @property
    def block_bytes(self) -> int:
        """Bytes of a block, the unit in which the chip erases."""
        return self._profile.chip.block_bytes

    @property
    def blocks(self) -> int:
        """Blocks of the partition that experiments run on."""
        return self._profile.partition.blocks

    @property
    def ram_mib(self) -> int:
        """Memory of the board in MiB."""
        return self._profile.board.ram_mib

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        size_mib = self._profile.partition_bytes >> 20
        return f"Board({self.name!r}: {size_mib} MiB in blocks of {self.block_bytes >> 10} KiB)"
