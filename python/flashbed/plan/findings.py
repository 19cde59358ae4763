"""A finding: a sentence of a report with measured numbers filled in.

This is the model of `[[finding]]` (experiments/README.md). In other texts, `numbers`
are part of the text and a test recomputes them. A finding has no numbers of its own. A report omits
it if its tables lack one of the numbers, or if one violates the finding's condition.
report/stated_findings.py fills them in.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from flashbed.base.toml import Strict
from flashbed.plan.quantities import TargetNumber, placeholders
from flashbed.stack.names import Label, Text

__all__ = ["Finding", "FindingNumber"]


class FindingNumber(TargetNumber):
    """`[finding.numbers.NAME]`: with a `label` it is a bar of the finding's small figure.

    The finding appears only if the value is more than `above` and less than `below`.
    """

    label: Text | None = None
    above: float | None = Field(default=None, strict=False)
    below: float | None = Field(default=None, strict=False)

    def fits(self, value: float) -> bool:
        """Whether the finding's condition holds for this value."""
        too_low = self.above is not None and value <= self.above
        return not too_low and not (self.below is not None and value >= self.below)


class Finding(Strict):
    """`[[finding]]`: `text` has places `{NAME}` for the numbers; `unit` is the bars' unit.

    `see` is the figure or claim of this experiment that shows more. With `on_index` the finding is
    also on the page of all results.
    """

    id: Label
    text: Text
    unit: Text
    see: Label | None = None
    on_index: bool = False
    numbers: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], FindingNumber]

    @model_validator(mode="after")
    def _named(self) -> Self:
        places = placeholders(self.text)
        for name in sorted(places - self.numbers.keys()):
            raise ValueError(f"numbers.{name}: missing")
        for name in sorted(self.numbers.keys() - places):
            if self.numbers[name].label is None:
                raise ValueError(f"numbers.{name}: unused: no text names it and it has no label")
        return self
