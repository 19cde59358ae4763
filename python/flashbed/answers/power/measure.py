"""Processes a recording from file to result: rails, windows, and each rail's power in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from flashbed.answers.power.energy_fit import RailFit, fit_rail
from flashbed.answers.power.power_tables import Windows, read_windows
from flashbed.answers.power.recorded_files import read_recording
from flashbed.answers.power.recording import PowerRecording, Rail, rails_of
from flashbed.answers.power.windows import Span, marked, of_file, pulses
from flashbed.base.files import TEXT_BYTES_MAX, read_bytes
from flashbed.base.paths import shown

__all__ = ["ReadingOptions", "RecordingFit", "measure"]


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How to read recordings. `offset` is seconds, or `edge`: the first pulse found."""

    rails: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    rate_hz: float | None = None
    marker: str | None = None
    windows: Path | None = None
    offset: float | str = 0.0
    accuracy: float = 0.0


@dataclass(frozen=True)
class RecordingFit:
    """A recording and its results. `by` says what marked the load."""

    trace: PowerRecording
    rails: tuple[Rail, ...]
    by: str
    fits: tuple[RailFit, ...]

    def as_json(self) -> dict[str, Any]:
        """The results as `flashbed power fit --format json` prints them."""
        return {
            "trace": self.trace.name,
            "samples": int(self.trace.time_s.size),
            "rate_hz": 1.0 / self.trace.step_s,
            "windows_by": self.by,
            "rails": [asdict(fit) for fit in self.fits],
        }


def measure(path: Path, options: ReadingOptions) -> RecordingFit:
    """Reads a recording and fits each rail. Raises `InputError` and `RunError`."""
    trace = read_recording(path, options.units, options.rate_hz)
    rails = rails_of(trace, dict(options.rails))
    spans, by = _spans(trace, rails, options)
    of_pulses = by == "load pulses"
    fits = tuple(
        fit_rail(trace, rail, spans, pulses=of_pulses, accuracy=options.accuracy) for rail in rails
    )
    return RecordingFit(trace, tuple(rails), by, fits)


def _spans(
    trace: PowerRecording, rails: Sequence[Rail], options: ReadingOptions
) -> tuple[list[Span], str]:
    """Windows from a file, from a marker that is named or recognised, or from pulses."""
    if options.windows is not None:
        return of_file(_windows(options.windows), _offset_s(trace, rails, options), trace), (
            shown(options.windows)
        )
    marker = options.marker or (trace.marker.name if trace.marker else None)
    if marker:
        return marked(trace, marker), f"marker {marker}"
    return pulses(trace, rails), "load pulses"


def _windows(path: Path) -> Windows:
    return read_windows(shown(path), read_bytes(path, TEXT_BYTES_MAX))


def _offset_s(trace: PowerRecording, rails: Sequence[Rail], options: ReadingOptions) -> float:
    if not isinstance(options.offset, str):
        return options.offset
    if options.windows is None:
        return 0.0
    first_s = _windows(options.windows)[0][0]
    return pulses(trace, rails)[0].begin_s - first_s
