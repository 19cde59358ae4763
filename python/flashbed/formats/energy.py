"""`[energy]` of a board's profile: the constants of each convention, each table with its source.

`[energy.paper]` is the read-ahead paper's model (2014, section 4.2): mean power above idle of the
CPU's rail and of the rail of RAM and flash during one activity, by file system, access pattern and
read-ahead. `[energy.supply]` is the same for a board whose supply can only be measured as a whole.
`[energy.component]` has a price for each component's work, from slides and data sheets. Left out:
idle power itself, temperature, voltage and frequency steps.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from flashbed.formats.bounds import MicroWatt, Nj, Pj
from flashbed.formats.names import FileSystem, Pattern, Text
from flashbed.formats.toml import Strict

__all__ = [
    "Activity",
    "ComponentConstants",
    "Energy",
    "MeanPower",
    "RailPower",
    "SupplyPower",
]

DriverNs = Annotated[int, Field(gt=0, le=1_000_000_000)]
Activity = Literal["read", "write", "select"]
"""What a program does while it is measured (`activity` of energy/fold.py)."""


class MeanPower(Strict):
    """The condition of a row; a missing key matches everything."""

    activity: Activity
    fs: FileSystem | None = None
    pattern: Pattern | None = None
    read_ahead: Literal["on", "off"] | None = None
    source: Text | None = None
    """The row's own source, if it differs from the table's."""

    @property
    def condition(self) -> tuple[str | None, ...]:
        """The key that no other row of a table may have."""
        return (self.activity, self.fs, self.pattern, self.read_ahead)


class RailPower(MeanPower):
    """A row of `[energy.paper]`: mean power above idle by rail; `mem` is RAM and flash."""

    cpu_uw: MicroWatt
    mem_uw: MicroWatt


class SupplyPower(MeanPower):
    """A row of `[energy.supply]`: mean power above idle of the whole board."""

    supply_uw: MicroWatt


class _Rows(Strict):
    """A table of mean powers. A case takes the row with the most specific matching condition."""

    source: Text

    def _check(self, rows: tuple[MeanPower, ...]) -> None:
        conditions = [row.condition for row in rows]
        for condition in conditions:
            if conditions.count(condition) > 1:
                named = ", ".join(word for word in condition if word)
                raise ValueError(f"power: two rows are for {named}")


class PaperConstants(_Rows):
    """`[energy.paper]`."""

    power: Annotated[tuple[RailPower, ...], Field(min_length=1, strict=False)]

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        self._check(self.power)
        return self


class SupplyConstants(_Rows):
    """`[energy.supply]`."""

    power: Annotated[tuple[SupplyPower, ...], Field(min_length=1, strict=False)]

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        self._check(self.power)
        return self


class ComponentConstants(Strict):
    """`[energy.component]`: components and what their work takes above idle; missing is unknown.

    A page operation takes the driver `driver_*_ns` in all. In it the CPU takes `driver_*_nj`, the
    chip's array `flash_*_nj`, and moving the page `bus_*_nj` (an erase moves none). The CPU's other
    time takes `cpu_busy_uw`. Each byte that a program reads or writes costs memory
    `memory_byte_pj`.
    """

    source: Text
    cpu_busy_uw: MicroWatt | None = None
    memory_byte_pj: Pj | None = None
    driver_read_ns: DriverNs | None = None
    driver_program_ns: DriverNs | None = None
    driver_erase_ns: DriverNs | None = None
    driver_read_nj: Nj | None = None
    driver_program_nj: Nj | None = None
    driver_erase_nj: Nj | None = None
    flash_read_nj: Nj | None = None
    flash_program_nj: Nj | None = None
    flash_erase_nj: Nj | None = None
    bus_read_nj: Nj | None = None
    bus_program_nj: Nj | None = None


class Energy(Strict):
    """`[energy]`."""

    paper: PaperConstants | None = None
    supply: SupplyConstants | None = None
    component: ComponentConstants | None = None

    @model_validator(mode="after")
    def _one_measured(self) -> Self:
        if self.paper and self.supply:
            raise ValueError(
                "paper and supply: give one of them; a case's energy would mix two conventions"
            )
        return self
