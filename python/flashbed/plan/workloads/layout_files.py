"""Preparations that several kinds of cases share: files written in order, then a pause."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from flashbed.program.operations import HEADER, text_of

__all__ = ["prepared", "written_file"]


def written_file(path: str, length_bytes: int, request_bytes: int, seed: int) -> list[str]:
    """Operations that write a file in order, with incompressible bytes, and sync it."""
    writes = [
        f"write 0 {offset} {min(request_bytes, length_bytes - offset)} {seed} 0"
        for offset in range(0, length_bytes, request_bytes)
    ]
    return [f"open 0 {path} rw,create", *writes, "fsync 0", "close 0"]


def prepared(files: Iterable[Sequence[str]], settle_ns: int, header: str = HEADER) -> str:
    """A preparation, as a flashbed-ops file: files, sync, and a pause for background work."""
    written = itertools.chain.from_iterable(files)
    return text_of(itertools.chain(written, ("sync", f"pause {settle_ns}", "prepared")), header)
