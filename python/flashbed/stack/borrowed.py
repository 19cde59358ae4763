"""Prices of software that a board borrows from another one, by the clocks of both.

`[software] like = "emulated"` does it when a profile is read, `doctor --like` writes the numbers
out. The prices are an estimate: memory and caches do not follow the clock.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from typing import Any

from flashbed.stack.prices import Software, known_price, prices

__all__ = ["BorrowedPrices"]

_PERMILLE = 1_000


@dataclass(frozen=True, kw_only=True)
class BorrowedPrices:
    """Known prices of a board, and the clock of one that is to have prices like it."""

    name: str
    software: Software
    clock_mhz: int
    """Of the board that has the prices."""
    mhz: int
    permille: int = _PERMILLE
    """Of what the clocks make of a price: another number of cycles an instruction."""

    def prices(self) -> dict[str, str]:
        """`[software]` with the board's prices by the two clocks, each value as TOML.

        What no source knew of that board is not known here either.
        """
        ratio = "" if self.permille == _PERMILLE else f", times {self.permille / _PERMILLE:g}"
        source = (
            f"estimate: prices of {self.name} by the clock, {self.clock_mhz} to {self.mhz}"
            f" MHz{ratio}; there: {self.software.source}"
        )
        table = {"source": json.dumps(source, ensure_ascii=False)}
        for price in prices():
            value = known_price(self.software, price.key)
            if value is not None:
                scaled = value * self.clock_mhz * self.permille / (self.mhz * _PERMILLE)
                table[price.key] = f"{round(scaled):_}"
        if self.software.not_known:
            table["not_known"] = json.dumps(self.software.not_known)
        if self.software.compressors.included:
            table["compressors.included"] = json.dumps(list(self.software.compressors.included))
        return table

    def table(self) -> dict[str, Any]:
        """The same as values."""
        return tomllib.loads("\n".join(f"{key} = {value}" for key, value in self.prices().items()))
