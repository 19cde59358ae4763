"""`[[grid]]`: lists of values whose product is the cases.

Its keys are the axes; they follow from the fields of `Case` (plan/case.py).
"""

from __future__ import annotations

import itertools
import math
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, create_model, model_validator

from flashbed.base.toml import Strict
from flashbed.plan.axes import REQUIRED, Axis
from flashbed.plan.case import AXES
from flashbed.plan.planned import Product

__all__ = ["LIST", "Grid", "TargetName"]

LIST = Field(min_length=1, strict=False)  # TOML has lists, a frozen model has tuples
TargetName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*$")]
TargetNames = Annotated[tuple[TargetName, ...], LIST]


class _Grid(Strict):
    """The only key that is no axis: the targets that run the cases."""

    targets: TargetNames

    def of(self, axis: str) -> tuple[Any, ...]:
        """The values of an axis; empty if the grid leaves it to `[workload]`."""
        values: tuple[Any, ...] | None = getattr(self, axis)
        return values or ()

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        for name, about in AXES.items():
            for fs, value in itertools.product(self.of("fs"), self.of(name)):
                why = about.unfit(fs, value)
                if why is not None:
                    raise ValueError(f"{name}: {why}")
        return self

    @property
    def cases(self) -> int:
        """The number of its cases; some may occur twice."""
        return math.prod(len(self.of(name)) or 1 for name in AXES)

    def product(self, experiment: str, file_bytes: int, request_bytes: int) -> Product:
        """Its cases; the sizes come from `[workload]`."""
        sizes = {"file_bytes": file_bytes, "request_bytes": request_bytes}
        return Product(experiment, tuple(self.of(name) or (sizes[name],) for name in AXES))


def _one_or_more(given: Any) -> Any:
    """Accepts one table in place of a list of tables."""
    return [given] if isinstance(given, dict) else given


def _key(about: Axis) -> tuple[Any, Any]:
    """An axis as a key of `[[grid]]`: its type and its default."""
    values = tuple[about.type, ...]  # type: ignore[name-defined]
    if about.of_workload:
        return Annotated[values, LIST] | None, None
    usual = ... if about.usual is REQUIRED else (about.usual,)
    if about.is_table:
        return Annotated[values, LIST, BeforeValidator(_one_or_more)], usual
    return Annotated[values, LIST], usual


Grid: type[_Grid] = create_model(
    "Grid", __base__=_Grid, **{name: _key(about) for name, about in AXES.items()}
)  # type: ignore[call-overload]
"""`targets` and every axis, a list each; `state` and other tables may be one or a list."""
