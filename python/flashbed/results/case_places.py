"""The place of every case in merged tables, and the folder whose rows of it count.

A sweep has up to a million cases, whose names take a hundred bytes each. So a case of the
experiment is known by a hash of its name: 12 bytes for its rank, 8 more for its place.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

__all__ = ["Names", "Places", "places_of", "runs_of"]

_NAMES_AT_ONCE = 1 << 14
_SEEDS = 3
"""Hashes that are tried. Names that are equal by all of them are one name, given twice."""
_TARGET_ORDER = ("sim", "sim-chip", "uml", "emulator", "board")


@dataclass(frozen=True)
class Names:
    """Names of cases and their ranks, without the names."""

    seed: int
    hashes: pl.Series
    """Sorted."""
    ranks: pl.Series
    count: int

    @classmethod
    def of(cls, names: Iterable[str]) -> Names:
        """Names that can be iterated more than once; the first is of rank 0."""
        for seed in range(_SEEDS):
            hashes = _hashed(names, seed)
            order = hashes.arg_sort()
            found = cls(seed, hashes.gather(order).set_sorted(), order, len(order))
            if not (found.hashes == found.hashes.shift()).any():
                break
        return found

    def rank(self, names: pl.Series) -> pl.Series:
        """The rank of each name; null for others."""
        return _found(names.hash(self.seed), self.hashes, self.ranks)

    def has(self, names: pl.Series) -> pl.Series:
        """Whether each of these is one of the names."""
        return self.rank(names).is_not_null()


def _hashed(names: Iterable[str], seed: int) -> pl.Series:
    whole = pl.Series(dtype=pl.UInt64)
    left = iter(names)
    while some := list(itertools.islice(left, _NAMES_AT_ONCE)):
        whole.append(pl.Series(some, dtype=pl.String).hash(seed))
    return whole.rechunk()


def _found(wanted: pl.Series, among: pl.Series, values: pl.Series) -> pl.Series:
    """For each wanted one its value; null where it is not among the sorted ones."""
    if among.is_empty():
        return _nulls(len(wanted))
    at = among.search_sorted(wanted).clip(upper_bound=len(among) - 1)
    there = among.gather(at) == wanted
    value = values.gather(at).cast(pl.Int64)
    return value.zip_with(there, _nulls(len(wanted)))


def _nulls(count: int) -> pl.Series:
    return pl.Series([None], dtype=pl.Int64).new_from_index(0, count)


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where rows go, and which folder's rows of a case count.

    Places follow the experiment's order, then the target's; other cases come last.
    """

    names: Names
    others: pl.DataFrame
    """case_id, `_rank` of cases that the experiment does not have."""
    targets: Mapping[str, int]
    places: pl.Series
    """Sorted."""
    folders: pl.Series
    """The folder that has the last word about each place."""

    def of(self, rows: pl.DataFrame) -> pl.Series:
        """The place of each row, which has its `_folder`; null for those that do not count."""
        wanted = self.everywhere(rows)
        there = _found(wanted, self.places, self.folders) == rows["_folder"]
        return wanted.zip_with(there.fill_null(False), _nulls(len(wanted))).alias("_place")

    def everywhere(self, rows: pl.DataFrame) -> pl.Series:
        """The places of rows, whichever folder counts."""
        rank = self.names.rank(rows["case_id"])
        if self.others.height and rank.null_count():
            known = rows.select("case_id").join(
                self.others, on="case_id", how="left", maintain_order="left"
            )
            rank = rank.zip_with(rank.is_not_null(), known["_rank"])
        if len(self.targets) == 1:
            return rank
        target = rows["target"].replace_strict(self.targets, default=None, return_dtype=pl.Int64)
        return rank * len(self.targets) + target


def places_of(pieces: Iterable[pl.DataFrame], order: Iterable[str]) -> Places:
    """The places of all cases that folders have; the last folder with a case counts.

    The pieces have case_id, target and `_folder` of each case. They and `order` are iterated more
    than once.
    """
    names = Names.of(order)
    targets: set[str] = set()
    odd = [pl.DataFrame(schema={"case_id": pl.String})]
    for rows in pieces:
        targets.update(rows["target"].unique())
        rank = names.rank(rows["case_id"])
        if rank.null_count():
            odd.append(rows.select("case_id").filter(rank.is_null()))
    known = [name for name in _TARGET_ORDER if name in targets]
    in_order = [*known, *sorted(targets.difference(known))]
    others = pl.concat(odd).unique().sort("case_id").select(
        "case_id", pl.int_range(names.count, names.count + pl.len()).alias("_rank")
    )  # fmt: skip
    none = pl.Series(dtype=pl.Int64)
    places = Places(
        names=names,
        others=others,
        targets={name: at for at, name in enumerate(in_order)},
        places=none,
        folders=none,
    )
    found = pl.DataFrame(schema={"_place": pl.Int64, "_folder": pl.Int64})
    for rows in pieces:
        found.extend(rows.select(places.everywhere(rows).alias("_place"), "_folder"))
    if not (found["_place"].diff() > 0).all():
        found = found.sort("_place", "_folder")
        found = found.filter(pl.col("_place").ne_missing(pl.col("_place").shift(-1)))
    own = found["_place"].rechunk().set_sorted()
    return Places(
        names=names,
        others=others,
        targets=places.targets,
        places=own,
        folders=found["_folder"].rechunk(),
    )


def runs_of(rows: pl.DataFrame) -> pl.DataFrame:
    """The first of each stretch of adjacent rows of one case and folder."""
    begins = [pl.col(name).ne_missing(pl.col(name).shift()) for name in rows.columns]
    return rows.filter(pl.any_horizontal(begins) | (pl.int_range(pl.len()) == 0))
