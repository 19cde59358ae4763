"""What squashfs costs the emulated board's processor (docs/models/costs.md).

`python -m tests.support.squashfs_prices FOLDER` prints the prices as a profile has them, and keeps
what the board measured in FOLDER. Files of Debian's armhf packages are a root; each is read on the
board, in blocks of four sizes with each compressor. The simulator counts what it does for them: its
time is linear in the prices. Non-negative least squares over relative errors find these. Roots of
other seeds have other files.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from flashbed.api.booting import boots
from flashbed.api.exec_options import ExecOptions
from flashbed.base.paths import cache_folder
from flashbed.plan.stacks import stacks
from flashbed.stack.prices import SquashfsCosts, SquashfsUnpackAll, SquashfsUnpackCosts
from flashbed.stack.stack import Stack
from flashbed.targets.exec.sysroot import packages_folder

__all__ = ["COMPRESSORS", "draw_root", "times"]

COMPRESSORS = ("gzip", "lzo", "xz", "lz4", "zstd")
BLOCK_KIB = (4, 32, 128, 256)
OWN = ("request_ns", "request_byte_ps", "page_ns", "inode_ns", "mount_ns")
UNPACK = ("block_ns", "packed_byte_ps", "kept_byte_ps", "saved_byte_ps")
UNIT = 1_000_000
"""Of a price, so that what it takes is not rounded away."""
FILES = 48
BYTES_MAX = 1 << 20
ELF = b"\x7fELF"
PACKAGES = ("coreutils", "mtd-utils", "diffutils")
Row = tuple[str, int, int]
"""A mount's or a file's name, its time, and how long the chip was busy."""


def draw_root(seed: int, folder: Path) -> list[str]:
    """Files of packages, half of them programs and libraries; the order of reading."""
    tree = packages_folder(cache_folder(), PACKAGES, print)
    drawn = random.Random(0)
    there = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    there = [path for path in there if path.stat().st_size <= BYTES_MAX]
    drawn.shuffle(there)
    programs: list[Path] = []
    others: list[Path] = []
    for path in there:
        (programs if path.read_bytes().startswith(ELF) else others).append(path)
    part = slice(seed * FILES // 2, (seed + 1) * FILES // 2)
    chosen = [*programs[part], *others[part]]
    drawn.shuffle(chosen)
    names = [str(path.relative_to(tree)) for path in chosen]
    for path, name in zip(chosen, names, strict=True):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / name)
    return names


def times(on: str, settings: Sequence[str], root: Path, files: Sequence[str],
          costs: SquashfsCosts | None = None) -> list[Row]:  # fmt: skip
    """The mount of the root and the reading of each file; `costs` in place of the board's."""
    options = ExecOptions(
        words=(), on=on, put=(), env=(), memory=None, patience=None, keep=None, image=[str(root)]
    )
    (chosen,) = stacks(["layout=squashfs-overlay-ubifs", *settings])
    if costs is not None:
        chosen = replace(chosen, stack=_priced(chosen.stack, costs))
    (booted,) = boots(options, [chosen], off="clean", files=files, say=lambda _: None)
    assert booted.failed is None, booted.failed
    (mount,) = [part for part in booted.parts if part.name.startswith("mount squashfs")]
    rows = [(mount.name, mount.time_ns, mount.chip.busy_ns)]
    for each in booted.files:
        assert not isinstance(each.read, str), each
        assert each.read.chip is not None
        rows.append((each.path, each.read.ns, each.read.chip.busy_ns))
    return rows


def _priced(stack: Stack, costs: SquashfsCosts) -> Stack:
    software = stack.board.software.model_copy(update={"squashfs": costs})
    return replace(stack, board=stack.board.model_copy(update={"software": software}))


def _costs(own: str | None = None, unpack: str | None = None) -> SquashfsCosts:
    """Prices of which at most one is not 0."""
    of_all = SquashfsUnpackCosts(**{key: UNIT * (key == unpack) for key in UNPACK})
    every = SquashfsUnpackAll(**dict.fromkeys(COMPRESSORS, of_all))
    return SquashfsCosts(**{key: UNIT * (key == own) for key in OWN}, unpack=every)


def counted(settings: Sequence[str], root: Path, files: Sequence[str]) -> tuple[Any, Any]:
    """What the simulator takes with prices of 0, and what a unit of each price adds."""

    def run(costs: SquashfsCosts) -> Any:
        return np.array([ns for _, ns, _ in times("sim", settings, root, files, costs)], float)

    nothing = run(_costs())
    priced = [_costs(own=key) for key in OWN] + [_costs(unpack=key) for key in UNPACK]
    return nothing, np.array([(run(each) - nothing) / UNIT for each in priced]).T


def _measured(folder: Path, name: str, settings: Sequence[str], root: Path,
              files: Sequence[str]) -> list[Row]:  # fmt: skip
    kept = folder / f"{name}.json"
    if not kept.exists():
        kept.write_text(json.dumps(times("emulator", settings, root, files)))
    return [tuple(row) for row in json.loads(kept.read_text())]


def _equations(folder: Path, root: Path, files: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    """Of each boot the counts, a column a price, and the time that they have to explain."""
    places = len(OWN) + len(COMPRESSORS) * len(UNPACK)
    for number, compressor in enumerate(COMPRESSORS):
        for kib in BLOCK_KIB:
            settings = [f"layout.compressor={compressor}", f"layout.block_kib={kib}"]
            rows = _measured(folder, f"{compressor}-{kib}", settings, root, files)
            nothing, counts = counted(settings, root, files)
            wide = np.zeros((len(rows), places))
            wide[:, : len(OWN)] = counts[:, : len(OWN)]
            at = len(OWN) + number * len(UNPACK)
            wide[:, at : at + len(UNPACK)] = counts[:, len(OWN) :]
            measured = np.array([ns for _, ns, _ in rows], float)
            yield wide / measured[:, None], (measured - nothing) / measured


def main(words: Sequence[str]) -> None:
    """Prints the prices, and how far they are from what was measured."""
    folder = Path(words[0])
    files = draw_root(0, folder / "root")
    found = list(_equations(folder, folder / "root", files))
    counts, wanted = (np.concatenate(part) for part in zip(*found, strict=True))
    prices, _ = nnls(counts, wanted)
    off = np.abs(counts @ prices - wanted)
    keys = [f"squashfs.{key}" for key in OWN]
    keys += [f"squashfs.unpack.{name}.{key}" for name in COMPRESSORS for key in UNPACK]
    for key, value in zip(keys, prices, strict=True):
        print(f"{key} = {round(value):_}")
    print(f"# {len(off)} mounts and files: off {off.mean():.1%} in the mean, {off.max():.1%} worst")


if __name__ == "__main__":
    main(sys.argv[1:])
