"""Reads the binary files of blktrace: DEVICE.blktrace.CPU, or all of them in one (blkparse -d).

An event is a `struct blk_io_trace` of 48 bytes, in the byte order of the machine, and a payload.
Left out: messages, and the payloads of commands.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from flashbed.base.paths import shown
from flashbed.program.imports.lines import ImportedError, opened

__all__ = ["Event", "binary_files", "events_of"]

_MAGIC, _VERSION = 0x65617400, 7
_EVENT = "IIQQIIIIIHH"
_EVENT_BYTES = 48
_SECTOR_BYTES = 512
_REMAP_BYTES = 16
_ACTIONS = {1: b"Q", 2: b"M", 3: b"F", 4: b"G", 5: b"S", 6: b"R", 7: b"D", 8: b"C", 9: b"P",
            10: b"U", 11: b"UT", 12: b"I", 13: b"X", 14: b"B", 15: b"A"}  # fmt: skip
_ACTION_MASK = 0xFF
_READ, _WRITE, _FLUSH, _SYNC = 1 << 16, 1 << 17, 1 << 18, 1 << 19
_NOTIFY, _AHEAD, _META, _DISCARD, _FUA = 1 << 26, 1 << 27, 1 << 28, 1 << 29, 1 << 31
_FILES_MAX = 4096
_CPUS = ".blktrace."


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event of a block device. `kind` has the letters of blkparse's RWBS."""

    device: bytes
    time_ns: int
    action: bytes
    kind: bytes
    sector: int
    sectors: int
    remapped_from: bytes | None = None


def binary_files(path: Path) -> list[Path]:
    """The binary files that a path means; none if it is a text.

    DEVICE and DEVICE.blktrace.CPU mean all processors' files.
    """
    stem, found, cpu = path.name.rpartition(_CPUS)
    one_of_several = bool(found) and cpu.isdigit()
    if path.exists() and not one_of_several:
        return [path] if _is_binary(path) else []
    name = stem if one_of_several else path.name
    try:
        files = sorted(one for one in path.parent.iterdir() if _is_of(one.name, name))
    except OSError:
        files = []
    if len(files) > _FILES_MAX:
        raise ImportedError(f"{shown(path)}: {len(files):,} files; {_FILES_MAX:,} at most")
    return files


def _is_of(file: str, name: str) -> bool:
    cpu = file.removeprefix(name + _CPUS)
    return cpu != file and cpu.isdigit()


def _is_binary(path: Path) -> bool:
    with opened(path) as file:
        beginning = file.read(4)
    return len(beginning) == 4 and any(
        struct.unpack(order + "I", beginning)[0] & ~0xFF == _MAGIC for order in "<>"
    )


def events_of(files: Sequence[Path]) -> Iterator[Event]:
    """The events of files, one file after the other. Raises `ImportedError`."""
    for path in files:
        with opened(path) as file:
            yield from _events(path, file)


def _events(path: Path, file: IO[bytes]) -> Iterator[Event]:
    order = ""
    at = 0
    while event := file.read(_EVENT_BYTES):
        if not order:
            order = _order(path, event)
        if len(event) < _EVENT_BYTES:
            raise ImportedError(f"{shown(path)}: cut in the event at byte {at:,}")
        magic, _, time_ns, sector, length, action, _, device, _, _, more = struct.unpack(
            order + _EVENT, event
        )
        if magic != _MAGIC | _VERSION:
            raise ImportedError(f"{shown(path)}: no event of blktrace at byte {at:,}")
        payload = file.read(more)
        if len(payload) < more:
            raise ImportedError(f"{shown(path)}: cut in the event at byte {at:,}")
        at += _EVENT_BYTES + more
        if action & _NOTIFY:
            continue
        name = _ACTIONS.get(action & _ACTION_MASK, b"")
        source = None
        if name == b"A" and len(payload) >= _REMAP_BYTES:
            source = _device(struct.unpack(">I", payload[:4])[0])
        if time_ns < 1 << 62 and sector < 1 << 62:
            yield Event(
                device=_device(device),
                time_ns=time_ns,
                action=name,
                kind=_kind(action, length),
                sector=sector,
                sectors=length // _SECTOR_BYTES,
                remapped_from=source,
            )


def _order(path: Path, event: bytes) -> str:
    """The byte order of a file. Raises `ImportedError` for another version."""
    for order in "<>":
        (magic,) = struct.unpack(order + "I", event[:4].ljust(4, b"\0"))
        if magic & ~0xFF == _MAGIC:
            if magic & 0xFF != _VERSION:
                raise ImportedError(
                    f"{shown(path)}: a binary blktrace of version {magic & 0xFF}; {_VERSION} is"
                    " read"
                )
            return order
    raise ImportedError(f"{shown(path)}: not a binary blktrace")


def _device(number: int) -> bytes:
    return b"%d,%d" % (number >> 20, number & 0xFFFFF)


def _kind(action: int, length: int) -> bytes:
    """The letters of blkparse."""
    letters = b"F" if action & _FLUSH else b""
    if action & _DISCARD:
        letters += b"D"
    elif action & _WRITE:
        letters += b"W"
    else:
        letters += b"R" if length else b"N"
    for bit, letter in ((_FUA, b"F"), (_AHEAD, b"A"), (_SYNC, b"S"), (_META, b"M")):
        letters += letter if action & bit else b""
    return letters
