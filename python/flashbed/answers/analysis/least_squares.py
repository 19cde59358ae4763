"""Non-negative least squares with standard errors: scipy's solver on scaled columns.

A coefficient that ends at its bound of zero has variance 0, and the variances of the others are
computed without it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

__all__ = ["Solution", "non_negative"]

_NOTHING = 1e-12
"""The solver's rounding, relative to the largest scaled value."""


@dataclass(frozen=True)
class Solution:
    """`residual` is system x values - wanted, in the units of the rows."""

    values: np.ndarray
    covariance: np.ndarray
    residual: np.ndarray

    @property
    def standard_errors(self) -> np.ndarray:
        """Standard errors of the values."""
        errors: np.ndarray = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return errors

    @property
    def variance(self) -> float:
        """Variance of a row: the residual's, per degree of freedom."""
        freedom = max(1, len(self.residual) - int((self.values > 0).sum()))
        return float(self.residual @ self.residual) / freedom


def non_negative(system: np.ndarray, wanted: np.ndarray) -> Solution:
    """Values of at least zero that minimise the squares of system x values - wanted."""
    scale = np.where(system.any(axis=0), np.linalg.norm(system, axis=0), 1.0)
    scaled, _ = nnls(system / scale, wanted)
    scaled[scaled < _NOTHING * scaled.max(initial=0.0)] = 0.0
    values = scaled / scale
    found = Solution(values, np.zeros((len(values), len(values))), system @ values - wanted)
    free = np.flatnonzero(values > 0)
    # Unscaled, the columns' units would decide which of them the pseudo-inverse takes for zero.
    columns = system[:, free] / scale[free]
    inverse = np.linalg.pinv(columns.T @ columns) / np.outer(scale[free], scale[free])
    found.covariance[np.ix_(free, free)] = found.variance * inverse
    return found
