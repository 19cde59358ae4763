"""Synthetic recordings of known energy. Everything that is random follows from the seed given."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from flashbed.answers.power.recording import LOGIC, Channel, Floats, PowerRecording, recording

RATE_HZ = 1000.0
IDLE_W = 0.5
LOAD_W = 0.2


@dataclass(frozen=True)
class Synthetic:
    """A trace with five loads of `LOAD_W` and what each of them took, in joules."""

    time_s: Floats
    power_w: Floats
    marker: Floats
    energy_j: list[float]
    edges: list[tuple[int, int]] = field(default_factory=list)

    def recorded(self, *, marker: bool = True, power_w: Floats | None = None) -> PowerRecording:
        """As a recording of the power itself."""
        power = self.power_w if power_w is None else power_w
        channels = [Channel("cpu_power", "W", power)]
        if marker:
            channels.append(Channel("marker", LOGIC, self.marker))
        return recording("synthetic", self.time_s, channels)


def synthetic(
    seed: int, *, snr_db: float = 20.0, drift_w: float = 0.0, bend_w: float = 0.0,
    correlation: float = 0.0, ramp: int = 0, windows: int = 5,
) -> Synthetic:  # fmt: skip
    """`windows` loads of about 1.7 s, 3.7 s apart.

    `drift_w` is how far idle goes in a line over the whole trace, `bend_w` the amplitude of half a
    sine on it; `correlation` that of the noise from sample to sample; `ramp` the samples an edge
    takes.
    """
    rng = np.random.default_rng(seed)
    samples = 1500 + 3700 * windows
    time_s = np.arange(samples) / RATE_HZ
    share = time_s / time_s[-1]
    load = np.zeros(samples)
    edges = []
    for number in range(windows):
        first = 1000 + 3700 * number + int(rng.integers(0, 300))
        last = first + int(rng.integers(1200, 2200))
        load[first:last] = LOAD_W
        edges.append((first, last))
    marker = (load > 0).astype(np.float64)
    if ramp:
        load = np.convolve(load, np.ones(2 * ramp + 1) / (2 * ramp + 1), mode="same")
    noise = rng.normal(size=samples)
    for at in range(1, samples if correlation else 0):
        noise[at] = correlation * noise[at - 1] + (1 - correlation**2) ** 0.5 * noise[at]
    sigma_w = LOAD_W / 10 ** (snr_db / 20)
    idle_w = IDLE_W + drift_w * share + bend_w * np.sin(np.pi * share)
    power_w = idle_w + load + sigma_w * noise
    energy_j = [LOAD_W * (last - first) / RATE_HZ for first, last in edges]
    return Synthetic(time_s=time_s, power_w=power_w, marker=marker, energy_j=energy_j, edges=edges)
