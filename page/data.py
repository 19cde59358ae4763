"""Writes what the playground knows of the world: boards, kernels and recorded programs, as JSON.

python/flashbed/plan/workloads/playground_program.py makes operations of the recordings.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from flashbed.plan.experiment import SETTLE_NS, read_experiment
from flashbed.plan.workloads.playground_program import board_tables, program_variants
from flashbed.stack.file_systems import COMPRESSING, FILE_SYSTEMS
from flashbed.stack.profiles import (
    Kernel,
    board_names,
    kernel_names,
    load_kernel,
)


def main() -> None:
    """Arguments: the file's name, and the folder of the experiments that replay recordings."""
    out = Path(sys.argv[1])
    world = {
        "file_systems": {
            name: {"title": row.title, "compr": row.compr} for name, row in FILE_SYSTEMS.items()
        },
        "boards": {name: board_tables(name) for name in board_names()},
        "kernels": {name: _kernel(load_kernel(name)) for name in kernel_names()},
        "settle_ns": SETTLE_NS,
        "programs": [
            _program(path, read_experiment(path).experiment.title)
            for path in sorted(Path(sys.argv[2]).glob("*.toml"))
        ],
    }
    out.write_text(json.dumps(world, separators=(",", ":")), encoding="utf-8")


def _kernel(kernel: Kernel) -> dict[str, Any]:
    able = {
        fs: [name.split("-")[0] for name in getattr(kernel, fs).compr_option] for fs in COMPRESSING
    }

    def tables(fs: str, option: str) -> Any:
        return json.loads(kernel.sim_json_with(fs, option))[fs]

    return {
        "title": kernel.kernel.title,
        "sim": json.loads(kernel.sim_json),
        "shipped_kib": {fs: kernel.shipped_kib(fs) for fs in FILE_SYSTEMS},
        "compressors": {
            fs: {option: tables(fs, option) for option in able[fs]} for fs in COMPRESSING
        },
    }


def _program(experiment: Path, title: str) -> dict[str, Any]:
    path = experiment.with_suffix(".parquet")
    return program_variants(path, path.stem, title)


if __name__ == "__main__":
    main()
