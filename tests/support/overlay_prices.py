"""What overlayfs itself costs the emulated board's processor (docs/models/costs.md).

`python -m tests.support.overlay_prices [BOARD]` prints the prices as a profile has them. Programs
that ship run on the volume and on the layer over it; each price is the median of what a call took
longer on the layer. Other programs that ship are left for the test of the prices.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from statistics import median

from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.running.programs import programs_of
from flashbed.targets import load_target
from flashbed.targets.base import Program, RunOptions
from tests.support.layout_settings import NOR_CHIP, settings_of

__all__ = ["FOUND_WITH", "on_layout"]

FOUND_WITH = ("git", "logger", "unpack")
PLAIN, LAYER = "ubifs-ro-ubifs-rw", "squashfs-overlay-ubifs"


def on_layout(
    name: str, layout: str, board: str = "emulated", *, fastmap: int = 0,
    chip: str | None = NOR_CHIP,
) -> list[Program]:  # fmt: skip
    """A program that ships, on a layout; those on MTD are on this chip, or on the board's."""
    experiment = load_experiment(f"programs/{name}")
    settings = [*settings_of(layout, chip), f"layout.fastmap={fastmap}", f"board={board}"]
    chosen = plan(experiment, parse_settings(settings))
    return list(programs_of(experiment, [item.case for item in chosen]))


def _took(name: str, layout: str, board: str) -> list[tuple[str, int]]:
    """Each call and its time."""
    (program,) = on_layout(name, layout, board)
    (batch,) = load_target("emulator").run([program], RunOptions())
    return list(batch.requests.select("op", "latency_ns").rows())


def longer(name: str, board: str) -> Iterator[tuple[str, int]]:
    """Each call, and how much longer it took on the layer."""
    plain, layer = (_took(name, layout, board) for layout in (PLAIN, LAYER))
    for (op, before), (same, after) in zip(plain, layer, strict=True):
        assert op == same
        yield op, after - before


def main(words: list[str]) -> None:
    """Prints the prices."""
    board = words[0] if words else "emulated"
    calls = [call for name in FOUND_WITH for call in longer(name, board)]

    def of(*ops: str) -> list[int]:
        return sorted(ns for op, ns in calls if op in ops)

    inode = median(of("stat"))
    # One stat in five looks its file up for the first time.
    looked_up = of("stat")[len(of("stat")) * 9 // 10]
    found = {
        "open": median(of("open")), "close": median(of("close")), "read": median(of("read")),
        "write": median(of("write")), "inode": inode, "lookup": looked_up - inode,
        "create": median(of("mkdir", "link", "symlink")), "remove": median(of("unlink", "rmdir")),
        "rename": median(of("rename")),
    }  # fmt: skip
    for key, ns in found.items():
        print(f"overlay_{key}_ns = {round(ns):_}")


if __name__ == "__main__":
    main(sys.argv[1:])
