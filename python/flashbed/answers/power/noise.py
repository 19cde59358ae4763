"""Statistics of noise: a level robust to outliers, and the uncertainty of a mean of samples.

The standard error of a mean of n samples with noise s is s * sqrt(tau / n). tau is the integrated
autocorrelation time in samples (1 for white noise), summed up to a lag of five times itself
(Sokal's window). Invariant: nothing here is random or depends on the order of files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flashbed.answers.power.recording import Floats

__all__ = ["LEVELS_MIN", "Level", "autocorrelation_time", "clipped", "level", "quantum"]

LEVELS_MIN = 4
"""With fewer levels the noise cannot be estimated."""
_OUTLIER = 5.0
_MAD = 1.4826  # median absolute deviation -> standard deviation of a normal distribution


@dataclass(frozen=True, kw_only=True)
class Level:
    """A line through samples: its value at their mean time, its slope, and the residuals.

    `kept` is the share of samples that were no outliers.
    """

    time_s: float
    mean_w: float
    slope_w_s: float
    residual_w: Floats
    kept: float


def level(time_s: Floats, power_w: Floats) -> Level:
    """A line by least squares, without outliers beyond five standard deviations (by MAD)."""
    kept = np.ones(power_w.size, dtype=bool)
    line = np.polynomial.Polynomial([float(np.median(power_w))])
    for _ in range(4):
        residual = power_w - line(time_s)
        centre = float(np.median(residual))
        width = _OUTLIER * max(_MAD * float(np.median(np.abs(residual - centre))), quantum(power_w))
        near = np.abs(residual - centre) <= width if width > 0 else np.ones_like(kept)
        if np.array_equal(near, kept) and line.degree() == 1:
            break
        kept = near
        line = np.polynomial.Polynomial.fit(time_s[kept], power_w[kept], 1).convert()
        if line.degree() < 1:
            line = np.polynomial.Polynomial([*line.coef, 0.0])
    middle_s = float(time_s[kept].mean())
    residual = power_w[kept] - line(time_s[kept])
    slope = float(line.coef[1]) if line.coef.size > 1 else 0.0
    return Level(
        time_s=middle_s,
        mean_w=float(power_w[kept].mean()),
        slope_w_s=slope,
        residual_w=residual,
        kept=float(kept.mean()),
    )


def quantum(values: Floats) -> float:
    """The step that values are rounded to: their least distance, 0 if hardly any repeat."""
    distinct = np.unique(values)
    if distinct.size < 2 or distinct.size > 0.5 * values.size:
        return 0.0
    return float(np.diff(distinct).min())


def autocorrelation_time(series: Sequence[Floats]) -> float:
    """Autocorrelation time in samples, at least 1, of residuals in several stretches."""
    lags = max((part.size // 4 for part in series), default=0)
    products, counts = np.zeros(lags + 1), np.zeros(lags + 1)
    for part in series:
        own = part.size // 4
        if own < 1:
            continue
        length = 1 << (2 * part.size - 1).bit_length()
        spectrum = np.abs(np.fft.rfft(part - part.mean(), length)) ** 2
        products[: own + 1] += np.fft.irfft(spectrum, length)[: own + 1]
        counts[: own + 1] += part.size - np.arange(own + 1)
    if not counts.any() or products[0] <= 0:
        return 1.0
    known = counts > 0
    correlation = products[known] / counts[known] / (products[0] / counts[0])
    tau = 1.0 + 2.0 * np.cumsum(correlation[1:])
    if tau.size == 0:
        return 1.0
    wide = np.flatnonzero(np.arange(1, tau.size + 1) >= 5.0 * tau)
    return max(1.0, float(tau[wide[0] if wide.size else -1]))


def clipped(values: Floats, part: Floats, *, noisy: bool, top: bool) -> bool:
    """Whether samples of `part` accumulate at the largest (smallest) of all `values`.

    A noisy signal reaches its extreme rarely, a clipped one often. Without noise (`noisy` says
    whether there is any elsewhere) a constant load would look clipped.
    """
    extreme = values.max() if top else values.min()
    at_extreme = int((part == extreme).sum())
    if at_extreme < max(3, 0.002 * part.size):
        return False
    levels, counts = np.unique(part, return_counts=True)
    if levels.size < LEVELS_MIN:
        return noisy and at_extreme > 0.9 * part.size
    beside = int(counts[-2] if top else counts[1])
    return at_extreme > 2 * beside
