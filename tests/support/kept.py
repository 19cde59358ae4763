"""Points of the experiments that take CI too long, kept in `tests/kept`.

    python -m tests.support.kept [--results DIR]

A file for each table that a claim is judged by on the simulator: the axes, and the metrics of its
claims. Tests that ask something of claims, not of the simulator, read these. `make agreement`
measures all of it again and compares (tests/agreement/test_verdicts.py): a change that moves the
numbers writes them again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import polars as pl

from flashbed.answers.analysis import judge
from flashbed.answers.analysis.points import table_of
from flashbed.plan.case import AXIS_COLUMNS
from flashbed.plan.experiment import load_experiment
from flashbed.report.judged import JudgedRun, judged_run
from flashbed.results.run_directory import empty_table

__all__ = ["KEPT", "kept_run", "kept_tables"]

KEPT = (
    "readahead/figure4",
    "readahead/postmark",
    "readahead/sqlite",
    "sqlite/requests",
    "sqlite/statements",
)
FOLDER = Path(__file__).parents[1] / "kept"
_OTHERS = ("target", "disabled_by", "statement", "read_pct", "pause_ms", "seeds")
"""Columns of points besides axes and metrics."""


def kept_tables(run: JudgedRun) -> dict[str, pl.DataFrame]:
    """The points of a run that its claims are judged by on the simulator, as they are kept."""
    experiment, sim = run.experiment, run.experiment.compared["sim"]
    kernels = {sim.kernel, *(kernel for one in experiment.claim for kernel in one.also_kernels)}
    found = {}
    for name in sorted({table_of(claim.metric) for claim in experiment.claim}):
        metrics = {claim.metric for claim in experiment.claim if table_of(claim.metric) == name}
        wanted = {*AXIS_COLUMNS, *_OTHERS, *metrics}
        columns = [column for column in run.tables[name].columns if column in wanted]
        found[name] = (
            run.tables[name]
            .filter(
                pl.col("target") == "sim",
                pl.col("board") == sim.board,
                pl.col("kernel").is_in(kernels),
            )
            .select(columns)
            .sort([column for column in columns if column not in metrics])
        )
    return found


def kept_run(name: str) -> JudgedRun:
    """An experiment with its kept points, judged by today's claims. It has no cases."""
    experiment = load_experiment(name)
    tables = {path.stem: pl.read_parquet(path) for path in sorted(_folder(name).glob("*.parquet"))}
    return JudgedRun(
        experiment=experiment,
        cases=empty_table("cases"),
        requests=empty_table("requests").lazy(),
        flash=None,
        tables=tables,
        verdicts=judge(experiment, tables),
    )


def _folder(name: str) -> Path:
    return FOLDER / name.replace("/", "-")


def main() -> None:
    """Writes the points of results that `flashbed reproduce` left."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=Path("results"))
    results = parser.parse_args().results
    for name in KEPT:
        run = judged_run(results / name, load_experiment(name))
        _folder(name).mkdir(parents=True, exist_ok=True)
        for table, points in kept_tables(run).items():
            path = _folder(name) / f"{table}.parquet"
            points.write_parquet(path, compression="zstd", compression_level=19)
            print(f"{path.relative_to(FOLDER.parent)}: {points.height} rows")


if __name__ == "__main__":
    main()
