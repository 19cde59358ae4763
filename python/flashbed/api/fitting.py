"""Does it fit, and where did the space go? `flashbed space` prints it.

What a file system keeps is told by the simulator's mount; what files really take is measured by
filling it there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import polars as pl

from flashbed._sim import SpaceTable
from flashbed.answers.space.ledger import Ledger, beside, ledger_of
from flashbed.base.errors import InputError, RunError
from flashbed.plan.workloads.space import space_table
from flashbed.program.operations import HEADER
from flashbed.stack.stack import Stack
from flashbed.targets.base import Program, Target
from flashbed.targets.sim import SimTarget

__all__ = [
    "FILE_BYTES", "Fits", "block_bytes_of", "crossing", "filled", "fits", "in_blocks",
    "ledger", "smallest_for_files", "smallest_mount", "volume_stack",
]  # fmt: skip

FILE_BYTES = 1 << 20
"""The size of the files that fill a file system."""
_REQUEST_BYTES = 65_536
_ALL_PCT = 100
_LEAST_KEPT_PCT = 4
"""Of a page that a compressor makes as small as it can: node and index stay."""


def block_bytes_of(stack: Stack) -> int:
    """The size of an erase block."""
    chip = stack.board.chip
    return chip.block_bytes


def in_blocks(stack: Stack, blocks: int) -> Stack:
    """The stack on a partition of so many blocks. Raises `InputError`."""
    return replace(stack, board=stack.board.changed({"partition": {"blocks": blocks}}))


def ledger(stack: Stack, volume: Stack | None = None) -> Ledger:
    """Where the bytes of the partition are on a new file system, or on a new one of a volume.

    Raises `InputError` if it cannot be mounted.
    """
    of_volume = None if volume is None else _table(volume)
    found = ledger_of(_table(stack), of_volume)
    others = stack.board.partition.blocks - len(stack.blocks)
    return beside(found, others, block_bytes_of(stack))


def _table(stack: Stack) -> SpaceTable:
    return space_table(stack.simulated_fs, stack.board, stack.faults.bad_blocks, stack.layout)


def volume_stack(stack: Stack, volume_bytes: int) -> tuple[Stack, int, int]:
    """The stack of one volume of this size, the volume's LEBs, and those that UBI has for volumes.

    UBIFS sees only its volume, so that of a partition with as many LEBs is the same. Raises
    `InputError` where there is no UBI.
    """
    facts = ledger(stack).facts
    if "lebs" not in facts:
        raise InputError(f"--volume: {stack.fs} is not on UBI")
    lebs = -(-volume_bytes // facts["leb_bytes"])
    blocks = stack.board.partition.blocks - facts["lebs"] + lebs
    return (stack if lebs > facts["lebs"] else in_blocks(stack, blocks)), lebs, facts["lebs"]


def _mounts(stack: Stack, blocks: int) -> bool:
    try:
        _table(in_blocks(stack, blocks))
    except InputError:
        return False
    return True


def smallest_mount(stack: Stack) -> int | None:
    """The fewest blocks on which the file system can be mounted; None if no number will do."""
    high = next(
        (blocks for blocks in _doubled(_most_blocks(stack)) if _mounts(stack, blocks)), None
    )
    return None if high is None else _least(high // 2, high, lambda blocks: _mounts(stack, blocks))


def _doubled(most: int) -> list[int]:
    sizes = [4]
    while sizes[-1] * 2 < most:
        sizes.append(sizes[-1] * 2)
    return [*sizes, most]


def _least(no: int, yes: int, holds: Callable[[int], bool]) -> int:
    """The least number for which it holds. It does not hold for `no`, and does for `yes`."""
    while yes - no > 1:
        middle = (no + yes) // 2
        if holds(middle):
            yes = middle
        else:
            no = middle
    return yes


def _program(stack: Stack, compressible: int, files_bytes: int) -> Program:
    """Writes files until so many bytes are written, then syncs."""
    lines = []
    for number in range(-(-files_bytes // FILE_BYTES)):
        lines.append(f"open 0 f{number} rw,create")
        size = min(FILE_BYTES, files_bytes - number * FILE_BYTES)
        for offset in range(0, size, _REQUEST_BYTES):
            length = min(_REQUEST_BYTES, size - offset)
            lines.append(f"write 0 {offset} {length} {number + 1} {compressible}")
        lines.append("close 0")
    lines.append("sync")
    return Program(
        case_id=f"{stack.fs}-{compressible}", stack=stack, prepare=f"{HEADER}\nprepared\n",
        body="\n".join([HEADER, "mark", *lines, ""]), record_flush=True,
    )  # fmt: skip


def filled(stack: Stack, compressible: int = 0, *, target: Target | None = None) -> int:
    """Bytes of files that root can write until there is no space, this share of them compressible.

    Files have 1 MiB and are written in order. Raises `RunError`.
    """
    kept = max(_LEAST_KEPT_PCT, _ALL_PCT - compressible)
    partition_bytes = stack.board.partition.blocks * block_bytes_of(stack)
    return _written(stack, compressible, partition_bytes * _ALL_PCT // kept, target)[0]


def _written(
    stack: Stack, compressible: int, files_bytes: int, target: Target | None = None
) -> tuple[int, int]:
    """Bytes that were written of so many, and those that df calls available afterwards."""
    program = _program(stack, compressible, files_bytes)
    (batch,) = (target or SimTarget()).run([program])
    if batch.failures:
        raise RunError(f"{stack.fs}: {batch.failures[0].message}")
    writes = batch.requests.filter((pl.col("op") == "write") & (pl.col("result") > 0))
    left = batch.cases["left_bytes"][0] if "left_bytes" in batch.cases.columns else None
    return int(writes["result"].sum()), int(left or 0)


@dataclass(frozen=True, kw_only=True)
class Fits:
    """Whether so many bytes of files fit, and what is left beside them.

    `written_bytes` are less than `files_bytes` if they do not fit. `more_bytes` can be written
    besides: that much can be new before what it replaces is removed.
    """

    files_bytes: int
    written_bytes: int
    available_bytes: int
    more_bytes: int

    @property
    def fit(self) -> bool:
        """Whether all of them were written."""
        return self.written_bytes >= self.files_bytes


def fits(stack: Stack, files_bytes: int, compressible: int = 0) -> Fits:
    """Writes files of 1 MiB, so many bytes together, and then more until there is no space."""
    written, left = _written(stack, compressible, files_bytes)
    more = 0
    if written >= files_bytes:
        more = max(0, filled(stack, compressible) - files_bytes)
    return Fits(
        files_bytes=files_bytes, written_bytes=written, available_bytes=left, more_bytes=more
    )


def smallest_for_files(stack: Stack, files_bytes: int, compressible: int = 0) -> int | None:
    """The fewest blocks whose file system takes the files; None if the chip is too small."""
    least, most = smallest_mount(stack), _most_blocks(stack)
    if least is None:
        return None

    def holds(blocks: int) -> bool:
        return _written(in_blocks(stack, blocks), compressible, files_bytes)[0] >= files_bytes

    if holds(least):
        return least
    below = least
    for blocks in [each for each in _doubled(most) if each > least]:
        if holds(blocks):
            return _least(below, blocks, holds)
        below = blocks
    return None


def _most_blocks(stack: Stack) -> int:
    return stack.board.chip.blocks - stack.board.partition.first_block


def crossing(one: Stack, two: Stack, measure: Callable[[Stack], int]) -> int | None:
    """The fewest blocks from which on `two` has at least what `one` has; None for none.

    Below it `one` has more. Sizes are compared from the smallest that both can be mounted on.
    """
    starts = [smallest_mount(each) for each in (one, two)]
    least = max((each for each in starts if each is not None), default=None)
    if least is None or None in starts:
        return None

    def holds(blocks: int) -> bool:
        return measure(in_blocks(two, blocks)) >= measure(in_blocks(one, blocks))

    most = _most_blocks(one)
    if holds(least):
        return least
    return _least(least, most, holds) if holds(most) else None
