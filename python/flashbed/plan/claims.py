"""A sentence of a source as an inequality: the model of `[[claim]]`.

A claim is judged with the source's own precision: what its printed digits, the resolution of its
figure or its own samples leave open (experiments/README.md).
answers/analysis/verdicts.py judges it on a target.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from flashbed.base.toml import Strict
from flashbed.plan.grid import LIST, TargetName
from flashbed.plan.quantities import FileSystems, Numbers, ReducedMetric
from flashbed.plan.quantities import check_numbers as _check_numbers
from flashbed.plan.quantities import filled as _filled
from flashbed.stack.names import Label, Name, Text

__all__ = ["Claim", "Differs", "Direction"]

TestName = Annotated[str, Field(pattern=r"^tests/[a-z0-9_/]+\.py::test_[a-z0-9_]+$")]


class Direction(Strict):
    """`direction`: what a sentence says apart from its number, as an inequality of its value."""

    operator: Literal[">", ">=", "<", "<="]
    bound: float = Field(strict=False)


class Differs(Strict):
    """`[[claim.differs]]`: why a verdict is less than `agrees`, and what was run to show it.

    It applies to the targets `on`, to all file systems or those of `fs`, to the claim's kernel and
    those of `kernel`. The evidence is `numbers`, which are recomputed, or a `test`. If no run shows
    why, `tried` stands in place of `why`: the verdict is unexplained, and `tried` says what was
    varied in vain.
    """

    on: Annotated[tuple[TargetName, ...], LIST]
    fs: FileSystems | None = None
    kernel: Annotated[tuple[Name, ...], LIST] | None = None
    why: Text | None = None
    tried: Text | None = None
    evidence: Text
    numbers: Numbers = Field(default_factory=dict)
    test: TestName | None = None

    @model_validator(mode="after")
    def _named(self) -> Self:
        if (self.why is None) == (self.tried is None):
            raise ValueError("why: either it, or tried if no run shows why")
        _check_numbers([self.why, self.tried, self.evidence], self.numbers)
        return self

    @property
    def unexplained(self) -> bool:
        """Whether no run shows why."""
        return self.tried is not None

    @property
    def explanation(self) -> tuple[str, str]:
        """Why, or what was tried, and the evidence, with numbers filled in."""
        shown = f" ({self.test})" if self.test else ""
        reason = _filled(self.why or self.tried or "", self.numbers)
        return reason, _filled(self.evidence, self.numbers) + shown


class Claim(ReducedMetric):
    """`[[claim]]`: a sentence of the source as an inequality over `reduce(metric)`.

    `published` is the source's number, null if it gives none. With `operator = "within"` the value
    agrees from `low` to `high`, the range that the source's precision leaves open; with another
    operator it is compared with `bound`. `direction` is the sentence without its number. `derived`
    says which constants of the source the value follows from, with nothing simulated in between.
    `fitted` names the constant of a profile that was fitted to the source's number. `unmeasured`
    says why a target has the points and still does not measure the sentence. `stays` argues why the
    verdict may stay when one side of the comparison moves by the source's precision. `reading` says
    how the sentence became the inequality and how precise it is. `item` names the figure, table or
    section, `comment` the result.
    """

    id: Label
    text: Text
    source: Text
    reading: Text
    published: float | None = Field(default=None, strict=False)
    unit: Text
    item: Label | None = None
    comment: Text | None = None
    numbers: Numbers = Field(default_factory=dict)
    differs: tuple[Differs, ...] = Field(default=(), strict=False)
    operator: Literal[">", ">=", "<", "<=", "within"]
    bound: float | None = Field(default=None, strict=False)
    low: float | None = Field(default=None, strict=False)
    high: float | None = Field(default=None, strict=False)
    direction: Direction | None = None
    derived: Text | None = None
    fitted: Text | None = None
    stays: Text | None = None
    unmeasured: dict[TargetName, Text] = Field(default_factory=dict)
    also_kernels: tuple[str, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _judgeable(self) -> Self:
        if self.operator == "within":
            if self.low is None or self.high is None or self.bound is not None:
                raise ValueError("low, high: go with the operator `within`, in place of bound")
            if not self.low < self.high:
                raise ValueError(f"low, high: {self.low} is not below {self.high}")
            if self.published is not None and not self.low <= self.published <= self.high:
                raise ValueError(f"published: {self.published} is not between low and high")
        elif self.bound is None or (self.low, self.high) != (None, None):
            raise ValueError(f"bound: goes with the operator {self.operator}; low, high do not")
        if self.fitted is not None and (self.derived is not None or self.published is None):
            raise ValueError("fitted: goes with published, and not with derived")
        _check_numbers([self.comment], self.numbers)
        return self

    @property
    def filled_comment(self) -> str | None:
        """The comment with numbers filled in."""
        return _filled(self.comment, self.numbers) if self.comment else None
