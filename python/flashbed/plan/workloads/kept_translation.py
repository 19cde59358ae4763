"""Keeps the translations of long recordings in the cache folder.

A case of a recording is known by its operations, so each command translates it, also where its
result is there already. A translation follows from the recording, what it is translated for, and
the code that translates. A kept one that is damaged is made again.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from flashbed.base.code import PACKAGE, digest_of, modules_of
from flashbed.base.errors import FlashbedError
from flashbed.base.files import whole
from flashbed.base.paths import cache_folder, sha256_of

__all__ = ["translated_once"]

KEPT_CHARACTERS_MIN = 1 << 18
"""A shorter translation takes less time than a file is worth."""
KEPT_BYTES_MAX = 1 << 28
"""Of all files together; the oldest are removed."""
_TEXT_BYTES_MAX = 1 << 30
_SHA256_BYTES = 32
_MARK = b"\n\0\n"
"""Between the two texts, which are ASCII."""
_TRANSLATES = "flashbed.program.recording.translate"


def translated_once(
    recording: Path, settings: object, translate: Callable[[], tuple[str, str]]
) -> tuple[str, str]:
    """What `translate` gives for a recording and these settings, kept where it is long."""
    if not recording.is_file():  # the parts of a recorder that was killed
        return translate()
    try:
        parts = f"{_code()} {sha256_of(recording)} {settings!r}"
        file = _folder() / hashlib.sha256(parts.encode()).hexdigest()
        kept = _read(file)
    except (OSError, FlashbedError):
        return translate()
    if kept is not None:
        return kept
    prepare, body = translate()
    if len(prepare) + len(body) >= KEPT_CHARACTERS_MIN:
        with suppress(OSError, FlashbedError):  # a full disk, or a cache of another user
            _write(file, _MARK.join((prepare.encode("ascii"), body.encode("ascii"))))
            _forget_oldest()
    return prepare, body


@cache
def _code() -> str:
    """Digest of the code that translates, compressors included."""
    files = [*modules_of(_TRANSLATES), *sorted(PACKAGE.glob("_sim.*.so"))]
    return digest_of([(file.relative_to(PACKAGE).as_posix(), file) for file in files])


def _folder() -> Path:
    return cache_folder() / "translations"


def _read(file: Path) -> tuple[str, str] | None:
    """A kept translation; None if there is none that is whole."""
    try:
        kept = file.read_bytes()
        inflate = zlib.decompressobj()
        text = inflate.decompress(kept[_SHA256_BYTES:], _TEXT_BYTES_MAX)
    except (OSError, zlib.error):
        return None
    if hashlib.sha256(text).digest() != kept[:_SHA256_BYTES]:
        return None
    prepare, _, body = text.partition(_MARK)
    return prepare.decode("ascii"), body.decode("ascii")


def _write(file: Path, text: bytes) -> None:
    with whole(file) as new:
        new.write_bytes(hashlib.sha256(text).digest() + zlib.compress(text, 1))


def _forget_oldest() -> None:
    there = [(kept.stat(), kept) for kept in _folder().iterdir()]
    left = sum(status.st_size for status, _ in there)
    for status, kept in sorted(there, key=lambda one: (one[0].st_mtime_ns, one[1].name)):
        if left <= KEPT_BYTES_MAX:
            return
        kept.unlink(missing_ok=True)
        left -= status.st_size
