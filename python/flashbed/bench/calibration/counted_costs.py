"""Runs an experiment on the simulator for a device model: what its cases cost, and what they count.

The simulator is asked three things: the tables of every case; how often each price occurs, in cases
of the fewest requests, on the first chip of each page size and way of reading; and how much file
systems store of pages that compress.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flashbed import __version__
from flashbed.answers.costs.counting import counts
from flashbed.answers.costs.device_fit import Seen, fit_system
from flashbed.answers.costs.device_model import DeviceModel, FsModel
from flashbed.answers.costs.devices import Packing, below_of, reads_event
from flashbed.answers.costs.logs import PIECES_BYTES, STORED_STEPS
from flashbed.answers.costs.model import CostSource
from flashbed.base.errors import InputError
from flashbed.bench.calibration.price_counts import FITTED, code_times_ns, price_counts
from flashbed.plan.case import Case
from flashbed.program.operation_fields import PAGE_BYTES
from flashbed.program.operations import HEADER
from flashbed.targets.base import Program
from flashbed.targets.sim import SimTarget

__all__ = ["fit_devices", "packing_of", "seen_cases"]

Say = Callable[[str], None]
_SAMPLED = 3
"""Of so many cases prices are counted in one."""
_PAGES = 32
"""Written of each compressibility, to see what is stored."""
_SECOND = "compressors.deflate.node_ns"
"""Of JFFS2, which tries LZO first; UBIFS has one compressor."""


@dataclass(frozen=True)
class _RanCase:
    program: Program
    row: dict[str, Any]


def fit_devices(
    cases: Sequence[Case], programs: Sequence[Program], source: CostSource, say: Say
) -> DeviceModel:
    """The model of cases and their programs. Raises `InputError`."""
    kernels = {program.stack.kernel.sha256: program.stack.kernel.name for program in programs}
    if len(kernels) != 1:
        raise InputError(f"a device model is of one kernel: {', '.join(kernels.values())}")
    systems = {}
    few = _fewest(cases)
    for fs in dict.fromkeys(case.fs for case in cases):
        own = [program for program in programs if program.stack.fs == fs]
        say(f"{fs}: {len(own)} cases")
        packing = packing_of(own[0])
        systems[fs] = fit_system(fs, packing, seen_cases(own, packing, few))
    ((sha256, kernel),) = kernels.items()
    return DeviceModel(
        flashbed_version=__version__,
        kernel=kernel,
        kernel_sha256=sha256,
        sources=(source,),
        fitted_to=tuple(dict.fromkeys(_device(program) for program in programs)),
        systems=systems,
    )


def _device(program: Program) -> str:
    """Board and chip, as a model names them."""
    board = program.stack.board
    return board.name if board.fit is None else f"{board.name} with {board.fit.part.name}"


def seen_cases(
    programs: Sequence[Program], packing: Packing | FsModel, few: Collection[str] = ()
) -> list[Seen]:
    """The cases of one file system that ran, without those in which calls failed.

    Of the `few` the simulator counts prices too.
    """
    ran = _run(programs)
    software = _software([one.program for one in ran], few) if few else {}
    found = []
    for one in ran:
        row, program = one.row, one.program
        below = below_of(program.stack, packing)
        found.append(
            Seen(
                name=program.case_id,
                device=_device(program),
                board=program.stack.board,
                counted=counts(below, program.prepare, program.body),
                values={
                    "time_ns": row["time_ns"],
                    "page_reads": row["flash_reads"] + row["flush_reads"],
                    "page_writes": row["flash_programs"] + row["flush_programs"],
                    "erases": row["flash_erases"] + row["flush_erases"],
                },
                call_writes=row["flash_programs"],
                call_erases=row["flash_erases"],
                flash_time_ns=row["flash_time_ns"],
                software=software.get(program.case_id),
            )
        )
    return found


def _run(programs: Sequence[Program]) -> list[_RanCase]:
    """What ran; a partition that is too small for a file system is left out."""
    rows: dict[str, dict[str, Any]] = {}
    for batch in SimTarget().run(programs):
        rows |= {row["case_id"]: row for row in batch.cases.iter_rows(named=True)}
    kept = [(one, rows.get(one.case_id)) for one in programs]
    return [_RanCase(one, row) for one, row in kept if row is not None and not row["failed"]]


def _fewest(cases: Sequence[Case]) -> set[str]:
    """The cases with the fewest requests of their pattern: counting runs them once a price."""
    fewest: dict[tuple[str, bool], int] = {}
    for case in cases:
        key = (case.pattern, case.database.commits_each)
        fewest[key] = min(case.requests, fewest.get(key, case.requests))
    return {
        case.case_id
        for case in cases
        if case.requests == fewest[case.pattern, case.database.commits_each]
    }


def _software(programs: Sequence[Program], few: Collection[str]) -> dict[str, dict[str, float]]:
    """How often each price occurs, by case, on one device of each kind."""
    kinds: dict[tuple[int, str], str] = {}
    groups: dict[str, list[Program]] = {}
    for program in (program for program in programs if program.case_id in few):
        board = program.stack.board
        device = _device(program)
        if kinds.setdefault((board.chip.page_bytes, reads_event("", board)), device) == device:
            groups.setdefault(device, []).append(program)
    found = {}
    for own in groups.values():
        some = own[::_SAMPLED]
        occurs = price_counts(some, FITTED, {}, code_times_ns)
        for program, row in zip(some, occurs.tolist(), strict=True):
            found[program.case_id] = dict(zip(FITTED, row, strict=True))
    return found


def packing_of(program: Program) -> Packing:
    """What the compressor of a program's stack does, found by writing pages of each kind."""
    steps = range(STORED_STEPS + 1)
    saved = [100 * step // STORED_STEPS for step in steps]

    def asked(size: int) -> list[Program]:
        bodies = [_pages(size, percent) for percent in saved]
        return [
            replace(program, case_id=str(step), prepare=f"{HEADER}\n", body=body)
            for step, body in enumerate(bodies)
        ]

    written = [0.0] * len(steps)
    for batch in SimTarget().run(asked(PAGE_BYTES)):
        for row in batch.cases.iter_rows(named=True):
            stored = row["bytes_data"] + row["flush_bytes_data"]
            written[int(row["case_id"])] = min(1.0, stored / (_PAGES * PAGE_BYTES))
    retried = []
    for size in PIECES_BYTES:
        tried = price_counts(asked(size), (_SECOND,), {}, code_times_ns)[:, 0]
        retried.append(tuple((tried / _PAGES).clip(0.0, 1.0).tolist()))
    return Packing(tuple(written), tuple(retried))


def _pages(size: int, saved: int) -> str:
    lines = [
        line
        for page in range(_PAGES)
        for line in (f"write 0 {page * PAGE_BYTES} {size} {page + 1} {saved}", "fsync 0")
    ]
    return "\n".join([HEADER, "open 0 file rw,create", "mark", *lines, "close 0", ""])
