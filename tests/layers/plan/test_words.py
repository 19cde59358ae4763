"""Every word of every axis means something to its workload, or is refused with those that do."""

from __future__ import annotations

from pathlib import Path

import pytest

from flashbed.base.errors import InputError
from flashbed.plan.case import Case
from flashbed.plan.experiment import SIZELESS, ExperimentError, read_experiment
from flashbed.plan.patterns import WORKLOADS
from flashbed.plan.workloads import operations

EXPERIMENT = """[experiment]
id = "t/x"
title = "t"
question = "q"
source = "s"

[workload]
kind = "{kind}"
request_bytes = 4096
{file_bytes}
settle_ns = 1_000
{given}

[[grid]]
targets = ["sim"]
board = ["emulated"]
kernel = ["6.1"]
fs = ["{fs}"]
read_ahead_kib = [0]
pattern = ["{pattern}"]
requests = [{requests}]
seed = [1]
{more}
"""


GIVEN = {
    "program": 'recording = "x.rec"',
    "engines": 'recordings = "x"',
    "operations": 'operations = "flashbed-ops 2\\nsync\\n"',
}


def read(tmp_path: Path, kind: str, pattern: str, fs: str = "jffs2", more: str = "") -> None:
    path = tmp_path / "x.toml"
    file_bytes = "" if kind in SIZELESS else "file_bytes = 1_048_576"
    given = GIVEN.get(kind, "")
    requests = 1 if kind in GIVEN else 8
    path.write_text(
        EXPERIMENT.format(
            kind=kind,
            pattern=pattern,
            fs=fs,
            file_bytes=file_bytes,
            more=more,
            given=given,
            requests=requests,
        )
    )
    read_experiment(path)


def made(kind: str, pattern: str, fs: str = "jffs2") -> None:
    case = Case(
        experiment="t/x",
        board="emulated",
        kernel="6.1",
        fs=fs,
        read_ahead_kib=0,
        pattern=pattern,
        requests=8,
        request_bytes=4096,
        file_bytes=1_048_576,
        seed=1,
    )
    operations(kind, case, 1_000)


@pytest.mark.parametrize("kind", WORKLOADS)
@pytest.mark.parametrize("pattern", ["sequental", "fill-0", "fill-100", "fill-30-40", "idle"])
def test_an_unknown_pattern_is_refused_with_the_known(
    tmp_path: Path, kind: str, pattern: str
) -> None:
    known = ", ".join(WORKLOADS[kind].patterns)
    with pytest.raises(ExperimentError) as why:
        read(tmp_path, kind, pattern=pattern)
    said = f"{kind} has no pattern {pattern!r}; it has {known}"
    assert f"grid.1.pattern: {said}" in str(why.value)
    with pytest.raises(InputError) as why_of_case:
        made(kind, pattern)
    assert said in str(why_of_case.value)


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [(kind, pattern) for kind in WORKLOADS for pattern in WORKLOADS[kind].patterns],
)
def test_every_known_pattern_is_taken(tmp_path: Path, kind: str, pattern: str) -> None:
    fs = "mtd" if pattern == "erase" else "jffs2"
    read(tmp_path, kind, pattern=pattern.replace("NN", "30"), fs=fs)
    if pattern != "script" and kind not in GIVEN:
        made(kind, pattern.replace("NN", "30"), fs)


@pytest.mark.parametrize(
    ("kind", "pattern", "fs", "more", "said"),
    [
        ("micro-read", "random", "mtd", "", "grid.1: fs mtd: has no files"),
        ("overwrite", "random", "mtd-driver", "", "grid.1: fs mtd-driver: has no files"),
        ("raw", "erase", "jffs2", "", "grid.1: pattern erase: needs a partition"),
        ("raw", "erase", "mtdblock", "", "grid.1: pattern erase: fs mtdblock is a disk"),
        ("overwrite", "random", "jffs2", "pause_ns = [1]", "overwrite has no pauses"),
        ("overwrite", "random", "jffs2", 'advice = ["random"]', "overwrite gives no advice"),
        (
            "overwrite", "random", "jffs2", "database = { page_bytes = 4096 }",
            "grid.1.database: overwrite has no database",
        ),
        ("sqlite", "insert", "jffs2", "file_bytes = [4096]", "grid.1.file_bytes: goes with"),
    ],
)  # fmt: skip
def test_what_a_workload_does_not_know(
    tmp_path: Path, kind: str, pattern: str, fs: str, more: str, said: str
) -> None:
    with pytest.raises(ExperimentError) as why:
        read(tmp_path, kind, pattern=pattern, fs=fs, more=more)
    assert said in str(why.value)


def test_figures_and_claims_choose_patterns_that_there_are(tmp_path: Path) -> None:
    figure = """
[[figure]]
id = "1"
title = "t"
caption = "c"
metric = "time_ms"
x = "requests"
only = { pattern = ["sequental"] }
colour = "stack"
rows = "fs"
columns = "pattern"
"""
    with pytest.raises(ExperimentError, match="figure 1: pattern: micro-read has no pattern"):
        read(tmp_path, "micro-read", pattern="random", more=figure)
