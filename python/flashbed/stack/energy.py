"""`[energy]` of a board's profile: the constants of each convention, each table with its source.

`[energy.paper]` is the read-ahead paper's model (2014, section 4.2): mean power above idle of the
CPU's rail and of the rail of RAM and flash during one activity, by file system, access pattern and
read-ahead. `[energy.supply]` is the same for a board whose supply can only be measured as a whole.
`[energy.component]` has a price for each component's work, from slides and data sheets. Left out:
idle power itself, temperature, voltage and frequency steps.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from flashbed.base.toml import Strict
from flashbed.stack.bounds import MicroWatt, Nj, Pj
from flashbed.stack.file_systems import FileSystem
from flashbed.stack.names import Pattern, Text

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
"""What a program does while it is measured (`activity` of answers/energy/fold.py)."""


class MeanPower(Strict):
    """The condition of a row; a missing key matches everything."""

    activity: Activity
    """What the program did: `read`, `write`, `select` (an SQL SELECT).
    From: the measurement.
    """
    fs: FileSystem | None = None
    """The file system; all without it."""
    pattern: Pattern | None = None
    """The pattern of access; `random` for every random order; all without it."""
    read_ahead: Literal["on", "off"] | None = None
    """Whether read-ahead was on; both without it."""
    source: Text | None = None
    """The row's own source, if it differs from the table's."""

    @property
    def condition(self) -> tuple[str | None, ...]:
        """The key that no other row of a table may have."""
        return (self.activity, self.fs, self.pattern, self.read_ahead)


class RailPower(MeanPower):
    """A row of `[energy.paper]`: mean power above idle by rail; `mem` is RAM and flash."""

    cpu_uw: MicroWatt
    """Mean power of the CPU's rail above idle.
    From: `flashbed power fit --write`.
    """
    mem_uw: MicroWatt
    """Mean power of the rail of RAM and flash above idle.
    From: `flashbed power fit --write`.
    """


class SupplyPower(MeanPower):
    """A row of `[energy.supply]`: mean power above idle of the whole board."""

    supply_uw: MicroWatt
    """Mean power of the whole board above idle.
    From: `flashbed power fit --write`.
    """


class _Rows(Strict):
    """A table of mean powers. A case takes the row with the most specific matching condition."""

    source: Text
    """Where the numbers of this table come from."""

    def _check(self, rows: tuple[MeanPower, ...]) -> None:
        conditions = [row.condition for row in rows]
        for condition in conditions:
            if conditions.count(condition) > 1:
                named = ", ".join(word for word in condition if word)
                raise ValueError(f"power: two rows are for {named}")


class PaperConstants(_Rows):
    """`[energy.paper]`: mean power above idle of the CPU's rail, and of that of RAM and flash."""

    power: Annotated[tuple[RailPower, ...], Field(min_length=1, strict=False)]
    """A row for each activity that was measured."""

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        self._check(self.power)
        return self


class SupplyConstants(_Rows):
    """`[energy.supply]`: mean power above idle of the whole board."""

    power: Annotated[tuple[SupplyPower, ...], Field(min_length=1, strict=False)]
    """A row for each activity that was measured."""

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        self._check(self.power)
        return self


class ComponentConstants(Strict):
    """`[energy.component]`: what each component takes above idle; a missing key is not known.

    A page operation takes the driver `driver_*_ns` in all. In it the CPU takes `driver_*_nj`, the
    chip's array `flash_*_nj`, and moving the page `bus_*_nj` (an erase moves none). The CPU's other
    time takes `cpu_busy_uw`, and memory `memory_busy_uw` meanwhile. Each byte that a program reads
    or writes costs memory `memory_byte_pj` more.
    """

    source: Text
    """Where the numbers of this table come from."""
    cpu_busy_uw: MicroWatt | None = None
    """Power of the busy CPU above idle.
    From: a measurement of the CPU's rail.
    """
    memory_busy_uw: MicroWatt | None = None
    """The same of memory.
    From: the memory's rail while a program computes.
    """
    memory_byte_pj: Pj | None = None
    """Energy of memory for a byte that a program reads or writes.
    From: a measurement of the memory's rail.
    """
    driver_read_ns: DriverNs | None = None
    """Reading a page, in the driver.
    From: a measurement of the driver.
    """
    driver_program_ns: DriverNs | None = None
    """Writing a page, in the driver.
    From: a measurement of the driver.
    """
    driver_erase_ns: DriverNs | None = None
    """Erasing a block, in the driver.
    From: a measurement of the driver.
    """
    driver_read_nj: Nj | None = None
    """The CPU, while a page is read.
    From: a measurement of the driver.
    """
    driver_program_nj: Nj | None = None
    """The CPU, while a page is written.
    From: a measurement of the driver.
    """
    driver_erase_nj: Nj | None = None
    """The CPU, while a block is erased.
    From: a measurement of the driver.
    """
    flash_read_nj: Nj | None = None
    """The array, reading a page.
    From: data sheet, ICC1 times VCC times tR.
    """
    flash_program_nj: Nj | None = None
    """The array, writing a page.
    From: data sheet, ICC2 times VCC times tPROG.
    """
    flash_erase_nj: Nj | None = None
    """The array, erasing a block.
    From: data sheet, ICC3 times VCC times tBERS.
    """
    bus_read_nj: Nj | None = None
    """Moving a page that is read.
    From: a measurement, less the array's.
    """
    bus_program_nj: Nj | None = None
    """Moving a page that is written.
    From: a measurement, less the array's.
    """


class Energy(Strict):
    """`[energy]`."""

    paper: PaperConstants | None = None
    """Mean power by rail; not together with `supply`."""
    supply: SupplyConstants | None = None
    """Mean power of the whole supply; not together with `paper`."""
    component: ComponentConstants | None = None
    """What each component takes."""

    @model_validator(mode="after")
    def _one_measured(self) -> Self:
        if self.paper and self.supply:
            raise ValueError(
                "paper and supply: give one of them; a case's energy would mix two conventions"
            )
        return self

    @property
    def power(self) -> tuple[RailPower | SupplyPower, ...]:
        """The rows of mean powers."""
        table = self.paper or self.supply
        return table.power if table else ()

    @property
    def numbers(self) -> dict[str, Any]:
        """The constants without their sources, as common/src/energy.rs reads them."""
        powers = [row.model_dump(exclude={"source"}, exclude_none=True) for row in self.power]
        each = self.component
        component = each and each.model_dump(exclude={"source"}, exclude_none=True)
        return {"powers": powers, "component": component}
