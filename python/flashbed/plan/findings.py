"""A finding: a sentence of a report whose numbers are those that were measured.

The model of `[[finding]]` (docs/experiments.md). The numbers of `numbers` in other texts are part
of the text and computed again by a test; a finding has no numbers of its own, and is left out of a
report whose tables do not have them, or have others than it is about. What it comes to is
report/found.py's.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from flashbed.formats.names import Label, Text
from flashbed.formats.toml import Strict
from flashbed.plan.quantities import Sought, placeholders

__all__ = ["Finding", "FindingNumber"]


class FindingNumber(Sought):
    """`[finding.numbers.NAME]`: with a `label` it is a bar of the finding's small figure.

    The finding is only said of a value that is more than `above` and less than `below`.
    """

    label: Text | None = None
    above: float | None = Field(default=None, strict=False)
    below: float | None = Field(default=None, strict=False)

    def fits(self, value: float) -> bool:
        """Whether the sentence is about such a value."""
        too_low = self.above is not None and value <= self.above
        return not too_low and not (self.below is not None and value >= self.below)


class Finding(Strict):
    """`[[finding]]`: `text` has the numbers in the places `{NAME}`; `unit` is that of the bars.

    `see` is the figure or claim of this experiment that shows more. With `on_index` the page of all
    results has it too.
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
                raise ValueError(f"numbers.{name}: in no text, and no bar: it has no label")
        return self
