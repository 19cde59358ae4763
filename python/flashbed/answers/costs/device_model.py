"""The file of a device model: `flashbed-model 2` of docs/reference/cost-model.md.

It has what file systems do for a program's calls, and no time: times come from a board's chip and
prices. A prediction x of a quantity has a band of 1.96 times its `scatter` times x (times 1, if x
is less).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from flashbed.answers.costs.counting import TERMS
from flashbed.answers.costs.logs import STORED_STEPS
from flashbed.answers.costs.model import (
    MODEL_BYTES_MAX,
    CostSource,
    Count,
    ModelPart,
    NotNegative,
    load_as,
)
from flashbed.base.files import read_text

__all__ = [
    "CHIP_EVENTS",
    "FEW",
    "PREDICTED",
    "READ_EVENTS",
    "DeviceErrors",
    "DeviceModel",
    "FsModel",
    "is_device_model",
    "load_devices",
]  # fmt: skip

PREDICTED = {
    "time_ns": "ns", "page_reads": "operations", "page_writes": "operations",
    "erases": "operations",
}  # fmt: skip
"""The predicted quantities, named as in `flashbed compare`, and their units."""
CHIP_EVENTS = ("page_writes", "call_writes")
"""Pages written with the `sync()` after the program, and within its calls."""
READ_EVENTS = ("page_reads", "call_reads")
"""Reads likewise. Each is three events, as drivers read differently: `:part` where code works ECC
out by parts of pages, `:buffered` on raw NAND that reads whole pages and keeps the last one,
`:direct` on SPI-NAND."""
FEW = 10
"""DeviceErrors of erases are of cases with so many at least: one erase is a whole block."""
Coefficients = dict[str, NotNegative]
"""Term -> how much of an event one of it makes."""


class DeviceErrors(ModelPart):
    """How far predictions of a chip that was left out of the fit are off, in percent."""

    cases: Count
    scatter: NotNegative
    mean_pct: NotNegative
    worst_pct: NotNegative


class FsModel(ModelPart):
    """A file system: how often each event occurs in a unit of each term, prices by their keys.

    `stored` is the share of a page that it stores, of which 0, 5, … 100 % can be saved. `retried`
    says for pieces of 1, 2 and 4 KiB how often it tries a second compressor then.
    """

    stored: tuple[NotNegative, ...]
    retried: Annotated[tuple[tuple[NotNegative, ...], ...], Field(min_length=3, max_length=3)]
    events: dict[str, Coefficients]
    erases_a_commit: NotNegative
    errors: dict[str, DeviceErrors]

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if {len(each) for each in (self.stored, *self.retried)} != {STORED_STEPS + 1}:
            raise ValueError(f"stored, retried: not {STORED_STEPS + 1} values")
        terms = {name for event in self.events.values() for name in event}
        if not terms <= set(TERMS) or not set(CHIP_EVENTS) <= set(self.events):
            raise ValueError("events: other events or terms than those of this version")
        if set(self.errors) != set(PREDICTED):
            raise ValueError(f"errors: not {', '.join(PREDICTED)}")
        return self


class DeviceModel(ModelPart):
    """The whole file. `fitted_to` names boards and chips, `kernel` the kernel of all of them."""

    format: Literal["flashbed-model 2"] = "flashbed-model 2"
    flashbed_version: str
    kernel: str
    kernel_sha256: str
    sources: tuple[CostSource, ...]
    fitted_to: tuple[str, ...]
    systems: Annotated[dict[str, FsModel], Field(min_length=1)]


def is_device_model(path: Path) -> bool:
    """Whether a file says that it is one."""
    return '"flashbed-model 2"' in read_text(path, MODEL_BYTES_MAX)[:200]


def load_devices(path: Path) -> DeviceModel:
    """Reads a model. Raises `InputError` with one line for anything else."""
    return load_as(DeviceModel, path, "flashbed cost fit EXPERIMENT")
