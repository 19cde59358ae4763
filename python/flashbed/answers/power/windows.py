"""Finds where a load was: from a marker channel, from the load's own pulses, or from a file.

A window is [begin, end) in the recording's seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flashbed.answers.power.noise import level
from flashbed.answers.power.power_tables import Windows
from flashbed.answers.power.recording import LOGIC, Floats, PowerRecording, Rail
from flashbed.base.errors import InputError, RunError

__all__ = ["Span", "marked", "of_file", "pulses"]

PULSE_SAMPLES_MIN = 5
SEPARATION_MIN = 4.0
"""Pulses are searched only if the load is this many times the noise of idle (12 dB)."""


@dataclass(frozen=True)
class Span:
    """A window; `open_end` if the recording does not contain all of it."""

    begin_s: float
    end_s: float
    label: str
    open_end: bool = False


def _runs(high: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last+1 of each run of true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], high, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def marked(trace: PowerRecording, name: str) -> list[Span]:
    """The times at which a marker is high; `!NAME` means low. Raises `InputError`."""
    channel = trace.channel(name.removeprefix("!"))
    values = channel.values
    if channel.unit == LOGIC:
        high = values > 0.5
    else:
        low, top = np.quantile(values, [0.001, 0.999])
        if top <= low:
            raise InputError(f"{trace.name}: marker {channel.name!r} never changes")
        high = values > (low + top) / 2
    if name.startswith("!"):
        high = ~high
    begin, end = trace.cells
    spans = [
        Span(float(begin[first]), float(end[last - 1]), "", first == 0 or last == values.size)
        for first, last in _runs(high)
    ]
    if not spans:
        raise InputError(f"{trace.name}: marker {channel.name!r} is never high")
    return spans


def of_file(windows: Windows, offset_s: float, trace: PowerRecording) -> list[Span]:
    """Windows of a file in the recording's time; adjacent ones are joined."""
    begin, end = trace.cells
    spans: list[Span] = []
    for start_s, end_s, label in windows:
        begin_s, last_s = start_s + offset_s, end_s + offset_s
        outside = begin_s < begin[0] or last_s > end[-1]
        before = spans[-1] if spans else None
        if before and before.label == label and begin_s - before.end_s < 2 * trace.step_s:
            joined_s = max(last_s, before.end_s)
            spans[-1] = Span(before.begin_s, joined_s, label, before.open_end or outside)
        else:
            spans.append(Span(begin_s, last_s, label, outside))
    return spans


def pulses(trace: PowerRecording, rails: Sequence[Rail]) -> list[Span]:
    """Times at which the power of all rails together is nearer to load than to idle.

    Raises `RunError` if idle and load cannot be distinguished.
    """
    power_w = np.sum([rail.power_w for rail in rails], axis=0)
    smooth = _median_of_five(power_w)
    baseline = np.zeros_like(smooth)
    half = (float(smooth.min()) + float(smooth.max())) / 2
    for _ in range(6):
        above = smooth - baseline > half
        if above.all() or not above.any():
            break
        idle = level(trace.time_s[~above], smooth[~above])
        baseline = idle.mean_w + idle.slope_w_s * (trace.time_s - idle.time_s)
        half = float(np.median((smooth - baseline)[above])) / 2
    above = smooth - baseline > half
    if half <= 0 or above.all() or not above.any():
        raise RunError(f"{trace.name}: no load pulse in it, and no marker")
    quiet = level(trace.time_s[~above], power_w[~above]).residual_w
    runs = [
        (first, last)
        for first, last in _joined(_runs(above), PULSE_SAMPLES_MIN)
        if last - first >= PULSE_SAMPLES_MIN
    ]
    noise_w = float(quiet.std())
    if not runs or 2 * half < SEPARATION_MIN * noise_w:
        raise RunError(
            f"{trace.name}: signal to noise is too low to find load pulses"
            f" ({2 * half * 1e3:.3g} mW in noise of {noise_w * 1e3:.3g} mW); a marker channel would"
            " show them"
        )
    level_w = smooth - baseline - half
    edges = [(_crossing(trace.time_s, level_w, first - 1),
              _crossing(trace.time_s, level_w, last - 1)) for first, last in runs]  # fmt: skip
    whole = [first > 0 and last < power_w.size for first, last in runs]
    return [Span(*edge, "", not known) for edge, known in zip(edges, whole, strict=True)]


def _joined(runs: Sequence[tuple[int, int]], apart: int) -> list[tuple[int, int]]:
    """Joins runs with fewer than `apart` samples between them."""
    joined: list[tuple[int, int]] = []
    for first, last in runs:
        if joined and first - joined[-1][1] < apart:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return joined


def _median_of_five(values: Floats) -> Floats:
    padded = np.pad(values, 2, mode="edge")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, 5), axis=1)


def _crossing(time_s: Floats, level_w: Floats, at: int) -> float:
    """When the line between a sample and the next crosses 0; at its ends, the recording's end."""
    if at < 0 or at + 1 >= level_w.size:
        return float(time_s[0] if at < 0 else time_s[-1])
    rise = level_w[at + 1] - level_w[at]
    share = float(np.clip(-level_w[at] / rise, 0.0, 1.0)) if rise else 0.5
    return float(time_s[at] + share * (time_s[at + 1] - time_s[at]))
