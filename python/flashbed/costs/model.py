"""The file a cost model is kept in: `flashbed-model 1` of docs/models.md.

Everything in it has its unit, and what was fitted says how sure it is: a prediction x has the
variance `scatter` squared times its value squared (or that of one unit, if it is less), and x'Cx of
its `covariance`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from flashbed.costs.terms import TERMS
from flashbed.errors import InputError
from flashbed.formats.toml_errors import wrong_lines
from flashbed.paths import shown
from flashbed.storage.files import read_text
from flashbed.tables.plausible import NUMBER_MAX

__all__ = ["QUANTITIES", "CostModel", "Model", "Prices", "Ranges", "Setting", "Source", "load"]

MODEL_BYTES_MAX = 16 << 20
REAL_MAX = 1e30
"""Of a price or a variance: products of some of them are still numbers."""
QUANTITIES = {
    "time_ns": "ns",
    "flash_reads": "operations",
    "flash_programs": "operations",
    "flash_erases": "operations",
    "energy_nj": "nJ",
    "component_energy_nj": "nJ",
}
"""What is predicted, by its column of `cases`, and its unit."""

Count = Annotated[int, Field(ge=0, le=NUMBER_MAX)]
Bounds = tuple[Count, Count]
Real = Annotated[float, Field(ge=-REAL_MAX, le=REAL_MAX, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, le=REAL_MAX, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Setting(_Strict):
    """What has to be the same for costs to be: the axes of a case that no term is made of.

    `database` is written as its word (docs/sqlite.md), without what `Ranges` has.
    """

    target: str
    board: str
    kernel: str
    fs: str
    read_ahead_kib: Annotated[int, Field(ge=0, le=1 << 20)]
    mount: str
    state: str
    faults: str
    database: str


class Ranges(_Strict):
    """What the tables had; beyond it nothing is predicted. `terms` are the largest of each."""

    requests: Bounds
    request_bytes: Bounds
    page_bytes: Annotated[tuple[Count, ...], Field(min_length=1)]
    cache_pages: Bounds
    records: Bounds
    terms: dict[str, NotNegative]


class Prices(_Strict):
    """What one of each of the model's terms costs, in `unit`, and how well that explains cases.

    Errors are in percent of the case's value (of 1 unit, where it is less). `held_out_within` is
    the share of the held out cases that are inside the band of their prediction.
    """

    unit: str
    prices: dict[str, NotNegative]
    standard_errors: dict[str, NotNegative]
    covariance: tuple[tuple[Real, ...], ...]
    scatter: NotNegative
    residual_mean_pct: NotNegative
    residual_max_pct: NotNegative
    held_out_mean_pct: NotNegative
    held_out_max_pct: NotNegative
    held_out_within: NotNegative


class CostModel(_Strict):
    """Requests of one kind in one setting. A quantity that the tables do not know is null."""

    setting: Setting
    pattern: str
    board_sha256: str
    kernel_sha256: str
    energy_convention: str | None
    cases: Count
    held_out_cases: Count
    held_out_requests: tuple[int, ...]
    held_out_request_bytes: tuple[int, ...]
    ranges: Ranges
    terms: tuple[str, ...]
    quantities: dict[str, Prices | None]

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if tuple(self.quantities) != tuple(QUANTITIES):
            raise ValueError(f"quantities: not {', '.join(QUANTITIES)}")
        size = len(self.terms)
        for name, found in self.quantities.items():
            if found is None:
                continue
            rows = (len(found.covariance), *(len(row) for row in found.covariance))
            if tuple(found.prices) != self.terms or set(rows) != {size}:
                raise ValueError(f"quantities.{name}: other terms than the model's")
        if set(self.ranges.terms) != set(TERMS) or not set(self.terms) <= set(TERMS):
            raise ValueError("ranges.terms: other terms than those of this version")
        return self


class Source(_Strict):
    """A run the tables are of."""

    experiment: str
    experiment_sha256: str | None
    commit: str | None
    cases: Count


class Model(_Strict):
    """The whole file."""

    format: Literal["flashbed-model 1"] = "flashbed-model 1"
    flashbed_version: str
    sources: tuple[Source, ...]
    models: Annotated[tuple[CostModel, ...], Field(min_length=1)]


def load(path: Path) -> Model:
    """Raises `InputError` with one line for a file that is none."""
    text = read_text(path, MODEL_BYTES_MAX)
    try:
        return Model.model_validate_json(text)
    except ValidationError as why:
        said = wrong_lines(Model, why)[0]
        raise InputError(f"{shown(path)}: not a model of `flashbed cost fit`: {said}") from None
