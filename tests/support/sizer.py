"""Compressed sizes of written data, a write at a time, to compare `PieceSizer` with."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

from flashbed import _sim
from flashbed.recording.calls import COMPRESSORS, PIECE_BYTES, Piece, pieces_of
from flashbed.recording.fill import Compressor

__all__ = ["Sizer"]

_PAGES_KEPT = 1024
_LEAST_BYTES = 128
"""The simulator's zstd takes no fewer (UBIFS compresses no fewer); zeroes are put behind."""


@dataclass
class Sizer:
    """Measures one write after the other. It remembers the pages that were written last."""

    _pages: OrderedDict[tuple[int, int], bytes] = field(default_factory=OrderedDict)

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
            numbers = []
            for compressor in COMPRESSORS:
                alone = min(length, _size(compressor, piece))
                context = alone
                if head:
                    both = _size(compressor, head + piece)
                    context = min(length, max(0, both - _size(compressor, head)))
                numbers += [alone, context]
            pieces.append(Piece(*numbers))
        return tuple(pieces)


@lru_cache(maxsize=4096)
def _size(compressor: str, data: bytes) -> int:
    padded = data.ljust(_LEAST_BYTES, b"\0")
    return _sim.compressed_size(cast(Compressor, compressor), padded)
