"""Reads the agent's stream `flashbed-record 1` (agent/PROTOCOL.md) as it arrives.

A thread reads ahead, up to `READ_AHEAD_BYTES`, so that the recorder does not wait for this process.
A stream that was cut off has no `last`.
"""

from __future__ import annotations

import os
import queue
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flashbed.base.errors import RunError

__all__ = ["HEADER", "ROW", "Chunk", "StreamAhead", "StreamFacts", "chunks", "unescaped"]

HEADER = b"flashbed-record 1\n"
READ_AHEAD_BYTES = 256 << 20
_BLOCK_BYTES = 1 << 20
_CHUNK_BYTES_MAX = 64 << 20
_HEAD = struct.Struct("<4sIQQ")

_WORDS = (
    *((name, "<u8") for name in ("order", "start_ns", "duration_ns", "cpu_ns")),
    *((name, "<i8") for name in ("result", "offset", "to_offset", "length")),
    *((name, "<u8") for name in ("address", "flags", "file")),
    ("at", "<i8"),
    *((name, "<u4") for name in ("task", "mode", "command", "user", "group")),
    *((name, "<i4") for name in ("descriptor", "to_descriptor")),
    ("bytes", "<u4"),
    *((name, "<u2") for name in ("call", "has")),
    *((name, "<u2") for name in ("path", "to_path", "name", "target")),
    ("device", "<u4"),
)
ROW = np.dtype(list(_WORDS))
"""A row of the stream; its four texts are lengths of bytes that follow the rows."""


@dataclass(frozen=True)
class StreamFacts:
    """Lines `KEY VALUE` of the stream's beginning or end."""

    last: bool
    lines: tuple[tuple[str, str], ...]

    def one(self, key: str, default: str = "") -> str:
        """The value of a key that occurs once."""
        return next((value for name, value in self.lines if name == key), default)

    def text(self, key: str) -> str | None:
        """The value of a key that occurs once, without %XX; None if it does not."""
        value = self.one(key)
        return unescaped(value).decode("utf-8", "backslashreplace") if value else None

    def number(self, key: str) -> int:
        """The value as a number; 0 if there is none."""
        value = self.one(key, "0")
        return int(value) if value.isdecimal() else 0

    def all(self, key: str) -> list[str]:
        """The values of a key, in order."""
        return [value for name, value in self.lines if name == key]


@dataclass(frozen=True)
class Chunk:
    """Rows with their texts and bytes. No later row has a lower order than `oldest`."""

    rows: npt.NDArray[np.void]
    blob: bytes
    oldest: int


class StreamAhead:
    """A descriptor that a thread reads; `read` returns fewer bytes at its end."""

    def __init__(self, descriptor: int) -> None:
        self._blocks: queue.Queue[bytes] = queue.Queue(READ_AHEAD_BYTES // _BLOCK_BYTES)
        self._block = b""
        self._at = 0
        threading.Thread(target=self._take, args=(descriptor,), daemon=True).start()

    def _take(self, descriptor: int) -> None:
        while True:
            try:
                block = os.read(descriptor, _BLOCK_BYTES)
            except OSError:
                block = b""
            self._blocks.put(block)
            if not block:
                return

    @property
    def is_empty(self) -> bool:
        """Whether the next read would block."""
        return self._at == len(self._block) and self._blocks.empty()

    def read(self, count: int) -> bytes:
        """Reads bytes, waiting for them."""
        parts = []
        while count:
            if self._at == len(self._block):
                self._block, self._at = self._blocks.get(), 0
                if not self._block:
                    self._blocks.put(b"")
                    break
            part = self._block[self._at : self._at + count]
            self._at += len(part)
            count -= len(part)
            parts.append(part)
        return b"".join(parts)


def chunks(source: StreamAhead) -> Iterator[Chunk | StreamFacts]:
    """The stream's chunks, as far as they are whole. Raises `RunError` for another stream."""
    begin = source.read(len(HEADER))
    if begin != HEADER:
        if HEADER.startswith(begin):
            return
        raise RunError(f"the recorder's stream begins with {begin[:40]!r}")
    while True:
        head = source.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return
        tag, rows, length, oldest = _HEAD.unpack(head)
        if tag not in (b"rows", b"fact", b"last") or length > _CHUNK_BYTES_MAX:
            raise RunError(f"the recorder's stream has a chunk {tag!r} of {length} bytes")
        payload = source.read(length)
        if len(payload) < length:
            return
        yield _chunk(tag, rows, payload, oldest)


def _chunk(tag: bytes, rows: int, payload: bytes, oldest: int) -> Chunk | StreamFacts:
    if tag == b"rows":
        table = rows * ROW.itemsize
        if len(payload) < table:
            raise RunError(f"the recorder's stream has {len(payload)} bytes for {rows} rows")
        return Chunk(np.frombuffer(payload, ROW, rows), payload[table:], oldest)
    lines = payload.decode("utf-8", "surrogateescape").split("\n")
    pairs = tuple((key, value) for key, _, value in (line.partition(" ") for line in lines) if key)
    return StreamFacts(tag == b"last", pairs)


def unescaped(text: str) -> bytes:
    """A path of the facts; %XX stands for % and for bytes that would end a line."""
    parts = text.encode("utf-8", "surrogateescape").split(b"%")
    return parts[0] + b"".join(bytes([int(part[:2], 16)]) + part[2:] for part in parts[1:])
