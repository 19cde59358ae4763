"""What a power cut takes of a program, by cutting it: `advise` asks it of a few choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from flashbed.answers.advice.words import Durability
from flashbed.base.locking import held
from flashbed.bench.powercut.cutting import Choice, PowerCuts
from flashbed.bench.powercut.outcomes import cut_tables, summary
from flashbed.plan.experiment import Experiment
from flashbed.plan.patterns import SQLITE
from flashbed.plan.planned import Planned, as_plan
from flashbed.results.run_directory import RunDirectory
from flashbed.running.runner import run_target
from flashbed.targets import load_target

__all__ = ["cut"]


def cut(
    experiment: Experiment, planned: Sequence[Planned], *, on: str, samples: int, directory: Path,
    progress: Callable[[str, int, int | None], None],
) -> dict[str, Durability | str]:  # fmt: skip
    """Cuts each case at `samples` changes that a seed draws; by the case's name, or why it failed.

    The power also fails after the program, until the kernel has written back what is left. SQLite's
    statements run on the target itself, so that it opens the database after each cut.
    Raises `Unavailable` if the target cannot run here.
    """
    by_cut = {_cut_case(experiment, each).case.case_id: each for each in planned}
    chosen = as_plan([_cut_case(experiment, each) for each in planned])
    target = PowerCuts(load_target(on), Choice(None, samples, 1), on, rests=True)
    with held(directory):
        folder = RunDirectory.create(directory, experiment.id)
        outcome = run_target(
            experiment, chosen, target, folder,
            trace_flash=False, progress=progress, conditions=target.conditions,
        )  # fmt: skip
    failed = {each.case_id: each.message for each in (*outcome.failures, *outcome.not_measured)}
    found: dict[str, Durability | str] = {
        by_cut[name].case.case_id: why for name, why in failed.items() if name in by_cut
    }
    if outcome.measured + outcome.kept:
        cuts, files = cut_tables(folder.path)
        mine = pl.col("case_id").is_in(list(by_cut)) & (pl.col("target") == on)
        for row in summary(cuts.filter(mine), files.filter(mine)):
            found[by_cut[row["case_id"]].case.case_id] = _durability(row)
    return found


def _cut_case(experiment: Experiment, planned: Planned) -> Planned:
    """The case that is cut in its place."""
    if experiment.workload.kind != SQLITE:
        return planned
    database = planned.case.database.model_copy(update={"executed": "board"})
    return Planned(replace(planned.case, database=database), planned.targets)


def _durability(row: Mapping[str, Any]) -> Durability:
    judged = [file for file in row["files"] if file["judged"]]
    return Durability(
        cuts=row["cuts"],
        judged=bool(row["program_files"]) or row["lost_transactions"] is not None,
        not_recovered=row["cuts"] - row["recovered"],
        damaging=row["damaging_cuts"],
        lost_ns=max((file["lost_ns"] or 0 for file in judged), default=0),
        lost_transactions=row["lost_transactions"] or 0,
        kept_by=next((file["kept_by"] for file in judged if file["kept_by"]), None),
    )
