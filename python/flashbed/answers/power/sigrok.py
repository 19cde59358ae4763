"""Reads sigrok's session files, `.sr`: a ZIP of metadata and raw samples.

The format is that of libsigrok 0.5 (src/output/srzip.c): `metadata` is an INI file; analog channel
N is little-endian float32 in `analog-1-N-1`, `-2`, ...; logic channels are bits of `logic-1-1`, ...
Probes are numbered before analog channels. Left out: sessions of several devices. The file does not
say which unit a channel has: `--unit A0=V` does.
"""

from __future__ import annotations

import configparser
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Mapping

import numpy as np

from flashbed.answers.power.recording import LOGIC, Channel, Floats, PowerRecording, recording
from flashbed.answers.power.units import frequency_hz, quantity
from flashbed.base.errors import InputError

__all__ = ["read_sigrok"]

BYTES_MAX = 1 << 30
ENTRIES_MAX = 100_000
UNIT_BYTES_MAX = 8
VALUES_MAX = 1 << 28
"""Values of all channels together, eight bytes each."""


def read_sigrok(
    name: str, data: bytes, units: Mapping[str, str], rate_hz: float | None
) -> PowerRecording:
    """A session as a recording. Raises `InputError`."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as session:
            _check_sizes(name, session)
            return _read(name, session, units, rate_hz)
    except (
        zipfile.BadZipFile, KeyError, ValueError, OSError, EOFError, configparser.Error,
        NotImplementedError, RuntimeError, zlib.error, lzma.LZMAError,
    ):  # fmt: skip
        raise InputError(f"{name}: not a sigrok session, or a broken one") from None


def _check_sizes(name: str, session: zipfile.ZipFile) -> None:
    """Checks the unpacked size first; zipfile unpacks no more than an entry says."""
    entries = session.infolist()
    size = sum(entry.file_size for entry in entries)
    if size > BYTES_MAX or len(entries) > ENTRIES_MAX:
        raise InputError(
            f"{name}: {size >> 20:,} MiB in {len(entries):,} parts; at most {BYTES_MAX >> 20:,} MiB"
            f" in {ENTRIES_MAX:,}"
        )


def _read(
    name: str, session: zipfile.ZipFile, units: Mapping[str, str], rate_hz: float | None
) -> PowerRecording:
    ini = configparser.ConfigParser(interpolation=None)
    ini.read_string(session.read("metadata").decode("utf-8", "replace"))
    device = ini["device 1"]
    sampled_hz = rate_hz or frequency_hz(device.get("samplerate", ""))
    if sampled_hz is None:
        raise InputError(f"{name}: has no samplerate; --rate HZ gives it")
    chunks = _chunks(session)
    unit_bytes = int(device.get("unitsize", "1"))
    if not 1 <= unit_bytes <= UNIT_BYTES_MAX:
        raise InputError(f"{name}: unitsize is {unit_bytes}, not 1 to {UNIT_BYTES_MAX}")
    probes = sum(key.startswith("probe") for key in device)
    values_there = sum(
        len(raw) // unit_bytes * probes if stream == "logic-1" else len(raw) // 4
        for stream, raw in chunks.items()
    )
    if values_there > VALUES_MAX:
        raise InputError(f"{name}: {values_there:,} values, {VALUES_MAX:,} at most")
    channels = []
    for key, label in device.items():
        analog = re.fullmatch(r"analog(\d+)", key)
        probe = re.fullmatch(r"probe(\d+)", key)
        if analog and f"analog-1-{analog[1]}" in chunks:
            values = np.frombuffer(chunks[f"analog-1-{analog[1]}"], dtype="<f4").astype(np.float64)
            unit = quantity(units.get(label, ""))
            if unit is None:
                raise InputError(
                    f"{name}: a .sr file does not state the unit of {label}; --unit {label}=V does"
                )
            channels.append(Channel(label, unit[0], values * unit[1]))
        elif probe and "logic-1" in chunks:
            bits = _bit(chunks["logic-1"], unit_bytes, int(probe[1]) - 1)
            channels.append(Channel(label, LOGIC, bits))
    wrong = [label for label in units if label not in {channel.name for channel in channels}]
    if wrong:
        raise InputError(f"--unit {wrong[0]}: no such channel in {name}")
    if not any(channel.unit != LOGIC for channel in channels):
        raise InputError(f"{name}: no analog channel in it")
    # A device may stop in the middle of a packet.
    samples = min(len(channel.values) for channel in channels)
    cut = [Channel(each.name, each.unit, each.values[:samples]) for each in channels]
    return recording(name, np.arange(samples, dtype=np.float64) / sampled_hz, cut)


def _chunks(session: zipfile.ZipFile) -> dict[str, bytes]:
    """Stream -> its bytes, from its numbered chunks in order."""
    numbered: dict[str, list[tuple[int, str]]] = {}
    for entry in session.namelist():
        match = re.fullmatch(r"(analog-1-\d+|logic-1)(?:-(\d+))?", entry)
        if match:
            numbered.setdefault(match[1], []).append((int(match[2] or 0), entry))
    return {
        stream: b"".join(session.read(entry) for _, entry in sorted(entries))
        for stream, entries in numbered.items()
    }


def _bit(raw: bytes, unit_bytes: int, bit: int) -> Floats:
    """One probe of packed logic samples."""
    if not 0 <= bit < 8 * unit_bytes:
        raise ValueError(bit)
    words = np.frombuffer(raw[: len(raw) // unit_bytes * unit_bytes], dtype=np.uint8)
    column = words.reshape(-1, unit_bytes)[:, bit // 8]
    return ((column >> (bit % 8)) & 1).astype(np.float64)
