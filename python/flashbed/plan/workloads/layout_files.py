"""Preparations that several kinds of cases share: files written in order, then a pause.

Their texts are made by common/src/layout.rs, which the playground has too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from flashbed._sim import settled, written_file
from flashbed.program.operations import HEADER, text_of

__all__ = ["prepared", "written_file"]


def prepared(files: Iterable[Sequence[str]], settle_ns: int, header: str = HEADER) -> str:
    """A preparation, as a flashbed-ops file: files, sync, and a pause for background work."""
    return settled(text_of(itertools.chain.from_iterable(files), header), settle_ns)
