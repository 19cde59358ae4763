"""Sizes that a user writes: 85MiB, 512KiB, 1GiB, or bytes."""

from __future__ import annotations

import re

from flashbed.base.errors import InputError

__all__ = ["size_bytes"]

_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?) ?(B|KiB|MiB|GiB)?")
_UNITS = {None: 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_MOST = 1 << 40


def size_bytes(option: str, text: str) -> int:
    """The bytes of a size. Raises `InputError` that names the option."""
    found = _SIZE.fullmatch(text)
    size = round(float(found[1]) * _UNITS[found[2]]) if found else 0
    if not 0 < size < _MOST:
        raise InputError(f"{option} {text}: a size such as 85MiB, 512KiB or 89128960")
    return size
