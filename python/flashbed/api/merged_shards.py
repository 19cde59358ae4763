"""Merges shards into the folder that one run would have left, byte for byte."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from flashbed.base.errors import InputError
from flashbed.base.files import read_json, read_text, whole
from flashbed.base.locking import held
from flashbed.base.paths import sha256_of, shown
from flashbed.plan.experiment import Experiment, read_experiment
from flashbed.results.merging import made_ours, stored
from flashbed.results.run_directory import RunDirectory
from flashbed.results.shards import Shard, check_one_run

__all__ = ["merge_shards"]


def merge_shards(folders: Sequence[Path], out: Path) -> int:
    """Writes the results of all shards into a new folder; returns the number of cases.

    Raises `InputError` unless the folders are all shards of one run, each once.
    """
    shards = {folder: Shard.read(folder) for folder in folders}
    check_one_run(shards)
    if len(shards) < len(folders):
        raise InputError("merge: a folder is named twice")
    if (out / "run.json").exists():
        raise InputError(f"{shown(out)}: holds a run already; choose another -o")
    in_order = sorted(shards, key=lambda folder: shards[folder].number)
    first = in_order[0]
    experiment = _experiment(first, shards[first])
    order = experiment.planned
    with held(out):
        directory = RunDirectory.create(out, experiment.id)
        parts = directory.parts()
        for number, folder in enumerate(in_order, start=1):
            _copy_tables(folder, parts / f"{number:06}")
            (out / "profiles").mkdir(exist_ok=True)
            for profile in sorted((folder / "profiles").glob("*.toml")):
                _copy_text(profile, out / "profiles" / profile.name)
        for name in ("run.json", "experiment.toml"):
            _copy_text(first / name, out / name)
        directory.merge(order.names)
        _merge_not_measured(in_order, directory, order.names, shards[first].targets.split(","))
        return len({case_id for case_id, _ in directory.finished()})


def _experiment(folder: Path, shard: Shard) -> Experiment:
    """The experiment of a shard: its file, or the kept copy if the file has changed.

    The file is preferred, because it names other files relative to its folder.
    """
    source = read_json(folder / "run.json").get("file")
    for path in (Path(str(source)), folder / "experiment.toml"):
        if path.is_file() and sha256_of(path) == shard.experiment_sha256:
            return read_experiment(path)
    raise InputError(f"{shown(folder / 'experiment.toml')}: was changed; run the shard again")


def _copy_text(source: Path, to: Path) -> None:
    """Copies a text of a folder that may be anyone's. Raises `InputError`."""
    with whole(to) as new:
        new.write_text(read_text(source), encoding="utf-8")


def _copy_tables(folder: Path, part: Path) -> None:
    """Copies a shard's tables into a part. Raises `InputError` for a damaged one."""
    part.mkdir()
    for table in sorted(folder.glob("*.parquet")):
        if not table.is_file():
            raise InputError(f"{shown(table)}: not a file")
        if table.name != "not_measured.parquet":
            shutil.copyfile(table, part / table.name)
            made_ours(part / table.name)


def _merge_not_measured(
    folders: Sequence[Path], directory: RunDirectory, order: Iterable[str], targets: Sequence[str]
) -> None:
    """The cases that targets could not measure, in the cases' order."""
    tables = [stored(folder, "not_measured") for folder in folders]
    rows = pl.concat([table for table in tables if table is not None], how="diagonal") if any(
        table is not None for table in tables
    ) else None  # fmt: skip
    if rows is None:
        return
    there = set(rows["case_id"])
    names = [name for name in order if name in there]
    place = pl.DataFrame({"case_id": names}, schema={"case_id": pl.String}).with_row_index("_place")
    rows = rows.join(place, on="case_id", how="left").sort("_place", maintain_order=True)
    for target in targets:
        own = rows.filter(pl.col("target") == target).select("case_id", "reason")
        directory.keep_not_measured(target, own)
