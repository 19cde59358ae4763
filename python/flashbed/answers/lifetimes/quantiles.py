"""Quantiles of the gamma and Student's t distribution, by Newton's method on their integrals.

A library for these two would be half as large as everything else that is installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

__all__ = ["gamma_quantile", "student_quantile"]

_TINY = 1e-300
_EXACT = 1e-16
_STEPS = 10_000_000
_STEPS_OF_NEWTON = 400
_CLOSE = 1e-14
_LARGE = 3e5
"""From here on the approximation is right to eight digits."""


def gamma_quantile(shape: float, probability: float) -> float:
    """The value below which a gamma variable of this shape and scale 1 lies with a probability."""
    # Wilson and Hilferty (1931): the cube root is nearly normal.
    normal = NormalDist().inv_cdf(probability)
    root = 1 - 1 / (9 * shape) + normal / (3 * math.sqrt(shape))
    guess = shape * max(root, 0.01) ** 3
    if shape > _LARGE:
        return guess
    log = math.lgamma(shape)

    def density(value: float) -> float:
        return math.exp((shape - 1) * math.log(value) - value - log)

    return _inverse(lambda value: _gamma_below(shape, value), density, probability, guess)


def student_quantile(freedom: float, probability: float) -> float:
    """The value below which Student's t lies with a probability above 1/2."""
    log = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    scale = math.exp(log) / math.sqrt(freedom * math.pi)

    def below(value: float) -> float:
        return 1.0 - _beta_below(freedom / 2, 0.5, freedom / (freedom + value * value)) / 2

    def density(value: float) -> float:
        return float(scale * (1 + value * value / freedom) ** (-(freedom + 1) / 2))

    return _inverse(below, density, probability, NormalDist().inv_cdf(probability))


def _inverse(
    below: Callable[[float], float],
    density: Callable[[float], float],
    probability: float,
    guess: float,
) -> float:
    """Newton's method; a step out of the interval is replaced by its middle."""
    low, high, at = 0.0, math.inf, guess
    for _ in range(_STEPS_OF_NEWTON):
        error = below(at) - probability
        low, high = (low, at) if error > 0 else (at, high)
        slope = density(at)
        step = at - error / slope if slope > 0 else low
        if not low < step < high:
            step = (low + high) / 2 if high < math.inf else at * 2
        if abs(step - at) <= _CLOSE * at:
            return step
        at = step
    return at


def _gamma_below(shape: float, value: float) -> float:
    """The regularised lower incomplete gamma function: a series, or a continued fraction."""
    if value <= 0:
        return 0.0
    scale = math.exp(shape * math.log(value) - value - math.lgamma(shape))
    if value < shape + 1:
        term = total = 1 / shape
        for step in range(1, _STEPS):
            term *= value / (shape + step)
            total += term
            if term < total * _EXACT:
                break
        return total * scale

    b = value + 1 - shape
    c, d = 1 / _TINY, 1 / b
    fraction = d
    for step in range(1, _STEPS):
        a = -step * (step - shape)
        b += 2
        d = 1 / _away(a * d + b)
        c = _away(b + a / c)
        fraction *= d * c
        if abs(d * c - 1) < _EXACT * 8:
            break
    return 1 - scale * fraction


def _beta_below(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function: a continued fraction."""
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_below(b, a, 1 - x)
    if x <= 0:
        return 0.0
    log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    scale = math.exp(log + a * math.log(x) + b * math.log1p(-x)) / a
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away(1 + term * d)
            c = _away(1 + term / c)
            fraction *= d * c
        if abs(d * c - 1) < _EXACT * 8:
            break
    return scale * fraction


def _away(value: float) -> float:
    """A divisor, moved away from 0."""
    return value if abs(value) > _TINY else _TINY
