"""Replays a recorded program: the workload `program` (docs/programs.md).

The pattern `recorded` keeps the program's work and waiting between calls, `flat-out` omits them.
Written data compresses about as it did when it was recorded, with the compressor of the case's file
system: on JFFS2 and UBIFS the kernel's default or the case's.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from flashbed.formats.profiles import COMPR_OPTIONS, USUAL_COMPRESSOR, load_kernel
from flashbed.plan.case import Case
from flashbed.recording.file import open_recording
from flashbed.recording.fill import Compressor, as_compressor
from flashbed.recording.translate import translate

__all__ = ["compressor_of", "operations", "second_of"]

RECORDED = "recorded"
_OF_YAFFS2 = b"lost+found"


def operations(case: Case, settle_ns: int, recording: str) -> tuple[str, str]:
    """The case as (prepare, body), two flashbed-ops files. Raises `RecordingError`."""
    path = Path(recording)
    compressors = compressor_of(case), second_of(case)
    own = _OF_YAFFS2 if case.fs == "yaffs2" else None
    return _translated(path, _stamp(path), compressors, case.pattern == RECORDED, settle_ns, own)


def compressor_of(case: Case) -> Compressor | None:
    """The compressor of a case's file system; None where it stores data as it is."""
    kernel = load_kernel(case.kernel)
    if case.fs not in COMPR_OPTIONS:
        return None
    if case.compressor != USUAL_COMPRESSOR:
        return as_compressor(case.compressor)
    if case.fs == "ubifs":
        return as_compressor(kernel.ubifs.compressor if kernel.ubifs else None)
    of_jffs2 = kernel.jffs2.compressors if kernel.jffs2 else []
    return as_compressor(of_jffs2[0] if of_jffs2 else None)


def second_of(case: Case) -> Compressor | None:
    """JFFS2's compressor for what the first one does not shrink."""
    jffs2 = load_kernel(case.kernel).jffs2
    if case.fs != "jffs2" or case.compressor != USUAL_COMPRESSOR or jffs2 is None:
        return None
    return as_compressor(jffs2.compressors[1] if len(jffs2.compressors) > 1 else None)


def _stamp(path: Path) -> tuple[int, int]:
    """Identifies a file's contents: it changes when the file is rewritten."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=4)
def _translated(
    path: Path, _changed: tuple[int, int],
    compressors: tuple[Compressor | None, Compressor | None], think: bool, settle_ns: int,
    own: bytes | None,
) -> tuple[str, str]:  # fmt: skip
    first, then = compressors
    recording = open_recording(path)
    prepare, body, _ = translate(recording, first, settle_ns, think=think, then=then, own=own)
    return prepare, body
