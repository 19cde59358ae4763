"""Non-negative least squares with what is known of the solution: scipy's solver, scaled.

A coefficient that ends at its bound of zero is not known to be anything else: its variance is 0,
and those of the others are as if it were not there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

__all__ = ["Solution", "non_negative"]

_NOTHING = 1e-12
"""Of the largest value, scaled: the solver's rounding."""


@dataclass(frozen=True)
class Solution:
    """`residual` is system x values - wanted, in the units of the rows."""

    values: np.ndarray
    covariance: np.ndarray
    residual: np.ndarray

    @property
    def standard_errors(self) -> np.ndarray:
        """Of the values."""
        errors: np.ndarray = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return errors

    @property
    def variance(self) -> float:
        """Of a row, by what is left and how many values were free to leave it."""
        freedom = max(1, len(self.residual) - int((self.values > 0).sum()))
        return float(self.residual @ self.residual) / freedom


def non_negative(system: np.ndarray, wanted: np.ndarray) -> Solution:
    """The values, none below zero, with the least squares of system x values - wanted."""
    scale = np.where(system.any(axis=0), np.linalg.norm(system, axis=0), 1.0)
    scaled, _ = nnls(system / scale, wanted)
    scaled[scaled < _NOTHING * scaled.max(initial=0.0)] = 0.0
    values = scaled / scale
    found = Solution(values, np.zeros((len(values), len(values))), system @ values - wanted)
    free = np.flatnonzero(values > 0)
    # Scaled, or the columns' units would decide which of them the pseudo-inverse takes for zero.
    columns = system[:, free] / scale[free]
    inverse = np.linalg.pinv(columns.T @ columns) / np.outer(scale[free], scale[free])
    found.covariance[np.ix_(free, free)] = found.variance * inverse
    return found
