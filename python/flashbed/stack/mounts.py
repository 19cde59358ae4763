"""Mount options as an axis: `ubifs:bulk_read`, or `default` for none.

A word names its file system, so that a grid leaves its other file systems unchanged. A real kernel
refuses options it does not know (EINVAL); the simulator refuses those it does not model, by name.
`compr=` is the axis `compressor`.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from flashbed.stack.file_systems import FILE_SYSTEMS, ON_FTL, RAW

__all__ = ["PLAIN", "PROTECTED", "Mount", "options_for", "read_mount"]

PLAIN = "default"
"""Mounted without options."""
PROTECTED = frozenset({"authenticated", "encrypted"})
"""Options of UBIFS that the agent makes: its own authentication, fscrypt."""
_OPTION = r"[a-z][a-z0-9_-]*(=[a-z0-9_.]+)?"
_MOUNT = re.compile(rf"({'|'.join((*FILE_SYSTEMS, *RAW, *ON_FTL))}):({_OPTION}(?:\+{_OPTION})*)")
MOUNT_CHARACTERS = 100


def read_mount(word: str) -> str:
    """Parses a word of mount options. Raises `ValueError`."""
    if word == PLAIN:
        return word
    if len(word) > MOUNT_CHARACTERS or not _MOUNT.fullmatch(word):
        raise ValueError(f"{word!r} is not {PLAIN} or FS:OPTION[+OPTION], such as ubifs:bulk_read")
    if any(option.startswith("compr=") for option in options_for(word).split("+")):
        raise ValueError("compr= is the axis compressor")
    return word


Mount = Annotated[str, AfterValidator(read_mount)]


def options_for(mount: str) -> str:
    """The options, joined by `+`; empty by default."""
    return mount.partition(":")[2]
