"""A source held against itself: arithmetic on its own numbers, beside the number that it prints.

This is the model of `[[cross_check]]` of a study (experiments/README.md). A number
is either written in the row or the `published` number of a claim, with the range that its digits
leave open, so that no number of a source is typed twice. The result has the range of all corners of
its inputs.
"""

from __future__ import annotations

import ast
import itertools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import Field, model_validator

from flashbed.base.toml import Strict
from flashbed.plan.claims import Claim
from flashbed.stack.names import Label, Text

__all__ = ["CheckedRow", "CrossCheck", "CrossCheckRow", "Ranged", "checked"]

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
Term = float | str
"""A number, or EXPERIMENT/CLAIM, of another study STUDY/EXPERIMENT/CLAIM."""


class CrossCheckRow(Strict):
    """`[[cross_check.row]]`: the values of the formula's names, and the number that is printed."""

    name: Text
    values: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], Term]
    printed: Term


class CrossCheck(Strict):
    """`[[cross_check]]`: `formula` is arithmetic with + - * / over the names of a row's values.

    With `digits` the values are taken as printed, with so many decimals; without, the range of a
    claim's number is the claim's.
    """

    id: Label
    title: Text
    text: Text
    formula: Text
    digits: Annotated[int, Field(ge=0, le=6)] | None = None
    unit: Text
    row: Annotated[tuple[CrossCheckRow, ...], Field(min_length=1, strict=False)]

    @model_validator(mode="after")
    def _computable(self) -> Self:
        names = {node.id for node in ast.walk(_parsed(self.formula)) if isinstance(node, ast.Name)}
        for row in self.row:
            odd = sorted(names ^ row.values.keys())
            if odd:
                raise ValueError(f"row {row.name!r}: values: {odd[0]} is not in both")
        return self

    @property
    def claims(self) -> list[str]:
        """The claims whose published numbers it takes, as they are named."""
        terms = [term for row in self.row for term in (*row.values.values(), row.printed)]
        return list(dict.fromkeys(term for term in terms if isinstance(term, str)))


@dataclass(frozen=True)
class Ranged:
    """A number of a source, and what its digits leave open."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, claim: Claim, digits: int | None) -> Ranged:
        """The number that a claim has from its source. Raises `ValueError` if it has none."""
        if claim.published is None:
            raise ValueError(f"claim {claim.id}: has no published number")
        if digits is not None:
            half = 0.5 * 0.1**digits
            return cls(claim.published, claim.published - half, claim.published + half)
        low = claim.published if claim.low is None else claim.low
        high = claim.published if claim.high is None else claim.high
        return cls(claim.published, low, high)


@dataclass(frozen=True)
class CheckedRow:
    """A row with what its formula gives."""

    name: str
    computed: Ranged
    printed: Ranged

    @property
    def fits(self) -> bool:
        """Whether some reading of the digits gives what is printed."""
        return self.computed.low <= self.printed.high and self.printed.low <= self.computed.high


def checked(check: CrossCheck, claims: Mapping[str, Claim]) -> list[CheckedRow]:
    """The rows of a check. `claims` has those that it names. Raises `ValueError`."""
    formula = _parsed(check.formula)

    def number(term: Term) -> Ranged:
        if isinstance(term, str):
            return Ranged.of(claims[term], check.digits)
        return Ranged(term, term, term)

    rows = []
    for row in check.row:
        terms = {name: number(term) for name, term in row.values.items()}
        ends = [{one.low, one.high} for one in terms.values()]
        corners = [
            _value(formula, dict(zip(terms, corner, strict=True)))
            for corner in itertools.product(*ends)
        ]
        middle = _value(formula, {name: one.value for name, one in terms.items()})
        computed = Ranged(middle, min(corners), max(corners))
        rows.append(CheckedRow(row.name, computed, number(row.printed)))
    return rows


def _parsed(formula: str) -> ast.expr:
    try:
        parsed = ast.parse(formula, mode="eval").body
    except SyntaxError:
        raise ValueError(f"formula: {formula!r} is no arithmetic") from None
    for node in ast.walk(parsed):
        known = isinstance(node, ast.Name | ast.expr_context | ast.BinOp | ast.Constant)
        if not known and type(node) not in _OPERATORS:
            raise ValueError(f"formula: {formula!r} has more than names, numbers and + - * /")
    return parsed


def _value(node: ast.expr, names: Mapping[str, float]) -> float:
    if isinstance(node, ast.BinOp):
        combine = _OPERATORS[type(node.op)]
        return combine(_value(node.left, names), _value(node.right, names))
    if isinstance(node, ast.Name):
        return names[node.id]
    assert isinstance(node, ast.Constant)
    return float(node.value)  # type: ignore[arg-type]
