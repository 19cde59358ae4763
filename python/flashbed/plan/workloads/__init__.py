"""Turns cases into operations: what programs do to the file system. One module per workload.

A workload makes two flashbed-ops files of a case: the preparation, which cases share, and the
measured rest. Workloads know nothing of targets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from flashbed.base.errors import InputError
from flashbed.plan.case import Case
from flashbed.plan.patterns import WORKLOADS
from flashbed.plan.workloads import (
    collection,
    engines,
    fsync_files,
    micro_read,
    micro_write,
    overwrite,
    own_operations,
    postmark,
    raw,
    read_layout,
    recorded_program,
    sqlite,
)
from flashbed.plan.workloads.fewer_syncs import synced_every
from flashbed.plan.workloads.rounds import in_rounds
from flashbed.plan.workloads.state import in_state

if TYPE_CHECKING:
    from flashbed.plan.experiment import WorkloadTable
    from flashbed.stack.stack import Stack

__all__ = ["operations", "operations_on"]

_MAKERS: dict[str, Callable[..., tuple[str, str]]] = {
    "micro-read": micro_read.operations,
    "micro-write": micro_write.operations,
    "read-layout": read_layout.operations,
    "collection": collection.operations,
    "raw": raw.operations,
    "fsync-files": fsync_files.operations,
    "overwrite": overwrite.operations,
    "sqlite": sqlite.operations,
    "postmark": postmark.operations,
    "program": recorded_program.operations,
    "engines": engines.operations,
    "operations": own_operations.operations,
}
assert _MAKERS.keys() == WORKLOADS.keys()


def operations(kind: str, case: Case, settle_ns: int, given: str | None = None) -> tuple[str, str]:
    """(prepare, body) of a case, flashbed-ops files; `settle_ns` is the pause before measuring.

    `given` is further input of the workload: Postmark's script, the path of a recording or of a
    folder of them, or operations. Raises `InputError`.
    """
    workload = WORKLOADS[kind]
    why = workload.unknown(case.pattern) or workload.without(case.pattern, case.fs)
    if why is not None:
        raise InputError(f"{case.case_id}: {why}")
    more = () if given is None else (given,)
    return _MAKERS[kind](case, settle_ns, *more)


def operations_on(case: Case, stack: Stack, workload: WorkloadTable) -> tuple[str, str]:
    """(prepare, body) of a case, with its initial state and as often as it runs.

    Raises `InputError`.
    """
    prepare, once = operations(workload.kind, case, workload.settle_ns, workload.given)
    bad = case.faults.bad(stack.board.partition.blocks)
    prepared = in_state(
        case.state, case.fs, board=stack.board, bad_blocks=bad, prepare=prepare,
        layout=stack.layout,
    )  # fmt: skip
    step_ps = None if stack.board.software is None else stack.board.software.compute_step_ps
    return prepared, in_rounds(synced_every(once, case.sync_every_s, step_ps), case.rounds, case.vm)
