"""How far the device model is off on boards and chips that it has not seen.

`python -m tests.support.held_out_costs devices.json` prints the tables of
evidence/device-costs.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from flashbed.answers.costs.device_fit import Seen, errors_of
from flashbed.answers.costs.device_model import (
    FEW,
    PREDICTED,
    DeviceErrors,
    DeviceModel,
    load_devices,
)
from flashbed.answers.costs.devices import Parts, priced
from flashbed.bench.calibration.counted_costs import seen_cases
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import plan
from flashbed.running.programs import programs_of

__all__ = ["HeldOut", "grouped", "held_out"]

EXPERIMENT = "models/devices-held-out"


@dataclass(frozen=True)
class HeldOut:
    """A case and its prediction."""

    fs: str
    seen: Seen
    parts: Parts

    @property
    def device(self) -> str:
        """Board, chip and block."""
        chip = self.seen.board.chip
        block_kib = chip.page_bytes * chip.pages_per_block // 1024
        return f"{self.seen.device}, {chip.page_bytes // 1024} and {block_kib} KiB"

    @property
    def steady(self) -> bool:
        """Whether the file system has collected long enough to say what it erases.

        YAFFS2 erases nothing until much of its partition was written once.
        """
        written = (self.seen.values["page_writes"] or 0) / self.seen.board.chip.pages_per_block
        return self.fs != "yaffs2" or written >= self.seen.board.partition.blocks

    @property
    def within_band(self) -> dict[str, bool]:
        """Quantity -> whether the simulator's value is in the band of the prediction."""
        found = {}
        for name in PREDICTED:
            value, cost = self.seen.values[name], self.parts.costs[name]
            if value is not None and cost is not None:
                found[name] = cost.low - 0.5 <= value <= cost.high + 0.5
        return found


def held_out(model: DeviceModel) -> list[HeldOut]:
    """Every case of the experiment, simulated and predicted."""
    experiment = load_experiment(EXPERIMENT)
    programs = programs_of(experiment, list(plan(experiment).cases))
    found = []
    for fs, system in model.systems.items():
        own = [program for program in programs if program.stack.fs == fs]
        found += [
            HeldOut(fs, one, priced(system, one.board, one.counted))
            for one in seen_cases(own, system)
        ]
    return found


def grouped(cases: Sequence[HeldOut]) -> Iterator[tuple[str, str, dict[str, DeviceErrors]]]:
    """The errors of each file system on each device; erases are those of steady cases."""
    for fs, device in sorted({(one.fs, one.device) for one in cases}):
        own = [one for one in cases if (one.fs, one.device) == (fs, device)]
        errors = errors_of([(one.seen, one.parts) for one in own])
        steady = errors_of([(one.seen, one.parts) for one in own if one.steady])
        yield fs, device, errors | {"erases": steady["erases"]}


def _cell(errors: DeviceErrors) -> str:
    return f"{errors.mean_pct:.1f}, {errors.worst_pct:.0f}" if errors.cases else ""


def _print(cases: Sequence[HeldOut]) -> None:
    print("| file system | board, chip, page and block | cases | time | page writes | erases |")
    print("|---|---|---|---|---|---|")
    for fs, device, errors in grouped(cases):
        cells = [_cell(errors[name]) for name in ("time_ns", "page_writes", "erases")]
        print(f"| {fs} | {device} | {errors['page_writes'].cases} | {' | '.join(cells)} |")
    print("\n| file system | time | page reads | page writes | erases | erases while filling |")
    print("|---|---|---|---|---|---|")
    for fs in dict.fromkeys(one.fs for one in cases):
        own = [one for one in cases if one.fs == fs]
        errors = errors_of([(one.seen, one.parts) for one in own])
        steady = errors_of([(one.seen, one.parts) for one in own if one.steady])
        filling = errors_of([(one.seen, one.parts) for one in own if not one.steady])
        cells = [_cell(errors[name]) for name in PREDICTED if name != "erases"]
        cells += [_cell(steady["erases"]), _cell(filling["erases"])]
        print(f"| {fs} | {' | '.join(cells)} |")
    print("\n| file system | time | page reads | page writes | erases |")
    print("|---|---|---|---|---|")
    for fs in dict.fromkeys(one.fs for one in cases):
        shares = []
        for name in PREDICTED:
            inside = [
                one.within_band[name]
                for one in cases
                if one.fs == fs
                and name in one.within_band
                and (name != "erases" or (one.seen.values[name] or 0) >= FEW)
            ]
            shares.append(f"{100 * sum(inside) / len(inside):.0f}" if inside else "")
        print(f"| {fs} | {' | '.join(shares)} |")


if __name__ == "__main__":
    _print(held_out(load_devices(Path(sys.argv[1]))))
