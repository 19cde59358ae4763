"""What collecting costs a writer follows from what is valid in the blocks it overwrites."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from flashbed.plan.case import Case
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import Settings, plan
from flashbed.plan.workloads.collection import COLD, FILE, TURN_BYTES, operations
from flashbed.program.operations import Operation, parse
from flashbed.results.run_directory import RunDirectory, read_table
from flashbed.running.runner import run_target
from flashbed.stack.profiles import load_board
from flashbed.targets import load_target

CASE = Case(
    experiment="x/y",
    board="emulated",
    kernel="6.1",
    fs="jffs2",
    read_ahead_kib=0,
    pattern="mixed-60",
    requests=8,
    request_bytes=65_536,
    file_bytes=2_097_152,
    seed=1,
)
BLOCK_BYTES = 131_072
PARTITION_BYTES = load_board("emulated").partition.blocks * BLOCK_BYTES


def prepared(pattern: str) -> list[Operation]:
    return parse(operations(replace(CASE, pattern=pattern), 0)[0])


def sizes(pattern: str) -> dict[str, int]:
    """File -> its size when it is prepared."""
    names: dict[str, str] = {}
    ends: dict[str, int] = {}
    for operation in prepared(pattern):
        words = [str(word) for word in operation.fields]
        if operation.name == "open":
            names[words[0]] = words[1]
        if operation.name == "write":
            name = names[words[0]]
            ends[name] = max(ends.get(name, 0), int(words[1]) + int(words[2]))
    return ends


@pytest.mark.parametrize(("layout", "files"), [("apart", 2), ("mixed", 2), ("all", 1)])
@pytest.mark.parametrize("percent", [30, 90])
def test_the_valid_data_is_the_share_that_the_pattern_says(
    layout: str, files: int, percent: int
) -> None:
    found = sizes(f"{layout}-{percent}")
    assert sorted(found) == sorted((COLD, FILE)[-files:])
    assert len(set(found.values())) == 1
    share = sum(found.values()) / PARTITION_BYTES * 100
    assert share == pytest.approx(percent, abs=files * TURN_BYTES / PARTITION_BYTES * 100)


def test_mixed_data_is_written_in_turns_of_less_than_a_block() -> None:
    writes = [one for one in prepared("mixed-30") if one.name == "write"]
    first = [int(str(one.fields[0])) for one in writes[:8]]
    assert first == [0, 1] * 4
    assert TURN_BYTES * 2 < BLOCK_BYTES


def test_seeds_share_a_preparation_and_differ_in_what_they_overwrite() -> None:
    one, other = (operations(replace(CASE, seed=seed), 0) for seed in (1, 2))
    assert one[0] == other[0]
    assert one[1] != other[1]
    names = [operation.name for operation in parse(one[1])]
    assert names[names.index("mark") + 1 :] == ["write", "fsync"] * CASE.requests


@pytest.mark.extension
def test_a_file_in_blocks_of_its_own_is_collected_without_a_copy(tmp_path: Path) -> None:
    """The slides' benchmark found no cost of fullness: whatever else is valid was never moved.

    Pages programmed are the same at 30 and 75 % there. Where hot and cold data share blocks they
    are not.
    """
    experiment = load_experiment("methodology/collection")
    settings: Settings = {
        "board": ("emulated",), "fs": ("jffs2",), "request_bytes": (65_536,),
        "pattern": ("fill-30", "fill-75", "mixed-30", "mixed-75"), "requests": (256, 320),
        "seed": (1,),
    }  # fmt: skip
    directory = RunDirectory.create(tmp_path / "run", experiment.id)
    outcome = run_target(
        experiment, plan(experiment, settings), load_target("sim"), directory,
        trace_flash=False, progress=lambda *_: None,
    )  # fmt: skip
    assert outcome.failures == ()
    cases = read_table(directory.path, "cases")
    found = dict(cases.select("pattern", pl.col("flash_programs").cast(pl.Float64)).rows())
    assert found["fill-75"] == pytest.approx(found["fill-30"], rel=0.03)
    assert found["mixed-75"] > 1.5 * found["mixed-30"]
