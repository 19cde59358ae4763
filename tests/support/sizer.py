"""Compressed sizes of written data, a write at a time, to compare `PieceSizer` with."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

from flashbed import _sim
from flashbed.program.recording.calls import COMPRESSORS, PIECE_BYTES, Piece, pieces_of
from flashbed.program.recording.fill import Compressor

__all__ = ["Sizer"]

_PAGES_KEPT = 1024
_ZSTD_BYTES_MIN = 128
"""UBIFS compresses no fewer, and only UBIFS uses zstd."""


@dataclass
class Sizer:
    """Measures one write after the other. It remembers the pages that were written last."""

    _pages: OrderedDict[tuple[int, int], bytes] = field(default_factory=OrderedDict)
    _said: dict[tuple[int, int], tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    """Of each page, where its last piece ended and what its pieces say by each compressor."""

    def sizes(self, file: int, offset: int, data: bytes) -> tuple[Piece, ...]:
        """Of data written at an offset of a file, which `file` tells from others."""
        pieces = []
        for at, length in pieces_of(offset, len(data)):
            piece = data[at - offset : at - offset + length]
            page = file, at // PIECE_BYTES
            within = at % PIECE_BYTES
            before = self._pages.pop(page, b"")
            head = before[:within].ljust(within, b"\0")
            self._pages[page] = head + piece + before[within + length :]
            if len(self._pages) > _PAGES_KEPT:
                self._pages.popitem(last=False)
            alone = [min(length, _size(compressor, piece)) for compressor in COMPRESSORS]
            end, before_it = self._said.get(page, (0, ()))
            if not head:
                before_it = (0,) * len(COMPRESSORS)
            elif end != within:
                before_it = tuple(_size(compressor, head) for compressor in COMPRESSORS)
            both = [_size(compressor, head + piece) for compressor in COMPRESSORS]
            context = [min(length, max(0, one - other))
                       for one, other in zip(both, before_it, strict=True)]  # fmt: skip
            said = tuple(one + other for one, other in zip(before_it, context, strict=True))
            self._said[page] = within + length, said
            pairs = zip(alone, context, strict=True)
            pieces.append(Piece(*(number for pair in pairs for number in pair)))
        return tuple(pieces)


@lru_cache(maxsize=4096)
def _size(compressor: str, data: bytes) -> int:
    if compressor == "zstd" and len(data) < _ZSTD_BYTES_MIN:
        return len(data)
    return _sim.compressed_size(cast(Compressor, compressor), data)
