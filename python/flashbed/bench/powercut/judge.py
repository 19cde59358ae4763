"""Compares what a cut left with what it may leave: one verdict per cut.

The functions are pure. Operations, their results, the chip's changes by then and surveys go in;
rows of `power_cuts` (docs/reference/tables.md) come out. tree.py decides what is allowed;
docs/models/power-cuts.md says why. The verdict is the worst fault found; the reason is its first
occurrence, sorted by path.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from flashbed.bench.powercut.database_judge import History
from flashbed.bench.powercut.finished import DoneOperation
from flashbed.bench.powercut.program_files import ProgramFiles
from flashbed.bench.powercut.tree import Entry, FileTree, Symlink, TreeFile
from flashbed.program.content import Bytes, generated
from flashbed.targets.base import Survey, SurveyedFile

__all__ = [
    "CORRUPT",
    "LOST",
    "NOT_MOUNTED",
    "RECOVERED",
    "UNUSABLE",
    "VERDICTS",
    "DoneOperation",
    "JudgedCut",
    "judge",
]

RECOVERED = "recovered"
NOT_MOUNTED = "not mounted"
LOST = "lost"
CORRUPT = "corrupt"
UNUSABLE = "unusable"
_NOTHING: Mapping[str, Entry] = {}
VERDICTS = (RECOVERED, NOT_MOUNTED, LOST, CORRUPT, UNUSABLE)


@dataclass(frozen=True, kw_only=True)
class JudgedCut:
    """A cut and its verdict; numbers are None if nothing could be read."""

    change: int
    acknowledged_files: int
    kept_files: int | None
    lost_files: int | None
    mounted: bool
    mount_time_ns: int
    verdict: str
    reason: str | None
    lost_transactions: int | None = None
    """Of a database: transactions that had returned and are gone, promised or not."""


@dataclass(frozen=True)
class _Fault:
    kind: str
    message: str


def judge(
    done: Sequence[DoneOperation], surveys: Sequence[Survey], program: ProgramFiles | None = None,
    *, disk: bool = False, there: Mapping[str, Entry] = _NOTHING,
) -> Iterator[JudgedCut]:  # fmt: skip
    """Judges every survey, sorted by change; `program` judges what its files hold.

    A `disk` has one file from the begin, itself, which is all zeros. Others have what is `there`.

    Raises `InputError` for what cannot be judged.
    """
    tree, history, returned, begun = FileTree(), History(), 0, 0
    tree.add(there)
    if disk:
        tree.add_disks(file for survey in surveys[:1] for file in survey.files)

    def begin() -> None:
        step = done[begun]
        tree.begin(step.operation, step.result, step.data)
        history.begin(step.operation, step.result)
        if program is not None:
            program.begun(begun, tree)

    for survey in sorted(surveys, key=lambda survey: survey.change):
        while returned < len(done) and done[returned].changes < survey.change:
            step = done[returned]
            if begun == returned:
                begin()
                begun += 1
            tree.returned(step.operation, step.result)
            history.returned(step.operation)
            returned += 1
        if begun == returned and begun < len(done):
            begin()
            begun += 1
        if program is not None and not survey.mount_result:
            found = {file.path: file for file in survey.files if not history.owns(file.path)}
            program.judge(survey.change, begun, found, _whole_content)
        yield _judged(tree, history, survey)
    history.close()


def _judged(tree: FileTree, history: History, survey: Survey) -> JudgedCut:
    names = {path: files for path, files in tree.names.items() if not history.owns(path)}
    acknowledged = [path for path, files in names.items() if files[0] is not None]
    if history.path is not None and history.durable:
        acknowledged.append(history.path)
    if survey.mount_result:
        return JudgedCut(
            change=survey.change,
            acknowledged_files=len(acknowledged),
            kept_files=None,
            lost_files=None,
            mounted=False,
            mount_time_ns=survey.mount_time_ns,
            verdict=NOT_MOUNTED,
            reason=f"mounting: {_error(survey.mount_result)}",
        )
    found = {file.path: file for file in survey.files if not history.owns(file.path)}
    faults = dict(_faults(names, found))
    wrong = history.fault(survey.database) if survey.database else None
    if wrong and survey.database:
        lost, message = wrong
        faults[survey.database.path] = _Fault(LOST if lost else CORRUPT, message)
    verdict, reason = _verdict(faults, survey.probe_result or 0)
    return JudgedCut(
        change=survey.change,
        acknowledged_files=len(acknowledged),
        kept_files=len([path for path in acknowledged if path not in faults]),
        lost_files=len([path for path in acknowledged if _is_lost(faults.get(path))]),
        mounted=True,
        mount_time_ns=survey.mount_time_ns,
        verdict=verdict,
        reason=reason,
        lost_transactions=history.lost_transactions(survey.database) if survey.database else None,
    )


def _is_lost(fault: _Fault | None) -> bool:
    return fault is not None and fault.kind == LOST


def _verdict(faults: Mapping[str, _Fault], probe_result: int) -> tuple[str, str | None]:
    for kind in (LOST, CORRUPT):
        found = [fault.message for fault in faults.values() if fault.kind == kind]
        if found:
            more = len(faults) - 1
            return kind, found[0] + (f" (and {more} more)" if more else "")
    if probe_result:
        return UNUSABLE, f"writing, syncing and reading a new file: {_error(probe_result)}"
    return RECOVERED, None


def _error(result: int) -> str:
    return f"{errno.errorcode.get(-result, result)} ({os.strerror(-result)})"


def _faults(
    names: Mapping[str, Sequence[Entry]], found: Mapping[str, SurveyedFile]
) -> Iterator[tuple[str, _Fault]]:
    """Path -> what is wrong with it."""
    for path in sorted({*names, *found}):
        allowed = names.get(path, [None])
        fault = _fault(path, allowed, found.get(path))
        if None in allowed and (fault or path not in found):
            gone = _vanished(path, allowed[0], names, found) if allowed[0] else None
            # Nothing was required there, so a present file is no loss; but it is not allowed.
            fault = gone or (replace(fault, kind=CORRUPT) if fault else None)
        if fault:
            yield path, fault


def _vanished(
    path: str,
    file: TreeFile | Symlink,
    names: Mapping[str, Sequence[Entry]],
    found: Mapping[str, SurveyedFile],
) -> _Fault | None:
    """A file whose acknowledged name is gone: if it was being renamed, it must have the new one."""
    others = [other for other, files in names.items() if file in files]
    now = [other for other in others if names[other][-1] is file]
    if not now or any(
        other in found and _entry_fault(other, file, found[other]) is None for other in others
    ):
        return None
    return _Fault(LOST, f"{path}: was being renamed to {now[0]}, and neither name exists")


def _fault(path: str, allowed: Sequence[Entry], found: SurveyedFile | None) -> _Fault | None:
    if found is None:
        if None in allowed:
            return None
        return _Fault(LOST, f"{path}: is missing, and had been acknowledged")
    files = list(dict.fromkeys(file for file in allowed if file is not None))
    if not files:
        return _Fault(CORRUPT, f"{path}: exists, and no operation left it there")
    faults = []
    for file in files:
        fault = _entry_fault(path, file, found)
        if fault is None:
            return None
        faults.append(fault)
    # Reports the candidate that agrees furthest; of equals, the durable one.
    return max(faults, key=lambda pair: pair[0])[1]


def _entry_fault(
    path: str, wanted: TreeFile | Symlink, found: SurveyedFile
) -> tuple[int, _Fault] | None:
    """How far what was found agrees with a file or a link that may be there, and a message."""
    if isinstance(wanted, TreeFile) and found.target is None:
        return _content_fault(path, wanted, found)
    if isinstance(wanted, TreeFile):
        return -1, _Fault(LOST, f"{path}: is a symbolic link, and had been a file")
    if found.target is None:
        return -1, _Fault(LOST, f"{path}: is a file, and had been a symbolic link")
    if found.target == wanted.target:
        return None
    message = f"{path}: leads to {found.target}, and had been made to lead to {wanted.target}"
    return 0, _Fault(LOST, message)


def _content_fault(path: str, file: TreeFile, found: SurveyedFile) -> tuple[int, _Fault] | None:
    """Where the contents first differ from what the file may hold, and a message.

    `LOST` assumes that the file must exist; `_faults` knows whether it must.
    """
    data, unknown = _content(found)
    durable, size = len(file.durable), found.size_bytes
    wrong = file.wrong_at(data, unknown)
    if wrong is None and any(isinstance(run.what, int) for run in found.runs):
        wrong = 0  # it could not even be opened
    if wrong is not None and wrong < file.largest:
        kind = LOST if wrong < durable else CORRUPT
        had = "acknowledged bytes" if wrong < durable else "bytes never acknowledged"
        return wrong, _Fault(kind, f"{path}: offset {wrong}: {had} are {_what(found, wrong)}")
    if size > file.largest or wrong is not None:
        message = (
            f"{path}: offset {file.largest}: has {size} bytes, never had more than {file.largest}"
        )
        return file.largest, _Fault(CORRUPT, message)
    if size < file.smallest:
        message = f"{path}: offset {size}: ends there, {file.smallest} bytes had been acknowledged"
        return size, _Fault(LOST if size < durable else CORRUPT, message)
    return None


def _what(found: SurveyedFile, offset: int) -> str:
    """Describes the bytes at an offset."""
    for run in found.runs:
        if run.offset_bytes <= offset < run.offset_bytes + max(run.length_bytes, 1):
            match run.what:
                case int():
                    return f"unreadable: {_error(run.what)}"
                case "zero":
                    return "zero"
                case tuple():
                    return "those of another write"
                case bytes() if run.what[offset - run.offset_bytes] == 0:
                    return "zero"
                case _:
                    return "bytes that it may not hold"
    return "missing"


def _content(found: SurveyedFile) -> tuple[Bytes, npt.NDArray[np.bool_]]:
    """The bytes of a file, and which of them are unknown."""
    data = np.zeros(found.size_bytes, np.uint8)
    unknown = np.ones(found.size_bytes, np.bool_)
    for run in found.runs:
        start, end = run.offset_bytes, run.offset_bytes + run.length_bytes
        if isinstance(run.what, tuple):
            data[start:end] = _generated(start, run.length_bytes, *run.what)
        if isinstance(run.what, bytes):
            data[start:end] = np.frombuffer(run.what, np.uint8)
        if isinstance(run.what, tuple | bytes) or run.what == "zero":
            unknown[start:end] = False
    return data, unknown


def _whole_content(found: SurveyedFile) -> Bytes | None:
    data, unknown = _content(found)
    return None if unknown.any() else data


@lru_cache(maxsize=4096)
def _generated(offset: int, length: int, seed: int, compressibility: int) -> Bytes:
    return generated(offset, length, seed, compressibility)
