"""Energy above idle of each window, by rail, with its uncertainty.

docs/reference/power-recording.md has the method.

Idle is measured before and after each window, without outliers, as a line through both (drift). The
energy of a window is the sum of power above that line times the time of each sample. Its standard
uncertainty combines the noise of the samples in the window and of the idle beside it, each with its
autocorrelation; the curvature of the drift, from the difference of the slopes before and after; the
edges, known to a sample; missing samples; the instrument's step. The instrument's accuracy is added
if it is given; otherwise no number includes it.

Invariants: each result is a number or a reason, never both. There is no number for a window with a
gap of more than 0.5 % of it, with clipped samples, without idle beside it, or with less than three
times its own uncertainty.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flashbed.answers.power.noise import (
    LEVELS_MIN,
    Level,
    autocorrelation_time,
    clipped,
    level,
    quantum,
)
from flashbed.answers.power.recording import GAP_STEPS, Floats, PowerRecording, Rail
from flashbed.answers.power.windows import Span

__all__ = ["RailFit", "WindowFit", "fit_rail", "mean_of"]

MARGIN_SAMPLES = 5
"""Time beside a pulse that is still load: edges have slopes."""
GUARD_SAMPLES = 8
"""Time beside a window that is neither idle nor load."""
IDLE_SAMPLES_MIN = 10
IDLE_SAMPLES = 200
"""Idle samples on either side: as many as the window has, at least these."""
OUTLIERS_MAX = 0.25
GAP_SHARE_MAX = 0.005
WINDOW_SAMPLES_MIN = 3
SIGNIFICANT = 3.0


@dataclass(frozen=True, kw_only=True)
class WindowFit:
    """A window of a rail. `problem` says why there are no numbers."""

    begin_s: float
    end_s: float
    label: str
    energy_j: float | None = None
    energy_u_j: float | None = None
    mean_w: float | None = None
    mean_u_w: float | None = None
    problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class RailFit:
    """A rail: its idle, its mean power above idle over all windows, and each window."""

    name: str
    idle_w: float | None
    idle_u_w: float | None
    mean_w: float | None
    mean_u_w: float | None
    snr_db: float | None
    windows: tuple[WindowFit, ...]
    problem: str | None = None


@dataclass(frozen=True)
class _Idle:
    """A stretch without load or gap: first and last+1 sample."""

    first: int
    last: int


@dataclass(frozen=True)
class _Noise:
    """Noise of idle samples: standard deviation, autocorrelation time, the instrument's step."""

    sigma_w: float
    tau: float
    step_w: float
    of_parts: tuple[bool, ...]
    """Whether each of the rail's channels has noise of its own."""


@dataclass(frozen=True, kw_only=True)
class _Placed:
    """A window in the samples: those it overlaps, by how much, and those in its core."""

    first: int
    last: int
    weight_s: Floats
    inside: NDArray[np.bool_]
    gap_s: float
    sides: tuple[Level, ...]
    """Idle before and after it."""


class _Refused(Exception):
    """Why a window has no numbers."""


def fit_rail(
    trace: PowerRecording, rail: Rail, spans: Sequence[Span], *, pulses: bool, accuracy: float = 0.0
) -> RailFit:
    """A rail's power in the windows. `pulses` says that the load itself defined them.

    `accuracy` is the standard uncertainty of the instrument's gain, as a share.
    """
    stretches = _idle(trace, spans)
    if not stretches:
        why = f"no idle: nowhere are {IDLE_SAMPLES_MIN} samples in a row outside the windows"
        return _nothing(rail, spans, why)
    levels = [
        level(trace.time_s[each.first : each.last], rail.power_w[each.first : each.last])
        for each in stretches
    ]
    quiet = np.concatenate([np.arange(each.first, each.last) for each in stretches])
    if any(clipped(part, part[quiet], noisy=False, top=False) for part in rail.parts):
        return _nothing(rail, spans, "idle is clipped at the lower end of the range")
    sizes = np.array([each.last - each.first for each in stretches], dtype=np.float64)
    if 1 - np.average([each.kept for each in levels], weights=sizes) > OUTLIERS_MAX:
        return _nothing(rail, spans, "no idle level: a quarter of the idle samples are outliers")
    noise = _noise(rail, quiet, levels)
    margin_s = MARGIN_SAMPLES * trace.step_s if pulses else 0.0
    placed: list[_Placed | str] = []
    for span in spans:
        try:
            placed.append(
                _place(trace, rail, span=span, stretches=stretches, noise=noise, margin_s=margin_s)
            )
        except _Refused as why:
            placed.append(str(why))
    slope_w_s, bend_w_s2 = _drift([each.sides for each in placed if isinstance(each, _Placed)])
    windows = []
    for span, each in zip(spans, placed, strict=True):
        if isinstance(each, str):
            windows.append(
                WindowFit(begin_s=span.begin_s, end_s=span.end_s, label=span.label, problem=each)
            )
            continue
        baseline = _baseline(
            each.sides, span, noise=noise, slope_w_s=slope_w_s, bend_w_s2=bend_w_s2
        )
        windows.append(
            _energy(
                trace,
                rail,
                span=span,
                placed=each,
                noise=noise,
                baseline=baseline,
                margin_s=margin_s,
                accuracy=accuracy,
            )
        )
    return _whole(rail, windows, levels=levels, noise=noise, accuracy=accuracy)


def _nothing(rail: Rail, spans: Sequence[Span], why: str) -> RailFit:
    windows = tuple(
        WindowFit(begin_s=span.begin_s, end_s=span.end_s, label=span.label, problem=why)
        for span in spans
    )
    return RailFit(
        name=rail.name,
        idle_w=None,
        idle_u_w=None,
        mean_w=None,
        mean_u_w=None,
        snr_db=None,
        windows=windows,
        problem=why,
    )


def _idle(trace: PowerRecording, spans: Sequence[Span]) -> list[_Idle]:
    """Stretches outside all windows and their guards, split at gaps."""
    guard_s = GUARD_SAMPLES * trace.step_s
    busy = np.zeros(trace.time_s.size + 1, dtype=np.int64)
    for span in spans:
        busy[np.searchsorted(trace.time_s, span.begin_s - guard_s, side="left")] += 1
        busy[np.searchsorted(trace.time_s, span.end_s + guard_s, side="right")] -= 1
    free = np.cumsum(busy[:-1]) == 0
    after_gap = np.concatenate([[False], np.diff(trace.time_s) > GAP_STEPS * trace.step_s])
    begins = np.concatenate([[True], free[1:] != free[:-1]]) | after_gap
    starts = np.flatnonzero(begins)
    ends = np.concatenate([starts[1:], [free.size]])
    return [
        _Idle(int(first), int(last))
        for first, last in zip(starts, ends, strict=True)
        if free[first] and last - first >= IDLE_SAMPLES_MIN
    ]


def _noise(rail: Rail, quiet: NDArray[np.int64], levels: Sequence[Level]) -> _Noise:
    residuals = [each.residual_w for each in levels]
    count = sum(part.size for part in residuals)
    lines = 2 * len(residuals)
    squares = sum(float((part**2).sum()) for part in residuals)
    sigma_w = math.sqrt(squares / max(1, count - lines))
    longest = sorted(residuals, key=lambda part: -part.size)[:20]
    noisy = tuple(bool(np.unique(part[quiet]).size >= LEVELS_MIN) for part in rail.parts)
    return _Noise(sigma_w, autocorrelation_time(longest), quantum(rail.power_w[quiet]), noisy)


def _place(
    trace: PowerRecording, rail: Rail, *, span: Span, stretches: Sequence[_Idle], noise: _Noise,
    margin_s: float,
) -> _Placed:  # fmt: skip
    """Places a window. Raises `_Refused`."""
    if span.open_end:
        raise _Refused("the recording does not contain all of it")
    begin, end = trace.cells
    begin_s, end_s = span.begin_s - margin_s, span.end_s + margin_s
    first = int(np.searchsorted(end, begin_s, side="right"))
    last = int(np.searchsorted(begin, end_s, side="left"))
    weight_s = np.minimum(end[first:last], end_s) - np.maximum(begin[first:last], begin_s)
    time_s = trace.time_s[first:last]
    inside = (time_s >= span.begin_s) & (time_s < span.end_s)
    count = int(inside.sum())
    if count < WINDOW_SAMPLES_MIN:
        raise _Refused(f"only {count} samples in it")
    gap_s = max(0.0, (end_s - begin_s) - float(weight_s.sum()))
    if gap_s > GAP_SHARE_MAX * (span.end_s - span.begin_s):
        raise _Refused(f"a gap of {gap_s * 1e3:.3g} ms in it")
    for part, noisy in zip(rail.parts, noise.of_parts, strict=True):
        if clipped(part, part[first:last][inside], noisy=noisy, top=True):
            raise _Refused("clipped at the upper end of the range")
    sides = _beside(trace, rail, stretches=stretches, first=first, last=last, count=count)
    if not sides:
        raise _Refused("no idle beside it")
    return _Placed(
        first=first, last=last, weight_s=weight_s, inside=inside, gap_s=gap_s, sides=sides
    )


def _beside(
    trace: PowerRecording,
    rail: Rail,
    *,
    stretches: Sequence[_Idle],
    first: int,
    last: int,
    count: int,
) -> tuple[Level, ...]:
    """Idle before and after a window, if there is any."""
    wanted = max(count, IDLE_SAMPLES)
    at = bisect.bisect_right([each.last for each in stretches], first)
    bounds = []
    if at > 0:
        before = stretches[at - 1]
        bounds.append((max(before.first, before.last - wanted), before.last))
    at = bisect.bisect_left([each.first for each in stretches], last)
    if at < len(stretches):
        behind = stretches[at]
        bounds.append((behind.first, min(behind.last, behind.first + wanted)))
    return tuple(level(trace.time_s[a:b], rail.power_w[a:b]) for a, b in bounds)


def _drift(sides: Sequence[tuple[Level, ...]]) -> tuple[float, float]:
    """Slope and bend of idle: root mean squares over all windows."""
    slopes = [each.slope_w_s for pair in sides for each in pair]
    bends = [
        (pair[1].slope_w_s - pair[0].slope_w_s) / (pair[1].time_s - pair[0].time_s)
        for pair in sides
        if len(pair) == 2
    ]
    return _root_mean_square(slopes), _root_mean_square(bends)


def _root_mean_square(values: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values else 0.0


def _baseline(
    sides: Sequence[Level], span: Span, *, noise: _Noise, slope_w_s: float, bend_w_s2: float
) -> tuple[float, float, float]:
    """Idle power in the middle of a window, its slope, and the former's standard uncertainty.

    Idle is interpolated linearly between both sides. A curve with this bend deviates from the line
    by an eighth of the bend times the distance squared. One pair of slopes may hide a bend, so the
    recording's usual bend is the least that is assumed. With one side only, its level is used, and
    the drift until the window is uncertain.
    """
    middle_s = (span.begin_s + span.end_s) / 2
    errors = [noise.sigma_w * math.sqrt(noise.tau / side.residual_w.size) for side in sides]
    if len(sides) == 1:
        (side,) = sides
        drift_w = max(abs(side.slope_w_s), slope_w_s) * abs(middle_s - side.time_s)
        return side.mean_w, 0.0, math.hypot(errors[0], drift_w)
    before, behind = sides
    distance_s = behind.time_s - before.time_s
    share = (middle_s - before.time_s) / distance_s
    slope = (behind.mean_w - before.mean_w) / distance_s
    bend = max(abs(behind.slope_w_s - before.slope_w_s) / distance_s, bend_w_s2)
    error_w = math.hypot((1 - share) * errors[0], share * errors[1], bend * distance_s**2 / 8)
    return before.mean_w + slope * (middle_s - before.time_s), slope, error_w


def _energy(
    trace: PowerRecording, rail: Rail, *, span: Span, placed: _Placed, noise: _Noise,
    baseline: tuple[float, float, float], margin_s: float, accuracy: float,
) -> WindowFit:  # fmt: skip
    """The energy of a window, or why it is unknown."""
    idle_w, slope_w_s, idle_u_w = baseline
    samples = slice(placed.first, placed.last)
    duration_s = span.end_s - span.begin_s
    whole_s = duration_s + 2 * margin_s
    drifted_w = slope_w_s * (trace.time_s[samples] - (span.begin_s + span.end_s) / 2)
    above_w = rail.power_w[samples] - idle_w - drifted_w
    covered_s = float(placed.weight_s.sum())
    energy_j = float((above_w * placed.weight_s).sum()) * whole_s / covered_s
    mean_w = energy_j / duration_s
    # Fluctuation between samples that idle does not have: the load is faster than the instrument.
    fast_w = float(np.diff(above_w[placed.inside]).std()) / math.sqrt(2)
    sample_w = max(noise.sigma_w * math.sqrt(noise.tau), fast_w)
    edges_w = abs(mean_w) * trace.step_s / math.sqrt(6) / duration_s
    step_w = noise.step_w / math.sqrt(6) if noise.sigma_w < noise.step_w / 2 else 0.0
    energy_u_j = math.hypot(
        sample_w * math.sqrt(above_w.size) * trace.step_s,
        idle_u_w * whole_s,
        0.0 if margin_s else edges_w * duration_s,  # a pulse's energy includes its edges
        placed.gap_s * float(np.ptp(above_w)) / math.sqrt(12),
        step_w * duration_s,
        accuracy * abs(energy_j),
    )
    problem = None
    if -energy_j > SIGNIFICANT * energy_u_j:
        problem = "power is lower than idle; is the shunt the other way round?"
    elif energy_j < SIGNIFICANT * energy_u_j:
        problem = (
            f"signal to noise is too low: {mean_w * 1e3:.3g} mW above idle,"
            f" known to {energy_u_j / duration_s * 1e3:.2g} mW"
        )
    if problem:
        return WindowFit(begin_s=span.begin_s, end_s=span.end_s, label=span.label, problem=problem)
    mean_u_w = math.hypot(energy_u_j / duration_s, edges_w if margin_s else 0.0)
    return WindowFit(
        begin_s=span.begin_s,
        end_s=span.end_s,
        label=span.label,
        energy_j=energy_j,
        energy_u_j=energy_u_j,
        mean_w=mean_w,
        mean_u_w=mean_u_w,
    )


def _whole(
    rail: Rail, windows: Sequence[WindowFit], *, levels: Sequence[Level], noise: _Noise,
    accuracy: float,
) -> RailFit:  # fmt: skip
    """Combines all windows of a rail."""
    idle_n = np.array([each.residual_w.size for each in levels], dtype=np.float64)
    idle_w = float(np.average([each.mean_w for each in levels], weights=idle_n))
    idle_u_w = math.hypot(
        noise.sigma_w * math.sqrt(noise.tau / float(idle_n.sum())), accuracy * abs(idle_w)
    )
    mean_w, mean_u_w = mean_of(windows, accuracy)
    problem = None
    if mean_w is None:
        # The most frequent problem; of equals, the first.
        said = Counter(window.problem for window in windows)
        problem = said.most_common(1)[0][0] if said else "no window"
    above = mean_w is not None and mean_w > 0 and noise.sigma_w > 0
    snr_db = 20 * math.log10(mean_w / noise.sigma_w) if above and mean_w else None
    return RailFit(
        name=rail.name,
        idle_w=idle_w,
        idle_u_w=idle_u_w,
        mean_w=mean_w,
        mean_u_w=mean_u_w,
        snr_db=snr_db,
        windows=tuple(windows),
        problem=problem,
    )


def mean_of(
    windows: Sequence[WindowFit], accuracy: float = 0.0
) -> tuple[float | None, float | None]:
    """Time-weighted mean power of the known windows, and its standard uncertainty.

    The uncertainty combines those of the windows, or is their scatter if that is larger: the load
    then did not repeat exactly.
    """
    known = [each for each in windows if each.mean_w is not None]
    if not known:
        return None, None
    durations = np.array([each.end_s - each.begin_s for each in known])
    means = np.array([each.mean_w for each in known], dtype=np.float64)
    own = np.array([each.mean_u_w for each in known], dtype=np.float64)
    share = durations / durations.sum()
    mean_w = float((share * means).sum())
    # The instrument's gain error is the same in all windows.
    apart = np.sqrt(np.maximum(own**2 - (accuracy * means) ** 2, 0.0))
    error_w = float(np.sqrt(((share * apart) ** 2).sum()))
    if len(known) > 1:
        scatter = float((share * (means - mean_w) ** 2).sum()) / (len(known) - 1)
        error_w = max(error_w, math.sqrt(scatter))
    return mean_w, math.hypot(error_w, accuracy * abs(mean_w))
