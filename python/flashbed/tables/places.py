"""The place of every case in merged tables, and the folder whose rows of it count.

A sweep has up to a million cases, whose names take a hundred bytes each. So a case of the
experiment is known by a hash of its name: 12 bytes for its rank, 8 more for its place.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

__all__ = ["Names", "Places", "places_of", "runs_of"]

_NAMES_AT_ONCE = 1 << 14
_SEEDS = 3
"""Hashes that are tried. Names that are equal by all of them are one name, given twice."""
_TARGET_ORDER = ("sim", "sim-chip", "uml", "emulator", "board")
_CASE = ("case_id", "target")


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


def _found(wanted: pl.Series, among: pl.Series, values: pl.Series | None = None) -> pl.Series:
    """For each wanted one its value, or itself; null where it is not among the sorted ones."""
    if among.is_empty():
        return pl.Series([None], dtype=pl.Int64).new_from_index(0, len(wanted))
    at = among.search_sorted(wanted).clip(upper_bound=len(among) - 1)
    there = among.gather(at) == wanted
    value = (wanted if values is None else values.gather(at)).cast(pl.Int64)
    return value.zip_with(there, pl.Series([None], dtype=pl.Int64).new_from_index(0, len(wanted)))


@dataclass(frozen=True)
class Places:
    """Where the rows of each folder's cases go; `own` has the sorted places of each folder.

    Places follow the experiment's order, then the target's; other cases come last.
    """

    names: Names
    others: pl.DataFrame
    """case_id, `_rank` of cases that the experiment does not have."""
    targets: Mapping[str, int]
    own: Sequence[pl.Series]

    def of(self, folder: int, rows: pl.DataFrame) -> pl.Series:
        """The places of a folder's rows; null for those that do not count."""
        return _found(self.everywhere(rows), self.own[folder]).alias("_place")

    def everywhere(self, rows: pl.DataFrame) -> pl.Series:
        """The places of rows, whichever folder counts."""
        rank = self.names.rank(rows["case_id"])
        if rank.null_count() and self.others.height:
            known = rows.select("case_id").join(
                self.others, on="case_id", how="left", maintain_order="left"
            )
            rank = rank.zip_with(rank.is_not_null(), known["_rank"])
        if len(self.targets) == 1:
            return rank
        target = rows["target"].replace_strict(self.targets, default=None, return_dtype=pl.Int64)
        return rank * len(self.targets) + target


def places_of(
    folders: Sequence[Iterable[pl.DataFrame]], order: Iterable[str]
) -> Places:
    """The places of all cases that folders have; the last folder with a case counts.

    Each folder comes as pieces of its list of cases, which are read twice.
    """
    names = Names.of(order)
    targets: set[str] = set()
    odd = [pl.DataFrame(schema={"case_id": pl.String})]
    for pieces in folders:
        for rows in pieces:
            targets.update(rows["target"].unique())
            unknown = rows.select("case_id").filter(names.rank(rows["case_id"]).is_null())
            odd += [unknown] if unknown.height else []
    known = [name for name in _TARGET_ORDER if name in targets]
    in_order = [*known, *sorted(targets.difference(known))]
    others = pl.concat(odd).unique().sort("case_id").select(
        "case_id", pl.int_range(names.count, names.count + pl.len()).alias("_rank")
    )  # fmt: skip
    places = Places(names, others, {name: at for at, name in enumerate(in_order)}, ())
    own = [_joined(places.everywhere(rows) for rows in pieces) for pieces in folders]
    return Places(names, others, places.targets, _last_words(own))


def _joined(some: Iterator[pl.Series]) -> pl.Series:
    """Different places, sorted."""
    whole = pl.Series(dtype=pl.Int64)
    for one in some:
        whole.append(one)
    return whole.unique().sort()


def _last_words(own: Sequence[pl.Series]) -> list[pl.Series]:
    """Each folder's places without those that a later folder has too."""
    filled = [places for places in own if len(places)]
    in_turn = sorted(filled, key=lambda places: int(places[0]))
    pairs = itertools.pairwise(in_turn)
    if all(int(one[-1]) < int(other[0]) for one, other in pairs):
        return list(own)
    if pl.concat(filled).n_unique() == sum(map(len, filled)):
        return list(own)
    later = pl.Series(dtype=pl.Int64)
    left = []
    for places in reversed(own):
        left.append(places.filter(_found(places, later).is_null()))
        later = pl.concat([later, left[-1]]).sort()
    return left[::-1]


def runs_of(rows: pl.DataFrame) -> pl.DataFrame:
    """The first of each stretch of adjacent rows of one case, with its number `_row`."""
    keys = rows.select(*_CASE)
    begins = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in _CASE)
    first = pl.int_range(pl.len()) == 0
    return keys.with_row_index("_row").filter(begins | first)
