"""What a case changes in its board and kernel: the axes `chip`, `partition` and `vm`.

A value is a table of the experiment, or one word, `read_array_ns=60000+erase_array_ns=2000000`.
Keys are those of the profile's table of that name; those of `vm` are names of /proc/sys/vm.
`--set chip.read_array_ns=25000,60000` gives one key several values. Software costs stay the
board's, however its chip is changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, ValidationError, model_validator

from flashbed.base.errors import InputError
from flashbed.base.toml import Hashed
from flashbed.base.toml_errors import wrong_lines
from flashbed.stack.bounds import Blocks, Ns, OobBytes, PageBytes, PagesPerBlock

__all__ = [
    "AS_BOOTED", "AS_PROFILED", "UNCHANGED", "UNPARTED", "Change", "ChipChange", "PartitionChange",
    "VmChange",
]  # fmt: skip

UNCHANGED = "default"
DIGITS_MAX = 19


class Change(Hashed):
    """Keys of one table with other values than the board or the kernel has."""

    example: ClassVar[str]
    """An example word for messages."""

    def __str__(self) -> str:
        """The word that `parse` reads."""
        return "+".join(f"{key}={value}" for key, value in self.values.items()) or UNCHANGED

    @property
    def values(self) -> Mapping[str, int]:
        """The changed keys and their values."""
        return {key: value for key, value in self if value is not None}

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses a word. Raises `InputError`."""
        if text == UNCHANGED:
            return cls()
        values: dict[str, Any] = {}
        for part in text.split("+"):
            key, equals, value = part.partition("=")
            if not equals or not value.isdecimal() or len(value) > DIGITS_MAX:
                raise InputError(f"{text}: not KEY=NUMBER[+KEY=NUMBER], such as {cls.example}")
            values[key] = int(value)
        try:
            return cls.model_validate(values)
        except ValidationError as why:
            unknown = [key for key in values if key not in cls.model_fields]
            said = wrong_lines(cls, why)[0]
            if unknown:
                said = f"{unknown[0]}: unknown key; there are {', '.join(cls.model_fields)}"
            raise InputError(f"{text}: {said}") from None


class ChipChange(Change):
    """`chip = { … }`: changes of `[chip]`, its geometry and times."""

    example = "read_array_ns=60000"

    page_bytes: PageBytes | None = None
    oob_bytes: OobBytes | None = None
    pages_per_block: PagesPerBlock | None = None
    blocks: Blocks | None = None
    read_array_ns: Ns | None = None
    program_array_ns: Ns | None = None
    erase_array_ns: Ns | None = None
    bus_read_ns: Ns | None = None
    bus_program_ns: Ns | None = None
    column_change_ns: Ns | None = None


class PartitionChange(Change):
    """`partition = { … }`: changes of `[partition]`, the blocks of the file system."""

    example = "blocks=512"

    first_block: Annotated[int, Field(ge=0, lt=65_536)] | None = None
    blocks: Blocks | None = None


Centisecs = Annotated[int, Field(ge=0, le=8_640_000)]
"""A day at most."""
Percent = Annotated[int, Field(ge=0, le=100)]


class VmChange(Change):
    """`vm = { … }`: settings of the kernel's write-back, by their names in /proc/sys/vm.

    The kernel refuses a `dirty_bytes` of less than two pages (mm/page-writeback.c). A limit in
    bytes and the same one in percent replace each other there, so a case has one of them.
    """

    example = "dirty_expire_centisecs=500"

    dirty_expire_centisecs: Centisecs | None = None
    dirty_writeback_centisecs: Centisecs | None = None
    dirty_ratio: Percent | None = None
    dirty_background_ratio: Percent | None = None
    dirty_bytes: Annotated[int, Field(ge=8_192, lt=2**40)] | None = None
    dirty_background_bytes: Annotated[int, Field(ge=1, lt=2**40)] | None = None

    @model_validator(mode="after")
    def _one_unit(self) -> Self:
        for limit in ("dirty", "dirty_background"):
            if {f"{limit}_bytes", f"{limit}_ratio"} <= self.values.keys():
                raise ValueError(f"{limit}_bytes and {limit}_ratio: only one of them holds")
        return self

    @property
    def sysctls(self) -> tuple[tuple[str, str], ...]:
        """Names and values as sysctl(8) has them."""
        return tuple((f"vm.{key}", str(value)) for key, value in self.values.items())


AS_PROFILED = ChipChange()
UNPARTED = PartitionChange()
AS_BOOTED = VmChange()
"""No change to the board's profile, nor to the kernel's settings."""
