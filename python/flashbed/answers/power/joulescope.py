"""Reads Joulescope's files, `.jls` (version 2), with its own library pyjls.

flashbed does not depend on pyjls; users with such files install it. Signals of the same rate are
put on the time axis of the power, or of the current; the GPI are markers. Left out: version 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from flashbed.answers.power.recording import LOGIC, Channel, Floats, PowerRecording, recording
from flashbed.base.errors import InputError

__all__ = ["read_joulescope"]


def read_joulescope(name: str, path: Path) -> PowerRecording:
    """Reads a recording of a Joulescope. Raises `InputError`."""
    try:
        from pyjls import Reader
    except ImportError:
        raise InputError(
            f"{name}: reading .jls needs Joulescope's library: pip install pyjls (or export CSV)"
        ) from None
    try:
        reader = Reader(str(path))
    except Exception:  # pyjls raises exceptions of its own for any error
        raise InputError(f"{name}: not a JLS file of version 2") from None
    try:
        return _read(name, reader)
    finally:
        reader.close()


def _read(name: str, reader: Any) -> PowerRecording:
    signals = [
        signal
        for signal in reader.signals.values()
        if signal.sample_rate and signal.length and signal.units in ("A", "V", "W", "")
    ]
    measured = [signal for signal in signals if signal.units]
    if not measured:
        raise InputError(f"{name}: no current, voltage or power in it")
    first = next((signal for signal in measured if signal.units == "W"), measured[0])
    used = [signal for signal in signals if signal.sample_rate == first.sample_rate]
    # All signals share the sample counter; only the common range is read.
    begin = max(signal.sample_id_offset for signal in used)
    end = min(signal.sample_id_offset + signal.length for signal in used)
    if end <= begin:
        raise InputError(f"{name}: its signals have no time in common")
    channels = []
    for signal in used:
        values = _values(reader, signal, begin - signal.sample_id_offset, end - begin)
        if signal.units:
            channels.append(Channel(signal.name, signal.units, values))
        elif np.isin(values, (0.0, 1.0)).all():
            channels.append(Channel(signal.name, LOGIC, values))
    return recording(name, np.arange(end - begin) / first.sample_rate, channels)


def _values(reader: Any, signal: Any, start: int, length: int) -> Floats:
    raw = reader.fsr(signal.signal_id, start, length)
    if raw.dtype == np.uint8 and len(raw) < length:
        raw = np.unpackbits(raw, bitorder="little")[:length]
    return np.asarray(raw, dtype=np.float64)
