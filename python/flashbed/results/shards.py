"""The description of a shard in its folder, and the check that several make one run.

`shard.json` is written when a shard is finished, and removed when the shard is run again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import polars as pl

from flashbed.base.errors import InputError
from flashbed.base.files import read_json, whole
from flashbed.base.paths import shown
from flashbed.results.merging import stored

__all__ = ["FILE", "Shard", "check_one_run"]

FILE = "shard.json"
_FORMAT = "flashbed-shard 1"
SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Shard:
    """Share `number` of `of` of a run, and what was run.

    `plan` is a digest of all cases of the run and of what is recorded of them.
    """

    number: int
    of: int
    experiment: str
    experiment_sha256: str
    flashbed_version: str
    commit: str
    plan: str
    targets: str

    @classmethod
    def read(cls, folder: Path) -> Shard:
        """Reads a folder's shard. Raises `InputError` if no shard is finished there."""
        path = folder / FILE
        if not path.is_file():
            raise InputError(
                f"{shown(folder)}: no finished shard; run it with --shard I/N, to its end"
            )
        values = read_json(path)
        own: dict[str, Any] = {field.name: values.get(field.name) for field in fields(cls)}
        numbers = (own["number"], own["of"])
        texts = [value for name, value in own.items() if name not in ("number", "of")]
        right = all(isinstance(number, int) for number in numbers) and all(
            isinstance(text, str) for text in texts
        )
        if values.get("format") != _FORMAT or not right:
            raise InputError(f"{shown(path)}: not {_FORMAT}; run the shard again")
        return cls(**own)

    def write(self, folder: Path) -> None:
        """Writes the description into a folder."""
        with whole(folder / FILE) as new:
            new.write_text(json.dumps({"format": _FORMAT, **asdict(self)}, indent=1) + "\n")


def check_one_run(folders: Mapping[Path, Shard]) -> None:
    """Raises `InputError` unless these are all shards of one run, each once."""
    (first_folder, first), *others = folders.items()
    for folder, shard in others:
        for name in ("experiment", "experiment_sha256", "flashbed_version", "commit", "of",
                     "targets", "plan"):  # fmt: skip
            one, other = getattr(first, name), getattr(shard, name)
            if one != other:
                raise InputError(
                    f"{shown(folder)}: {_WORDS[name]} differs from that of"
                    f" {shown(first_folder)} ({_short(other)}, {_short(one)});"
                    " only shards of one run can be merged"
                )
    by_number: dict[int, Path] = {}
    for folder, shard in folders.items():
        before = by_number.setdefault(shard.number, folder)
        if before != folder:
            raise InputError(
                f"{shown(folder)}: shard {shard.number}/{shard.of}, as {shown(before)} is;"
                " name each shard once"
            )
    absent = [number for number in range(1, first.of + 1) if number not in by_number]
    if absent:
        some = ", ".join(f"{number}/{first.of}" for number in absent[:SHOWN])
        more = f" and {len(absent) - SHOWN} more" if len(absent) > SHOWN else ""
        raise InputError(f"merge: shards {some}{more} are missing; run them with --shard")
    _check_apart(list(folders))


_WORDS = {
    "experiment": "the experiment",
    "experiment_sha256": "the experiment's file",
    "flashbed_version": "flashbed's version",
    "commit": "flashbed's commit",
    "of": "the number of shards",
    "targets": "what it ran on",
    "plan": "what --set and --trace chose",
}
_SHORT = 12


def _short(value: object) -> str:
    return str(value)[:_SHORT]


def _check_apart(folders: Sequence[Path]) -> None:
    """Raises `InputError` for a case that two folders have."""
    frames = [
        frame.select("case_id", "target", pl.lit(number).alias("folder"))
        for number, folder in enumerate(folders)
        if (frame := stored(folder, "finished")) is not None
    ]
    if not frames:
        return
    twice = pl.concat(frames).group_by("case_id", "target").agg(pl.col("folder"))
    twice = twice.filter(pl.col("folder").list.len() > 1).sort("case_id", "target")
    for case_id, _, numbers in twice.head(1).iter_rows():
        one, other, *_ = sorted(numbers)
        raise InputError(
            f"{shown(folders[other])}: {case_id} is in {shown(folders[one])} too;"
            " run one of them again into an empty folder"
        )
