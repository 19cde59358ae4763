"""Quantiles are those of scipy, which a plain installation does without."""

from __future__ import annotations

import pytest
from scipy.special import gammaincinv, stdtrit

from flashbed.answers.lifetimes.quantiles import gamma_quantile, student_quantile


@pytest.mark.parametrize("shape", [0.5, 1.0, 2.0, 3.7, 10.0, 100.0, 1e3, 1e5, 1e6])
@pytest.mark.parametrize("probability", [1e-6, 0.0013, 0.025, 0.5, 0.975, 0.9987, 0.999999])
def test_the_gamma_distribution(shape: float, probability: float) -> None:
    expected = float(gammaincinv(shape, probability))
    assert gamma_quantile(shape, probability) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("freedom", [1, 2, 3, 5, 9, 30, 100])
def test_the_distribution_of_student(freedom: int) -> None:
    expected = float(stdtrit(freedom, 0.975))
    assert student_quantile(freedom, 0.975) == pytest.approx(expected, rel=1e-10)
