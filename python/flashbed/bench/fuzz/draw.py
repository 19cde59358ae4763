"""Random choices that are the same on every machine and in every Python version.

It uses only `random.Random.random`, the one method whose sequence Python promises to keep.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

__all__ = ["Draw"]

_T = TypeVar("_T")


class Draw:
    """A sequence of choices; its name is the seed."""

    def __init__(self, name: str) -> None:
        self._random = random.Random(name).random

    def between(self, first: int, last: int) -> int:
        """A whole number from `first` to `last`, both included."""
        return first + int(self._random() * (last - first + 1))

    def chance(self, percent: int) -> bool:
        """True with a probability in percent."""
        return self._random() * 100 < percent

    def pick(self, choices: Sequence[_T]) -> _T:
        """One of the choices, all equally likely."""
        return choices[int(self._random() * len(choices))]

    def weighted(self, weights: Mapping[_T, int]) -> _T:
        """One of the choices, by weight; not all weights are 0."""
        place = self._random() * sum(weights.values())
        for choice, weight in weights.items():
            if place < weight:
                return choice
            place -= weight
        raise AssertionError("beyond the sum of all weights")
