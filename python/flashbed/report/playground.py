"""Links from a report to the playground, which simulates the same cases in a browser (page/).

What is chosen on that page stands in its address. `address` writes a case as page/web/state.ts
writes its configuration, which a test holds equal. A case that the page's controls cannot express
has no address: another workload, a state, a fault, a profile that the page does not have.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import polars as pl

from flashbed.base import paths
from flashbed.base.errors import InputError
from flashbed.base.files import is_stream, read_json, whole
from flashbed.plan.case import AXES, NO_ADVICE, Case
from flashbed.plan.database import PAPERS
from flashbed.plan.experiment import SETTLE_NS, Experiment, WorkloadTable
from flashbed.stack.changes import (
    AS_BOOTED,
    AS_DRIVEN,
    TYPICAL,
    ChipChange,
    ControllerChange,
    MemoryChange,
    PartitionChange,
    PolicyChange,
    VmChange,
)
from flashbed.stack.conditions import Faults, State, Worn
from flashbed.stack.file_systems import FILE_SYSTEMS
from flashbed.stack.mounts import PLAIN
from flashbed.stack.names import DEFAULT_WINDOW, USUAL_BOARD, USUAL_KERNEL
from flashbed.stack.profiles import Board, load_kernel

__all__ = [
    "ADDRESS",
    "BESIDE",
    "USUAL",
    "LiveCase",
    "address",
    "live_cases",
    "opening",
    "page_for",
]

ADDRESS = "FLASHBED_PLAYGROUND"
"""Where links lead: an address without `#`. Empty: reports have no links."""
BESIDE = "playground.html"
LOOKED_AT_MAX = 2_000
_ADDRESS = re.compile(r"(https?|file)://[^\s#]{1,2000}")
USUAL: Mapping[str, object] = {
    "think": True, "bulkRead": False, "kernel": USUAL_KERNEL, "readAhead": -1,
    "compressor": "default", "board": USUAL_BOARD, "blocks": 0, "badBlocks": 0, "worn": 0,
    "requests": 256, "requestBytes": 4096, "fileKib": 4096, "order": "random",
}  # fmt: skip
"""What an address leaves out, in the order of USUAL in page/web/state.ts."""
_CHIP_KEYS = (
    "page_bytes", "oob_bytes", "pages_per_block", "read_array_ns", "program_array_ns",
    "erase_array_ns", "bus_read_ns", "bus_program_ns", "column_change_ns",
)  # fmt: skip
_KINDS = ("program", "micro-read", "micro-write")
_NUMBER_MAX = 1_000_000_000
_MOUNTS = {PLAIN: False, "ubifs:bulk_read": True}
_THINKS = {"recorded": True, "flat-out": False}
_KIB = 1024


@dataclass(frozen=True, kw_only=True)
class LiveCase:
    """A case that the playground can show: what the simulator measured, and its address."""

    case_id: str
    fs: str
    time_ns: int | None
    flash_programs: int | None
    address: str


def live_cases(directory: Path, experiment: Experiment, cases: pl.DataFrame) -> list[LiveCase]:
    """The cases of a run that have an address, simulated ones first, each once.

    Of a long run only the first LOOKED_AT_MAX are looked at.
    """
    workload = _with_source(directory, experiment.workload)
    if workload is None or workload.kind not in _KINDS:
        return []
    simulated = pl.col("target") == "sim"
    rows = pl.concat([cases.filter(simulated), cases.filter(~simulated)])
    rows = rows.unique("case_id", keep="first", maintain_order=True).head(LOOKED_AT_MAX)
    return list(_live(rows.iter_rows(named=True), workload))


def _live(rows: Iterable[dict[str, Any]], workload: WorkloadTable) -> Iterator[LiveCase]:
    profiles = _Profiles()
    for row in rows:
        with suppress(InputError):  # a condition with a name, a profile that is gone
            case = _case(row)
            link = _address(case, workload, profiles)
            if link is not None and profiles.are_shipped(case, row):
                simulated = row["target"] == "sim"
                yield LiveCase(
                    case_id=case.case_id,
                    fs=case.fs,
                    time_ns=row["time_ns"] if simulated else None,
                    flash_programs=row["flash_programs"] if simulated else None,
                    address=link,
                )


def _case(row: Mapping[str, Any]) -> Case:
    """The case of a row of `cases`. Raises `InputError`."""
    values = {name: row[name] for name in AXES} | {
        "experiment": row["experiment"],
        "state": State.parse(row["state"]),
        "faults": Faults.parse(row["faults"]),
        "chip": ChipChange.parse(row["chip"]),
        "controller": ControllerChange.parse(row["controller"]),
        "partition": PartitionChange.parse(row["partition"]),
        "memory": MemoryChange.parse(row["memory"]),
        "vm": VmChange.parse(row["vm"]),
        "policy": PolicyChange.parse(row["policy"]),
    }
    if row["window"] == DEFAULT_WINDOW:
        values["read_ahead_kib"] = DEFAULT_WINDOW
    return Case.of(values)


def _with_source(directory: Path, workload: WorkloadTable) -> WorkloadTable | None:
    """The workload with the path of the recording that ran; None if that is not known."""
    if workload.recording is None:
        return workload
    try:
        source = read_json(directory / "run.json").get("file")
    except InputError:
        return None
    if not isinstance(source, str):
        return None
    recording = str(Path(source).parent / Path(workload.recording).name)
    return workload.model_copy(update={"recording": recording})


def address(case: Case, workload: WorkloadTable) -> str | None:
    """What follows `#` in the address of the playground; None if it has no such case."""
    return _address(case, workload, _Profiles())


def opening(case: Case) -> str | None:
    """An address without a program, for a page that has the reader's own; None as `address`."""
    return _encoded(case, {"think": _THINKS.get(case.pattern, True)}, _Profiles())


def _address(case: Case, workload: WorkloadTable, profiles: _Profiles) -> str | None:
    program = _program(case, workload)
    if program is None or workload.settle_ns != SETTLE_NS or str(case.database) != str(PAPERS):
        return None
    return _encoded(case, program, profiles)


def _encoded(case: Case, program: Mapping[str, object], profiles: _Profiles) -> str | None:
    conditions = _conditions(case, profiles)
    if conditions is None or case.mount not in _MOUNTS or case.vm != AS_BOOTED:
        return None
    if case.corner != TYPICAL or case.controller != AS_DRIVEN:
        return None
    words: dict[str, object] = {
        "fs": case.fs, "bulkRead": _MOUNTS[case.mount], "kernel": case.kernel,
        "readAhead": -1 if case.forced_kib is None else case.forced_kib,
        "compressor": case.compressor, "board": case.board, **program, **conditions,
    }  # fmt: skip
    chip = dict(case.chip.values)
    if not {*chip} <= {*_CHIP_KEYS} or case.fs not in FILE_SYSTEMS:
        return None
    named = [name for name in ("program",) if name in words]
    named += [name for name in USUAL if words.get(name, USUAL[name]) != USUAL[name]]
    named.insert(sum(name in ("program", "think") for name in named), "fs")
    written = {name: words[name] for name in named}
    written |= {name: chip[name] for name in _CHIP_KEYS if name in chip}
    if any(isinstance(value, int) and value > _NUMBER_MAX for value in written.values()):
        return None
    return urlencode({name: _word(value) for name, value in written.items()})


def _word(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def _program(case: Case, workload: WorkloadTable) -> dict[str, object] | None:
    if workload.kind == "program":
        recording = Path(workload.recording or "")
        ours = paths.root() / "experiments" / "programs" / recording.name
        if recording.resolve() != ours.resolve():
            return None
        return {"program": recording.stem, "think": _THINKS[case.pattern]}
    if workload.kind not in _KINDS:
        return None
    # Random places are drawn by the seed, which the page keeps at 1.
    is_plain = case.pattern == "sequential" or (case.pattern == "random" and case.seed == 1)
    is_plain = is_plain and case.pause_ns == 0 and case.advice == NO_ADVICE
    if not is_plain or case.file_bytes % _KIB:
        return None
    return {
        "program": workload.kind, "requests": case.requests, "requestBytes": case.request_bytes,
        "fileKib": case.file_bytes // _KIB, "order": case.pattern,
    }  # fmt: skip


def _conditions(case: Case, profiles: _Profiles) -> dict[str, object] | None:
    """The partition's blocks and what is wrong with them, as the page's sliders have it."""
    blocks = case.partition.blocks or 0
    bad = case.faults.bad_blocks
    worn = case.state.worn.mean if isinstance(case.state.worn, Worn) else case.state.worn
    partition = blocks or profiles.board(case).partition.blocks
    spread = tuple((2 * at + 1) * partition // (2 * len(bad)) for at in range(len(bad)))
    same = (
        case.partition.first_block is None
        and case.state.text == State(worn=worn).text
        and case.faults.text == Faults(bad_blocks=spread).text
    )
    return {"blocks": blocks, "badBlocks": len(bad), "worn": worn} if same else None


class _Profiles:
    """The boards and kernels of cases, each read once: a run has thousands of cases."""

    def __init__(self) -> None:
        self._boards: dict[tuple[str, str, str], Board] = {}
        self._shipped: dict[tuple[str, str], bool] = {}
        self._kernels: dict[str, str] = {}

    def board(self, case: Case) -> Board:
        """The board with the case's changes. Raises `ProfileError`."""
        key = (case.board, str(case.chip), str(case.partition))
        if key not in self._boards:
            self._boards[key] = case.profile()
        return self._boards[key]

    def are_shipped(self, case: Case, row: Mapping[str, Any]) -> bool:
        """Whether the case ran with the profiles that ship, as they are now."""
        key = (case.board, case.kernel)
        if key not in self._shipped:
            self._shipped[key] = _ships(*key)
            self._kernels[case.kernel] = load_kernel(case.kernel).sha256
        return (
            self._shipped[key]
            and self.board(case).sha256 == row["board_sha256"]
            and self._kernels[case.kernel] == row["kernel_sha256"]
        )


def _ships(board: str, kernel: str) -> bool:
    boards = paths.root() / "boards"
    files = {
        paths.board_file(board): boards / f"{board}.toml",
        paths.kernel_file(kernel): boards / "kernels" / f"{kernel}.toml",
    }
    return all(used.resolve() == shipped.resolve() for used, shipped in files.items())


def page_for(out: Path) -> str | None:
    """The playground's address for links of a report's file; None if there is no playground.

    Without FLASHBED_PLAYGROUND it is a copy beside the report, so that both can be passed on
    together. Raises `InputError` if that variable holds no address.
    """
    given = os.environ.get(ADDRESS)
    if given is not None:
        if given and not _ADDRESS.fullmatch(given):
            raise InputError(f"{ADDRESS}: {given!r} is no address such as https://example.org/try")
        return given or None
    built, beside = paths.playground(), out.parent / BESIDE
    if not built.is_file() or is_stream(out):
        return None
    if not (beside.exists() and beside.samefile(built)):
        with whole(beside) as new:
            _link_or_copy(built, new)
    return BESIDE


def _link_or_copy(source: Path, new: Path) -> None:
    """A hard link, which takes no space, where the file system has them."""
    new.unlink()
    try:
        os.link(source, new)
    except OSError:
        shutil.copyfile(source, new)
