"""What a run says of the recordings that it replayed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from flashbed.analysis.replayed_time import COLUMNS, other_time
from flashbed.plan.experiment import Experiment
from flashbed.recording.file import open_recording
from flashbed.tables.run_directory import scan_table

__all__ = ["time_notes"]


def time_notes(directory: Path, experiment: Experiment, names: Iterable[str]) -> list[str]:
    """A line if replays of these cases took another time than the experiment's recording."""
    recording = experiment.workload.recording
    if recording is None or not (directory / "cases.parquet").is_file():
        return []
    chosen = pl.col("case_id").is_in(list(names))
    cases = scan_table(directory, "cases").filter(chosen).select(COLUMNS).collect()
    took_ns = open_recording(Path(recording)).took_ns()
    note = None if took_ns is None else other_time(cases, took_ns)
    return [] if note is None else [note]
