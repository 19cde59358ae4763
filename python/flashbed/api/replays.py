"""What a run says of time: of recordings that it replayed, and of transactions at a rate."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from flashbed.answers.analysis.due_times import COLUMNS as OF_RATES
from flashbed.answers.analysis.due_times import overdue
from flashbed.answers.analysis.replayed_time import COLUMNS as OF_REPLAYS
from flashbed.answers.analysis.replayed_time import other_time
from flashbed.plan.experiment import Experiment
from flashbed.plan.patterns import SQLITE
from flashbed.plan.planned import Planned
from flashbed.program.recording.file import open_recording
from flashbed.results.run_directory import scan_table

__all__ = ["time_notes"]


def time_notes(
    directory: Path, experiment: Experiment, planned: Iterable[Planned], names: Iterable[str]
) -> list[str]:
    """A line if the named cases took another time than the recording, or did not keep their rate.

    `planned` holds the named cases, and may hold others.
    """
    workload = experiment.workload
    of_interest = workload.kind == SQLITE or workload.recording is not None
    if not of_interest or not (directory / "cases.parquet").is_file():
        return []
    cases = scan_table(directory, "cases").filter(pl.col("case_id").is_in(list(names)))
    note = None
    if workload.recording is not None:
        took_ns = open_recording(Path(workload.recording)).took_ns()
        if took_ns is not None:
            note = other_time(cases.select(OF_REPLAYS).collect(), took_ns)
    else:
        databases = {item.case.database for item in planned}
        period_ns = {str(each): each.period_ns for each in databases if each.period_ns is not None}
        note = overdue(cases.select(OF_RATES).collect(), period_ns)
    return [] if note is None else [note]
