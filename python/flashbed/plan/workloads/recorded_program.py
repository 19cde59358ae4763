"""Replays a recorded program: the workload `program` (docs/models/programs.md).

The pattern `recorded` keeps the program's work and waiting between calls, `flat-out` omits them.
Written data compresses about as it did when it was recorded, with the compressor of the case's file
system: on JFFS2 and UBIFS the kernel's default or the case's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path

from flashbed.plan.case import Case
from flashbed.plan.experiment import WorkloadTable, load_experiment
from flashbed.plan.narrowing import plan
from flashbed.plan.workloads.kept_translation import translated_once
from flashbed.program.recording.file import open_recording
from flashbed.program.recording.fill import Compressor, as_compressor
from flashbed.program.recording.translate import Storing, apart, translate, translate_for_each
from flashbed.stack.file_systems import COMPRESSING, FILE_SYSTEMS, ON_FTL
from flashbed.stack.flash_image import DumpFile
from flashbed.stack.profiles import USUAL_COMPRESSOR, Kernel, load_kernel

__all__ = [
    "Way",
    "as_recorded",
    "begins_with",
    "compressor_of",
    "operations",
    "second_of",
    "translated_for",
    "translated_for_each",
    "usual_compressors",
]

Way = tuple[Compressor | None, Compressor | None, str]
"""First and second compressor, and the file system."""
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
    dump = _dump(path, _stamp(path))
    own = dump and case.compressor == USUAL_COMPRESSOR and case.fs == "ubifs" and dump.compressor
    compressors = as_compressor(own) if own else compressor_of(case), second_of(case)
    think = case.pattern == RECORDED
    return translated_for(path, compressors, settle_ns, case.fs, think=think)


def begins_with(workload: WorkloadTable) -> DumpFile | None:
    """What the flash held before the recorded program. Raises `RecordingError`."""
    if workload.recording is None:
        return None
    path = Path(workload.recording)
    return _dump(path, _stamp(path))


@lru_cache(maxsize=4)
def _dump(path: Path, _changed: tuple[int, int]) -> DumpFile | None:
    facts = open_recording(path).about.dump
    if facts is None:
        return None
    return DumpFile(Path(facts.file), facts.sha256, facts.volume, facts.compressor)


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
    return _translated(
        path, _stamp(path), compressors=compressors, think=think, settle_ns=settle_ns, fs=fs
    )


def translated_for_each(
    path: Path, ways: Sequence[Way], settle_ns: int, told: Callable[[int, int], None]
) -> list[tuple[str, str]]:
    """What `translated_for` gives for each way, from one reading of the recording.

    `told` takes how many rows are translated, and how many there are.
    """
    texts: dict[Way, tuple[str, str]] = {}
    owns = list(dict.fromkeys(_own(fs) for *_, fs in ways))
    for reading, own in enumerate(owns):
        some = [way for way in ways if _own(way[2]) == own]
        storing = [Storing(first, then, _by_pages(fs)) for first, then, fs in some]

        def tell(done: int, rows: int, before: int = reading) -> None:
            told(before * rows + done, len(owns) * rows)

        made = partial(_translated_for_each, path, storing, settle_ns=settle_ns, own=own, tell=tell)
        joined = translated_once(path, (storing, settle_ns, own), made)
        prepares, bodies = (apart(text, len(some)) for text in joined)
        texts |= dict(zip(some, zip(prepares, bodies, strict=True), strict=True))
    return [texts[way] for way in ways]


def _translated_for_each(
    path: Path, storing: Sequence[Storing], *, settle_ns: int, own: bytes | None,
    tell: Callable[[int, int], None],
) -> tuple[str, str]:  # fmt: skip
    recording = open_recording(path)
    rows = recording.length()
    return translate_for_each(
        recording, storing, settle_ns=settle_ns, own=own, told=lambda done: tell(done, rows)
    )


def _own(fs: str) -> bytes | None:
    """A folder that the file system makes itself."""
    row = FILE_SYSTEMS.get(fs) or ON_FTL.get(fs)
    name = row.own_name if row else None
    return None if name is None else name.encode()


def _by_pages(fs: str) -> bool:
    """Whether whole pages are compressed."""
    return fs in FILE_SYSTEMS and FILE_SYSTEMS[fs].compresses == "pages"


@lru_cache(maxsize=4)
def _translated(
    path: Path, _changed: tuple[int, int],
    *, compressors: tuple[Compressor | None, Compressor | None], think: bool, settle_ns: int,
    fs: str,
) -> tuple[str, str]:  # fmt: skip
    first, then = compressors

    def made() -> tuple[str, str]:
        recording = open_recording(path)
        prepare, body, _ = translate(
            recording, first, settle_ns, think=think, then=then,
            by_pages=_by_pages(fs), own=_own(fs),
        )  # fmt: skip
        return prepare, body

    return translated_once(path, (first, then, think, settle_ns, fs), made)
