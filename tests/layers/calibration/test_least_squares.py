"""The solver against the textbook: normal equations, and a bound that holds."""

from __future__ import annotations

import numpy as np

from flashbed.answers.analysis.least_squares import non_negative

SYSTEM = np.array([[1.0, 1e6], [1.0, 2e6], [1.0, 3e6], [1.0, 5e6]])


def test_inside_its_bounds_it_is_ordinary_least_squares() -> None:
    """Columns of very different units, which must not cost digits."""
    wanted = np.array([3.1, 4.9, 7.2, 10.8])
    found = non_negative(SYSTEM, wanted)
    inverse = np.linalg.inv(SYSTEM.T @ SYSTEM)
    values = inverse @ SYSTEM.T @ wanted
    left = SYSTEM @ values - wanted
    assert np.allclose(found.values, values)
    assert np.allclose(found.residual, left)
    assert np.allclose(found.covariance, (left @ left) / 2 * inverse)
    assert np.allclose(found.standard_errors**2, np.diag(found.covariance))


def test_what_ends_at_zero_is_known_to_be_nothing_else() -> None:
    """It would fall by the second column; only the first is left, three values free."""
    wanted = np.array([9.0, 8.0, 7.0, 6.0])
    found = non_negative(SYSTEM, wanted)
    assert np.isclose(found.values[0], 7.5)
    assert found.values[1] == 0.0
    assert found.standard_errors[1] == 0.0
    assert np.isclose(found.variance, 5.0 / 3)
    assert np.isclose(found.standard_errors[0], np.sqrt(5.0 / 3 / 4))
