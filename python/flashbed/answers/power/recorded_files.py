"""Reads an instrument's file; its first bytes, not its name, tell its format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from flashbed.answers.power.joulescope import read_joulescope
from flashbed.answers.power.power_tables import read_table
from flashbed.answers.power.recording import PowerRecording
from flashbed.answers.power.sigrok import read_sigrok
from flashbed.base.errors import InputError
from flashbed.base.files import read_bytes
from flashbed.base.paths import shown

__all__ = ["read_recording"]

TEXT_BYTES_MAX = 2 << 30
_JLS = b"jlsfmt\r\n"
_ZIP = b"PK\x03\x04"


def read_recording(
    path: Path, units: Mapping[str, str] | None = None, rate_hz: float | None = None
) -> PowerRecording:
    """Reads a recording. `units` and `rate_hz` add what the file omits. Raises `InputError`."""
    name = shown(path)
    data = read_bytes(path, TEXT_BYTES_MAX)
    if data.startswith(_JLS):
        return read_joulescope(name, path)
    read = read_sigrok if data.startswith(_ZIP) else read_table
    if read is read_table and b"\0" in data[:4096]:
        raise InputError(
            f"{name}: neither text nor a file of sigrok or Joulescope (.sr, .jls of version 2)"
        )
    return read(name, data, units or {}, rate_hz)
