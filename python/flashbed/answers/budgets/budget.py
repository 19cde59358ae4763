"""A product: its programs and updates, the stacks they run on, and what they may cost the flash.

Reads and checks a product's file (docs/reference/product-file.md), which `flashbed lifetime` and
`flashbed check` take. limits_held.py judges what was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AliasChoices, Field, field_validator, model_validator

from flashbed.answers.budgets.limits_held import MEASURES
from flashbed.answers.lifetimes.given import UPDATE, rate_per_day
from flashbed.base.errors import InputError
from flashbed.base.files import read_text
from flashbed.base.paths import experiment_file
from flashbed.base.toml import TOML_BYTES_MAX, FromFile, Strict, loads, read_model, read_toml
from flashbed.stack.names import Label, Name, Text

__all__ = [
    "BudgetProgram",
    "BudgetStack",
    "BudgetUpdate",
    "Limits",
    "ProductBudget",
    "on_top",
    "product_file",
    "read_budget",
]

PRODUCT = "product"
"""The name of a product's file in its folder, without its end."""
_MS_MAX = 1e9
_COUNT_MAX = 10**12
Milliseconds = Annotated[float, Field(gt=0, le=_MS_MAX, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=_COUNT_MAX)]
Ratio = Annotated[float, Field(gt=0, le=_COUNT_MAX, allow_inf_nan=False)]
Years = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
_OTHER_NAMES = {
    "programs": "page_writes counts them",
    "reads": "page_reads counts them",
    "energy": "energy_mj has the unit",
    "time": "time_ms has the unit",
    "boot_ms": "no run measures how long mounting takes",
    "mount_ms": "no run measures how long mounting takes",
}
"""Keys that a user may expect -> what there is instead."""


class WearLimits(Strict):
    """Limits that programs on one flash can have together."""

    years: Years | None = None
    erases_per_day: Ratio | None = None

    @model_validator(mode="before")
    @classmethod
    def _refused(cls, values: Any) -> Any:
        for name in values if isinstance(values, dict) else ():
            if name in _OTHER_NAMES and name not in cls.model_fields:
                raise ValueError(f"{name}: unknown key: {_OTHER_NAMES[name]}")
        return values

    @property
    def given(self) -> dict[str, float]:
        """The limits that the file has."""
        return {name: value for name, value in self if value is not None}


class Limits(WearLimits):
    """`[limits]`: what one program may cost on one stack."""

    time_ms: Milliseconds | None = None
    p50_latency_ms: Milliseconds | None = None
    p99_latency_ms: Milliseconds | None = None
    worst_latency_ms: Milliseconds | None = None
    page_reads: Count | None = None
    page_writes: Count | None = None
    erases: Count | None = None
    amplification: Ratio | None = None
    energy_mj: Ratio | None = None
    failed_calls: Count | None = None
    bytes_free: Count | None = None


class BudgetStack(Strict):
    """`[[stack]]`: a name, and settings as `--set` writes them."""

    name: Label
    set: Annotated[tuple[Text, ...], Field(strict=False)] = ()


class BudgetProgram(Strict):
    """`[[program]]`: what runs, how often, and what it may cost."""

    name: Label
    run: Text | None = None
    command: Annotated[tuple[Text, ...], Field(min_length=1, strict=False)] | None = None
    rate: Text | None = Field(None, validation_alias=AliasChoices("rate", "repeat"))
    """Until version 0.2 also under its old name, `repeat`."""
    set: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.run is None) == (self.command is None):
            raise ValueError("either run or command: a recording or experiment, or a command line")
        return self

    @field_validator("rate")
    @classmethod
    def _known_rate(cls, given: str | None) -> str | None:
        return None if given is None else _checked_rate(given)

    @property
    def runs_per_day(self) -> float | None:
        """How often a day it runs."""
        return None if self.rate is None else rate_per_day(self.rate)


class BudgetUpdate(Strict):
    """`[[update]]`: a volume of the layout that is written whole, and how often."""

    volume: Name
    rate: Text

    @field_validator("rate")
    @classmethod
    def _known_rate(cls, given: str) -> str:
        return _checked_rate(given)

    @property
    def name(self) -> str:
        """How the output calls it: as the command line does."""
        return f"{UPDATE}{self.volume}"


class ProductBudget(FromFile):
    """A whole file."""

    name: Label | None = None
    watched: Annotated[tuple[Text, ...], Field(min_length=1, strict=False)] = tuple(MEASURES)
    limits: Limits = Limits()
    stack: Annotated[tuple[BudgetStack, ...], Field(min_length=1, strict=False)]
    program: Annotated[tuple[BudgetProgram, ...], Field(min_length=1, strict=False)]
    update: Annotated[tuple[BudgetUpdate, ...], Field(strict=False)] = ()
    together: WearLimits = WearLimits()

    @field_validator("watched")
    @classmethod
    def _measures(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for name in given:
            if name not in MEASURES:
                raise ValueError(f"{name}: no measure; there are {', '.join(MEASURES)}")
        return given

    @model_validator(mode="after")
    def _names_once(self) -> Self:
        for what, names in (
            ("stack", [each.name for each in self.stack]),
            ("program", [each.name for each in self.program]),
            ("update", [each.volume for each in self.update]),
        ):
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                of = "of" if what == "update" else "called"
                raise ValueError(f"{what}: two of them are {of} {twice}")
        if self.together.given:
            rateless = [each.name for each in self.program if each.rate is None]
            if rateless:
                raise ValueError(
                    f'together: how often does {rateless[0]} run? rate = "1/h" says once an hour'
                )
        return self

    @property
    def title(self) -> str:
        """What the product is called."""
        return self.name or self.path.stem

    @property
    def baseline(self) -> Path:
        """Where the baseline stands."""
        return self.path.with_suffix(".baseline.json")

    def limits_of(self, program: BudgetProgram) -> dict[str, float]:
        """The limits of a program: its own, else those of all."""
        return {**self.limits.given, **program.limits.given}

    def settings_of(
        self, stack: BudgetStack, program: BudgetProgram, more: Sequence[str] = ()
    ) -> list[str]:
        """The settings of a program on a stack; `more` is of `--set`."""
        return on_top([*stack.set, *program.set], more)

    def what(self, program: BudgetProgram) -> str:
        """The file or experiment that a program without a command is."""
        assert program.run is not None
        beside = self.path.parent / program.run
        return str(beside) if _is_there(beside) else program.run


def on_top(settings: Sequence[str], more: Sequence[str]) -> list[str]:
    """Settings with others, each in the place of the one that has its name."""
    named = {each.partition("=")[0] for each in more}
    return [*(each for each in settings if each.partition("=")[0] not in named), *more]


def product_file(name: str) -> Path | None:
    """The file of a product: by its path, or STUDY/NAME of those that ship; None for none."""
    path = Path(name)
    if path.suffix != ".toml":
        path = experiment_file(f"{name}/{PRODUCT}")
    if not _is_there(path):
        return None
    try:
        values = loads(read_text(path, TOML_BYTES_MAX, InputError))
    except (InputError, RecursionError, ValueError):  # said by what reads it next
        return None
    is_one = "experiment" not in values and {"stack", "program", "update"} & values.keys()
    return path if is_one else None


def read_budget(path: Path) -> ProductBudget:
    """Reads a product's file. Raises `InputError`, which names file and key."""
    values = read_toml(path, InputError)
    budget = read_model(ProductBudget, values, path, InputError)
    budget._path = path
    return budget


def _checked_rate(given: str) -> str:
    """A rate that can be one. Raises `ValueError`."""
    try:
        rate_per_day(given)
    except InputError as why:
        raise ValueError(str(why).removeprefix("--rate ")) from None
    return given


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that no file can have
        return False
