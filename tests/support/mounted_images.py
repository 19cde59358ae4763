"""Images with wrong bytes, which the simulator mounts, or says why it does not.

`python -m tests.support.mounted_images SECONDS [SEED]` mounts such images for so many seconds of
processor time, runs a few calls on each, and prints what became of them. A panic ends it with the
bytes in a file.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from flashbed import _sim
from flashbed.plan.stacks import one_stack
from flashbed.stack.stack import Stack
from tests.support.broken_images import try_broken
from tests.support.image_files import make

__all__ = ["images", "mounted", "stacks"]

_STACKS = {"jffs2": ("jffs2", 80), "ubi": ("ubifs", 512)}
"""The file system of each kind, and blocks that hold its images."""
PREPARE = "flashbed-ops 1\nsync\nremount\nsync\npause 1000000000\nprepared\n"
BODY = """\
flashbed-ops 1
open 0 new rw,create
write 0 0 9000 1 0
fsync 0
close 0
remount
unlink new
sync
"""
_BUG = "bug"


def stacks() -> dict[str, Stack]:
    """The stack of each kind of image."""
    return {
        kind: one_stack(["chip=W25N01GV", f"partition.blocks={blocks}", f"fs={fs}"])
        for kind, (fs, blocks) in _STACKS.items()
    }


def images(folder: Path, kinds: Sequence[str]) -> dict[str, bytes]:
    """Small whole images."""
    return {
        f"{kind} {seed}": make(kind, seed, folder / f"{kind}{seed}", (2048, 128)).path.read_bytes()
        for kind in kinds
        for seed in range(4)
    }


def mounted(data: bytes, stack: Stack) -> str:
    """What becomes of it; a panic is an `AssertionError`."""
    board = stack.simulated_board
    try:
        image = _sim.Image(data, oob_bytes=0, block_bytes=stack.board.chip.block_bytes)
        dump = _sim.Dump(image, board, "v0" if stack.fs == "ubifs" else None)
    except ValueError as why:
        refused = str(why)
    else:
        return _ran(dump, stack, board)
    assert "\n" not in refused, refused
    return "refused"


def _ran(dump: _sim.Dump, stack: Stack, board: str) -> str:
    case = _sim.Case(
        fs=stack.simulated_fs, prepare=PREPARE, body=BODY, read_ahead_kib=0, chip=_sim.Chip()
    )
    results = _sim.run_cases(board, stack.simulated_kernel, [case], _sim.Recorded(), 1, dump=dump)
    for failure in results.failures:
        assert failure.what is not None or _BUG not in failure.message, failure.message
        return "not modelled" if failure.what else "failed"
    return "ran"


def _main(seconds: float, seed: int, kinds: Sequence[str]) -> None:
    on = stacks()
    with tempfile.TemporaryDirectory() as folder:
        good = images(Path(folder), kinds)
    try_broken(seconds, seed, good, lambda kind, data: mounted(data, on[kind]))


if __name__ == "__main__":
    _, seconds, *more = sys.argv
    _main(float(seconds), int(more[0]) if more else 1, more[1:] or ["jffs2"])
