"""What a case changes in its board and kernel, a table each: `chip`, `partition`, `policy`, ….

A value is a table of the experiment, or one word, `read_array_ns=60000+erase_array_ns=2000000`.
Keys are those of the profile's table of that name; those of `vm` are names of /proc/sys/vm.
`--set chip.read_array_ns=25000,60000` gives one key several values, `--set chip=W25N01GV` puts a
chip of the catalogue in the place of the board's (fitted_chip.py). Software costs stay the board's,
however its chip is changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from flashbed.base.errors import InputError
from flashbed.base.toml import Hashed
from flashbed.base.toml_errors import wrong_lines
from flashbed.stack.bounds import (
    Blocks,
    ClockHz,
    EccBits,
    Kib,
    Lines,
    Ns,
    OobBytes,
    PageBytes,
    PagesPerBlock,
)
from flashbed.stack.names import Name, is_name

__all__ = [
    "AS_BOOTED", "AS_DRIVEN", "AS_PROFILED", "AS_PROFILED_WORDS", "KERNELS", "KERNELS_OWN",
    "NO_LAYOUT", "OF_BOARD", "REMEMBERED", "TYPICAL", "UNCHANGED", "UNPARTED", "Change",
    "ChipChange", "ControllerChange", "Files", "LayoutChange", "MemoryChange", "PartitionChange",
    "PolicyChange", "VmChange", "changes_of",
]  # fmt: skip

TYPICAL = "typical"
"""The corner of a board whose case names none."""
OF_BOARD = ("chip", "corner", "controller", "partition", "memory")
"""The axes that change a board."""

UNCHANGED = "default"
DIGITS_MAX = 19


class Change(Hashed):
    """Keys of one table with other values than the board or the kernel has."""

    example: ClassVar[str]
    """An example word for messages."""
    kind: ClassVar[str] = "NUMBER"
    """What its values are, in messages."""

    def __str__(self) -> str:
        """The word that `parse` reads."""
        return "+".join(f"{key}={value}" for key, value in self.values.items()) or UNCHANGED

    @property
    def values(self) -> Mapping[str, Any]:
        """The changed keys and their values."""
        return {key: value for key, value in self if value is not None}

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses a word. Raises `InputError`."""
        if text == UNCHANGED:
            return cls()
        values, words = cls._named(text.split("+"))
        for part in words:
            key, equals, value = part.partition("=")
            read = cls._read(value)
            if not equals or read is None:
                kind = cls.kind
                raise InputError(f"{text}: not KEY={kind}[+KEY={kind}], such as {cls.example}")
            values[key] = read
        try:
            return cls.model_validate(values)
        except ValidationError as why:
            unknown = [key for key in values if key not in cls.model_fields]
            said = wrong_lines(cls, why)[0]
            if unknown:
                said = f"{unknown[0]}: unknown key; there are {', '.join(cls._keys())}"
            raise InputError(f"{text}: {said}") from None

    @classmethod
    def _read(cls, word: str) -> Any:
        """The value that a word means; None if it is no value."""
        return int(word) if word.isdecimal() and len(word) <= DIGITS_MAX else None

    @classmethod
    def _keys(cls) -> list[str]:
        """The keys that a word can have."""
        return [key for key in cls.model_fields if key != "part"]

    @classmethod
    def _named(cls, words: list[str]) -> tuple[dict[str, Any], list[str]]:
        """What a first word without `=` means, and the words that are left."""
        return {}, words


class NamedChange(Change):
    """A table that a file has, by its name, and changes of its keys."""

    part: Name | None = None
    """The name: of a chip of the catalogue, of a layout."""

    def __str__(self) -> str:
        """The word that `parse` reads, the name first."""
        keys = [f"{key}={value}" for key, value in self.values.items() if key != "part"]
        return "+".join([*([self.part] if self.part else []), *keys]) or UNCHANGED

    @classmethod
    def _named(cls, words: list[str]) -> tuple[dict[str, Any], list[str]]:
        """The name, which is the first word."""
        if "=" in words[0] or words[0] in cls.model_fields or not is_name(words[0]):
            return {}, words
        return {"part": words[0]}, words[1:]


class ChipChange(NamedChange):
    """`chip = { … }`: a chip of the catalogue, and changes of `[chip]`, its geometry and times."""

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
    slc_mode: Annotated[int, Field(ge=0, le=1)] | None = None
    cache_read_ns: Annotated[Ns, Field(gt=0)] | None = None


class ControllerChange(Change):
    """`controller = { … }`: what drives a chip of the catalogue."""

    example = "clock_hz=52000000+lines=4"

    clock_hz: ClockHz | None = None
    lines: Lines | None = None
    dtr: Annotated[int, Field(ge=0, le=1)] | None = None
    op_ns: Ns | None = None
    cycle_ns: Ns | None = None
    ecc_strength_bits: EccBits | None = None
    ecc_step_bytes: PageBytes | None = None

    @model_validator(mode="after")
    def _whole_ecc(self) -> Self:
        if (self.ecc_strength_bits is None) != (self.ecc_step_bytes is None):
            raise ValueError("ecc_strength_bits and ecc_step_bytes need each other")
        return self


class PartitionChange(Change):
    """`partition = { … }`: changes of `[partition]`, the blocks of the file system."""

    example = "blocks=512"

    first_block: Annotated[int, Field(ge=0, lt=65_536)] | None = None
    blocks: Blocks | None = None


Files = Literal["layer", "root"]
"""Where the files of a preparation are."""


class LayoutChange(NamedChange):
    """`layout = { … }`: what lies on the flash besides the program's file system.

    `fastmap` and `files` are the layout's own, the other keys hold for the images of all volumes.
    """

    example = "squashfs-overlay-ubifs+block_kib=64"
    kind = "VALUE"

    image_kib: Annotated[int, Field(gt=0, lt=2**22)] | None = None
    block_kib: Annotated[int, Field(gt=0, le=1024)] | None = None
    compressor: Name | None = None
    spare_pct: Annotated[int, Field(ge=0, le=1000)] | None = None
    fastmap: Annotated[int, Field(ge=0, le=1)] | None = None
    verity: Annotated[int, Field(ge=0, le=1)] | None = None
    files: Files | None = None

    @classmethod
    def _read(cls, word: str) -> Any:
        """A number, or a name."""
        return super()._read(word) if word.isdecimal() else word or None


class MemoryChange(Change):
    """`memory = { … }`: changes of `[memory]`, in the simulator alone.

    What real kernels leave free after boot is their own.
    """

    example = "free_kib=8192"

    free_kib: Kib | None = None


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


KERNELS_OWN = "kernel"
"""The word for the policy of a kernel's own."""
_POLICY = re.compile(r"[a-z][a-z0-9-]{0,40}|[A-Za-z_]\w{0,40}\.[A-Za-z_]\w{0,40}", re.ASCII)


def _policy_name(text: str) -> str:
    if not _POLICY.fullmatch(text):
        raise ValueError(f"{text!r} is no policy: kernel, a built-in one, or MODULE.CLASS")
    return text


PolicyName = Annotated[str, AfterValidator(_policy_name)]
"""A built-in policy, or MODULE.CLASS of policies/MODULE.py."""


class PolicyChange(Change):
    """`policy = { … }`: what decides in the kernel's place; the simulator alone has it."""

    example = "victim=greedy"
    kind = "NAME"

    read_ahead: PolicyName | None = None
    reclaim: PolicyName | None = None
    victim: PolicyName | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_kernels(cls, given: Any) -> Any:
        """The kernel's own is no change."""
        if not isinstance(given, dict):
            return given
        return {key: value for key, value in given.items() if value != KERNELS_OWN}

    @classmethod
    def _read(cls, word: str) -> Any:
        """The name."""
        return word or None


def changes_of(of: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Table -> its changed keys, from a case's axes or from the words that a table has of them.

    An axis that is absent changes nothing. Raises `InputError`.
    """
    kinds: dict[str, type[Change]] = {
        "chip": ChipChange,
        "controller": ControllerChange,
        "partition": PartitionChange,
        "memory": MemoryChange,
    }
    found: dict[str, Mapping[str, Any]] = {}
    for axis, kind in kinds.items():
        given = of.get(axis) or UNCHANGED
        found[axis] = (kind.parse(given) if isinstance(given, str) else given).values
    corner = of.get("corner") or TYPICAL
    if corner != TYPICAL:
        found["corner"] = {"corner": corner}
    return {axis: values for axis, values in found.items() if values}


AS_PROFILED = ChipChange()
AS_DRIVEN = ControllerChange()
UNPARTED = PartitionChange()
REMEMBERED = MemoryChange()
AS_BOOTED = VmChange()
KERNELS = PolicyChange()
NO_LAYOUT = LayoutChange()
"""No change to the board's profile, nor to the kernel's settings."""
AS_PROFILED_WORDS = {"chip": UNCHANGED, "corner": TYPICAL, "controller": UNCHANGED}
"""The words of a board that has its own chip, as tables have them."""
