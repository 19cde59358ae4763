"""Replays a recorded program: the workload `program` (docs/models/programs.md).

The pattern `recorded` keeps the program's work and waiting between calls, `flat-out` omits them.
Written data compresses about as it did when it was recorded, with the compressor of the case's file
system: on JFFS2 and UBIFS the kernel's default or the case's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from flashbed.formats.file_systems import COMPRESSING, FILE_SYSTEMS
from flashbed.formats.profiles import USUAL_COMPRESSOR, Kernel, load_kernel
from flashbed.plan.case import Case
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import plan
from flashbed.recording.file import open_recording
from flashbed.recording.fill import Compressor, as_compressor
from flashbed.recording.translate import translate
from flashbed.workloads.kept_translation import translated_once

__all__ = [
    "as_recorded",
    "compressor_of",
    "operations",
    "second_of",
    "translated_for",
    "usual_compressors",
]

RECORDED = "recorded"


def as_recorded(
    recording: Path, kernel: str, file_systems: Sequence[str]
) -> Iterator[tuple[Case, str, str]]:
    """The recording's own case on each file system: case, prepare, body.

    Raises `RecordingError`.
    """
    experiment = load_experiment(str(recording))
    settings = {"fs": tuple(file_systems), "kernel": (kernel,), "pattern": (RECORDED,)}
    workload = experiment.workload
    assert workload.recording is not None
    for planned in plan(experiment, settings):
        yield planned.case, *operations(planned.case, workload.settle_ns, workload.recording)


def operations(case: Case, settle_ns: int, recording: str) -> tuple[str, str]:
    """The case as (prepare, body), two flashbed-ops files. Raises `RecordingError`."""
    path = Path(recording)
    compressors = compressor_of(case), second_of(case)
    think = case.pattern == RECORDED
    return translated_for(path, compressors, settle_ns, case.fs, think=think)


def compressor_of(case: Case) -> Compressor | None:
    """The compressor of a case's file system; None where it stores data as it is."""
    if case.fs not in COMPRESSING:
        return None
    if case.compressor != USUAL_COMPRESSOR:
        return as_compressor(case.compressor)
    return usual_compressors(case.fs, load_kernel(case.kernel))[0]


def second_of(case: Case) -> Compressor | None:
    """JFFS2's compressor for what the first one does not shrink."""
    if case.compressor != USUAL_COMPRESSOR:
        return None
    return usual_compressors(case.fs, load_kernel(case.kernel))[1]


def usual_compressors(fs: str, kernel: Kernel) -> tuple[Compressor | None, Compressor | None]:
    """A kernel's default compressor, and JFFS2's for what that one does not shrink."""
    names: list[str | None] = []
    if fs == "jffs2" and kernel.jffs2:
        names = [*kernel.jffs2.compressors]
    elif fs == "ubifs" and kernel.ubifs:
        names = [kernel.ubifs.compressor]
    first, second, *_ = [*names, None, None]
    return as_compressor(first), as_compressor(second)


def _stamp(path: Path) -> tuple[int, int]:
    """Identifies a file's contents: it changes when the file is rewritten."""
    try:
        status = path.stat()
    except (OSError, ValueError):  # no file, or a path that no file can have
        return 0, 0
    return status.st_mtime_ns, status.st_size


def translated_for(
    path: Path,
    compressors: tuple[Compressor | None, Compressor | None],
    settle_ns: int,
    fs: str,
    *,
    think: bool = True,
) -> tuple[str, str]:
    """Preparation and body of a recording for a file system. Raises `RecordingError`."""
    return _translated(path, _stamp(path), compressors, think, settle_ns, fs)


@lru_cache(maxsize=4)
def _translated(
    path: Path, _changed: tuple[int, int],
    compressors: tuple[Compressor | None, Compressor | None], think: bool, settle_ns: int,
    fs: str,
) -> tuple[str, str]:  # fmt: skip
    first, then = compressors
    row = FILE_SYSTEMS.get(fs)
    own = row.own_name.encode() if row and row.own_name else None

    def made() -> tuple[str, str]:
        recording = open_recording(path)
        prepare, body, _ = translate(
            recording, first, settle_ns, think=think, then=then,
            by_pages=row is not None and row.compresses == "pages", own=own,
        )  # fmt: skip
        return prepare, body

    return translated_once(path, (first, then, think, settle_ns, fs), made)
