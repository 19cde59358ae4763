"""An experiment's initial state and the chip's failures: the axes `state` and `faults`.

A value is a table of the experiment or one word, `valid0.6-obsolete0.2-worn1000~50`, which also
appears in names of cases (docs/models/aged-partitions.md, docs/reference/experiment-file.md).
Random choices are drawn here, each with a seed of its own, so that every target gets the same.
plan/workloads/state.py makes the operations that bring about a state.
"""

from __future__ import annotations

import random
import re
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import AliasChoices, Field, ValidationError, model_validator

from flashbed.base.errors import InputError
from flashbed.base.toml import Hashed, Strict
from flashbed.base.toml_errors import wrong_lines

__all__ = [
    "NEW", "NONE", "BitErrors", "BitFlips", "Condition", "Faults", "Level", "State", "Worn",
    "plain",
]  # fmt: skip

Share = Annotated[float, Field(ge=0, le=1)]
Number = Annotated[int, Field(ge=0, lt=2**31)]
Nth = Annotated[int, Field(ge=1, lt=2**40)]
Numbers = Annotated[tuple[Number, ...], Field(strict=False, max_length=4096)]
Chosen = Annotated[tuple[Nth, ...], Field(strict=False, min_length=1, max_length=64)]
"""The most that kernel/flashbed_nand keeps (FBN_CHOSEN_MAX)."""
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=64)]

Curve = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*$", max_length=64)]
Level = Literal["low", "typical", "high"]
"""Few errors, the expected ones, many: the uncertainty of a curve."""

_PART = re.compile(r"([a-z]+)(@?[0-9].*|=[a-z].*)?")
_COUNTED = re.compile(r"(aged|read)([0-9]+)")
PPM = 1_000_000
ERASES_MAX = 0x7FFFFFFF
"""UBI_MAX_ERASECOUNTER of drivers/mtd/ubi/ubi-media.h."""


class Condition(Hashed):
    """A TOML table that can also be written as one word."""

    example: ClassVar[str]
    """An example word for messages."""

    name: Name | None = None

    def __str__(self) -> str:
        """Its name, or the word of its values."""
        return self.name or self.text

    @property
    def text(self) -> str:
        """The word of its values, which `parse` reads."""
        raise NotImplementedError

    def named_with(self, _key: str, _value: object) -> str | None:
        """The name of this table with another value; None goes by the word of its values."""
        return None

    @classmethod
    def values_of(cls, word: str, value: str) -> dict[str, Any]:
        """The keys that one part of the word sets. Raises `ValueError`."""
        raise NotImplementedError

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses a word. Raises `InputError`."""
        nothing = cls()
        if text == nothing.text:
            return nothing
        values: dict[str, Any] = {}
        try:
            for part in text.split("-"):
                matched = _PART.fullmatch(part)
                if not matched:
                    raise ValueError(part)
                word, value = matched[1], matched[2] or ""
                own = word == "seed" and word in cls.model_fields
                values |= {word: int(value)} if own else cls.values_of(word, value)
            return cls.model_validate(values)
        except ValidationError as why:
            raise InputError(f"{text}: {wrong_lines(cls, why)[0]}") from None
        except (ValueError, KeyError):
            raise InputError(
                f"{text}: no such name, and no {cls.__name__.lower()} such as {cls.example}"
            ) from None


class Drawn(Condition):
    """A condition with random parts, drawn by a seed of its own."""

    seed: Number = 1

    def _joined(self, parts: list[str]) -> str:
        return "-".join([*parts, *([f"seed{self.seed}"] if parts and self.seed != 1 else [])])


class Worn(Strict):
    """Erases of each block: uniform whole numbers up to `spread` around `mean`."""

    mean: Number
    spread: Number = 0


class State(Drawn):
    """The partition when measuring begins. Shares are of the usable space.

    docs/models/aged-partitions.md explains the states.
    """

    example = "valid0.6-obsolete0.2"

    valid: Share = 0.0
    obsolete: Share = Field(0.0, validation_alias=AliasChoices("obsolete", "invalid"))
    """Until version 0.2 also under its old name, `invalid`."""
    fragmented: Share = 0.0
    worn: Number | Worn = 0

    @model_validator(mode="after")
    def _possible(self) -> Self:
        mean, spread = self._worn()
        if spread > mean:
            raise ValueError(f"worn: a spread of {spread} around {mean}")
        if mean + spread > ERASES_MAX:
            raise ValueError(f"worn: {mean + spread} erases, {ERASES_MAX} at most")
        return self

    @property
    def text(self) -> str:
        """See `Condition`; `new` is a fresh file system on a new chip."""
        shares = (
            ("valid", self.valid),
            ("obsolete", self.obsolete),
            ("fragmented", self.fragmented),
        )
        parts = [f"{word}{plain(share)}" for word, share in shares if share]
        if self.worn:
            mean, spread = self._worn()
            parts.append(f"worn{mean}{f'~{spread}' if spread else ''}")
        return self._joined(parts) or "new"

    @classmethod
    def values_of(cls, word: str, value: str) -> dict[str, Any]:
        """See `Condition`."""
        if word == "worn":
            mean, _, spread = value.partition("~")
            return {word: {"mean": int(mean), "spread": int(spread or 0)}}
        named = {name: name for name in ("valid", "obsolete", "fragmented")}
        return {{**named, "invalid": "obsolete"}[word]: float(value)}

    @property
    def fills(self) -> bool:
        """Whether the partition is filled before the case's own preparation."""
        return bool(self.valid or self.obsolete or self.fragmented)

    def _worn(self) -> tuple[int, int]:
        return (self.worn.mean, self.worn.spread) if isinstance(self.worn, Worn) else (self.worn, 0)

    def erases(self, blocks: int) -> tuple[int, ...]:
        """Erases of each block of the partition before the start; empty for a new chip."""
        mean, spread = self._worn()
        draw = random.Random(self.seed).random  # the same in every version of Python
        least, values = mean - spread, 2 * spread + 1
        return tuple(least + int(draw() * values) for _ in range(blocks)) if mean else ()


class BitFlips(Strict):
    """Reads that get exactly `bits` bits of one ECC step wrong; the next read is correct."""

    rate: Share
    bits: Annotated[int, Field(ge=1, le=64)] = 1


class BitErrors(Strict):
    """Wrong bits that follow erases, age and reads by a curve of boards/errors/, and stay.

    `age_days` is how old what was programmed before the mark is then, `reads` how often its block
    was read since.
    """

    curve: Curve = "slc"
    level: Level = "typical"
    age_days: Annotated[int, Field(ge=0, le=36_500)] = 0
    reads: Number = 0

    @property
    def text(self) -> str:
        """The part of a word behind `errors=`."""
        parts = [self.curve, *([self.level] if self.level != "typical" else [])]
        parts += [f"aged{self.age_days}"] if self.age_days else []
        parts += [f"read{self.reads}"] if self.reads else []
        return "+".join(parts)

    @classmethod
    def values_of(cls, text: str) -> dict[str, Any]:
        """The keys of such a part. Raises `ValueError`."""
        curve, *others = text.split("+")
        values: dict[str, Any] = {"curve": curve}
        for other in others:
            counted = _COUNTED.fullmatch(other)
            if counted:
                values[{"aged": "age_days", "read": "reads"}[counted[1]]] = int(counted[2])
            elif other in get_args(Level):
                values["level"] = other
            else:
                raise ValueError(other)
        return values


class Faults(Drawn):
    """Failures of the chip (docs/reference/experiment-file.md).

    `program_fail` and `erase_fail` are a rate, or the numbers of the operations that fail, counted
    from 1 when measuring starts.
    """

    example = "badfraction0.02-flips0.001x1"

    bad_blocks: Numbers = ()
    bad_fraction: Share = 0.0
    endurance_erases: Annotated[int, Field(ge=0, le=100_000_000)] = 0
    program_fail: Share | Chosen = 0.0
    erase_fail: Share | Chosen = 0.0
    bit_flips: BitFlips | None = None
    bit_errors: BitErrors | None = None

    @model_validator(mode="after")
    def _one_kind_of_wrong_bits(self) -> Self:
        if self.bit_flips and self.bit_errors:
            raise ValueError("bit_flips and bit_errors: one of them")
        return self

    @property
    def text(self) -> str:
        """See `Condition`; `none` is a chip that does not fail."""
        parts = [f"bad@{_listed(self.bad_blocks)}"] if self.bad_blocks else []
        if self.bad_fraction:
            parts.append(f"badfraction{plain(self.bad_fraction)}")
        if self.endurance_erases:
            parts.append(f"endurance{self.endurance_erases}")
        for word, given in (("programfail", self.program_fail), ("erasefail", self.erase_fail)):
            if isinstance(given, tuple):
                parts.append(f"{word}@{_listed(given)}")
            elif given:
                parts.append(f"{word}{plain(given)}")
        if self.bit_flips:
            parts.append(f"flips{plain(self.bit_flips.rate)}x{self.bit_flips.bits}")
        if self.bit_errors:
            parts.append(f"errors={self.bit_errors.text}")
        return self._joined(parts) or "none"

    @classmethod
    def values_of(cls, word: str, value: str) -> dict[str, Any]:
        """See `Condition`."""
        numbers = [int(number) for number in value[1:].split("+")] if value[:1] == "@" else None
        if word == "errors" and value[:1] == "=":
            return {"bit_errors": BitErrors.values_of(value[1:])}
        if word == "flips":
            rate, _, bits = value.partition("x")
            return {"bit_flips": {"rate": float(rate), "bits": int(bits or 1)}}
        if word == "endurance":
            return {"endurance_erases": int(value)}
        if word == "bad":
            return {"bad_blocks": numbers or [int(value)]}
        key = {
            "badfraction": "bad_fraction",
            "programfail": "program_fail",
            "erasefail": "erase_fail",
        }[word]
        return {key: float(value) if numbers is None else numbers}

    @property
    def while_measuring(self) -> bool:
        """Whether the chip can fail while measuring, beyond blocks that were bad before."""
        wrong_bits = self.bit_flips or self.bit_errors
        return bool(self.endurance_erases or self.program_fail or self.erase_fail or wrong_bits)

    def bad(self, blocks: int) -> tuple[int, ...]:
        """Blocks of the partition that are bad from the factory, in order. Raises `InputError`."""
        past = [block for block in self.bad_blocks if block >= blocks]
        if past:
            raise InputError(
                f"faults {self}: bad_blocks: {past[0]}: the partition has {blocks} blocks"
            )
        if not self.bad_fraction:
            return tuple(sorted(set(self.bad_blocks)))
        drawn = list(range(blocks))
        _shuffle(drawn, self.seed)
        return tuple(sorted({*self.bad_blocks, *drawn[: round(self.bad_fraction * blocks)]}))


NEW = State()
"""A fresh file system on a new chip."""

NONE = Faults()
"""A chip that does not fail."""


def _shuffle(values: list[int], seed: int) -> None:
    draw = random.Random(seed).random
    for at in range(len(values) - 1, 0, -1):
        other = int(draw() * (at + 1))
        values[at], values[other] = values[other], values[at]


def plain(number: float) -> str:
    """A number without an exponent or trailing zeroes."""
    return f"{number:.9f}".rstrip("0").rstrip(".")


def _listed(numbers: tuple[int, ...]) -> str:
    return "+".join(map(str, numbers))
