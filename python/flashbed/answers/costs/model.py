"""The file of a cost model: `flashbed-model 1` of docs/reference/cost-model.md.

Every value has its unit, and fitted values have uncertainties. A prediction x has a variance of
`scatter` squared times its value squared (or times 1, if the value is less than one unit), plus
x'Cx with its `covariance`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from flashbed.answers.costs.terms import TERMS
from flashbed.base.errors import InputError
from flashbed.base.files import read_text
from flashbed.base.paths import shown
from flashbed.base.toml_errors import wrong_lines
from flashbed.results.plausible import NUMBER_MAX

__all__ = [
    "MODEL_BYTES_MAX",
    "QUANTITIES",
    "CostModel",
    "CostSource",
    "Count",
    "Model",
    "ModelPart",
    "NotNegative",
    "Prices",
    "Ranges",
    "Setting",
    "load",
    "load_as",
]  # fmt: skip

MODEL_BYTES_MAX = 16 << 20
Kind = TypeVar("Kind", bound=BaseModel)
REAL_MAX = 1e30
"""Limit of a price or a variance: products of several stay finite."""
QUANTITIES = {
    "time_ns": "ns",
    "flash_reads": "operations",
    "flash_programs": "operations",
    "flash_erases": "operations",
    "energy_nj": "nJ",
    "component_energy_nj": "nJ",
}
"""The predicted columns of `cases`, and their units."""

Count = Annotated[int, Field(ge=0, le=NUMBER_MAX)]
Bounds = tuple[Count, Count]
Real = Annotated[float, Field(ge=-REAL_MAX, le=REAL_MAX, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, le=REAL_MAX, allow_inf_nan=False)]


class ModelPart(BaseModel):
    """A part of a file; its keys are all known."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Setting(ModelPart):
    """What must be equal for costs to be equal: the axes that no term covers.

    `database` is its word (docs/models/sqlite.md), without what `Ranges` has.
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


class Ranges(ModelPart):
    """Ranges of the fitted tables; nothing is predicted outside. `terms` has maxima."""

    requests: Bounds
    request_bytes: Bounds
    page_bytes: Annotated[tuple[Count, ...], Field(min_length=1)]
    cache_pages: Bounds
    records: Bounds
    terms: dict[str, NotNegative]


class Prices(ModelPart):
    """The price of one of each term, in `unit`, and how well the prices explain the cases.

    Errors are in percent of the case's value (of 1 unit, if that is more). `held_out_within` is the
    share of held-out cases within the band of their prediction.
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


class CostModel(ModelPart):
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


class CostSource(ModelPart):
    """A run whose tables were used."""

    experiment: str
    experiment_sha256: str | None
    commit: str | None
    cases: Count


class Model(ModelPart):
    """The whole file."""

    format: Literal["flashbed-model 1"] = "flashbed-model 1"
    flashbed_version: str
    sources: tuple[CostSource, ...]
    models: Annotated[tuple[CostModel, ...], Field(min_length=1)]


def load(path: Path) -> Model:
    """Reads a model. Raises `InputError` with one line for anything else."""
    return load_as(Model, path, "flashbed cost fit")


def load_as(kind: type[Kind], path: Path, made_by: str) -> Kind:
    """Reads a model of a kind. Raises `InputError` with one line, which names what makes it."""
    text = read_text(path, MODEL_BYTES_MAX)
    try:
        return kind.model_validate_json(text)
    except ValidationError as why:
        lines = wrong_lines(kind, why)
        said = next((line for line in lines if line.startswith("format: ")), lines[0])
        raise InputError(f"{shown(path)}: not a model of `{made_by}`: {said}") from None
