"""What can be set below a program, and a choice of it (docs/models/advice.md, What can be set).

A setting is a key as `--set` writes it: an axis, or a key of an axis whose values are tables. What
changes what a power cut takes is `apart`: it is never combined with the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from flashbed.plan.case import AXES, Case
from flashbed.plan.patterns import SQLITE, WORKLOADS
from flashbed.plan.workloads.fewer_syncs import SYNCS
from flashbed.stack.file_systems import FILE_SYSTEMS
from flashbed.stack.profiles import default_compressors

__all__ = ["PROMISES", "READS", "Combination", "Factor", "settings_of"]

_WINDOWS_KIB = ("0", "32", "128", "512")
_MOUNTS = {"ubifs": "ubifs:bulk_read", "yaffs2": "yaffs2:no-cache"}
_PAGES_BYTES = ("1024", "2048", "4096", "8192")
_JOURNALS = ("delete", "truncate", "persist", "wal")
_CACHES_PAGES = ("200", "2000", "10000")
READS = ("read", "send", "copy", "touch")
"""Operations that read files."""
_STRENGTH = ("off", "normal", "full", "extra")
_NO_PROMISE = "SQLite's documentation promises nothing here"
PROMISES = {
    ("database.synchronous", "normal"): "SQLite may take back the last commits in WAL mode",
    ("database.synchronous", "off"): _NO_PROMISE,
    ("database.journal", "memory"): _NO_PROMISE,
    ("database.journal", "off"): _NO_PROMISE,
}
"""What SQLite says of settings that stand apart: cuts that took nothing do not replace it."""
_SAFE_JOURNALS = frozenset(_JOURNALS)


@dataclass(frozen=True, kw_only=True)
class Factor:
    """A key and the values that are tried, on the file systems that know it."""

    key: str
    values: tuple[str, ...]
    only: frozenset[str] | None = None
    """File systems; None is all."""
    apart: bool = False
    """Whether it changes what a power cut takes."""

    def fits(self, fs: str) -> bool:
        """Whether the file system has it."""
        return self.only is None or fs in self.only


@dataclass(frozen=True)
class Combination:
    """The settings that differ from how it is, key and value, the file system first."""

    sets: tuple[tuple[str, str], ...]

    @cached_property
    def values(self) -> Mapping[str, str]:
        """Key -> value."""
        return dict(self.sets)

    @property
    def fs(self) -> str:
        """The file system."""
        return self.values["fs"]

    def with_values(self, more: Mapping[str, str]) -> Combination:
        """With further values, which replace its own; the order is that of `--set`."""
        values = {**self.values, **more}
        order = [*AXES]
        ranked = sorted(values, key=lambda key: (key != "fs", order.index(key.split(".")[0]), key))
        return Combination(tuple((key, values[key]) for key in ranked))

    @property
    def words(self) -> list[str]:
        """As `--set` takes them."""
        return [f"{key}={value}" for key, value in self.sets]

    @property
    def label(self) -> str:
        """For a person: `ubifs, compressor zstd, vm.dirty_expire_centisecs=500`."""
        return ", ".join(self._labels())

    def _labels(self) -> Iterator[str]:
        for key, value in self.sets:
            if key == "fs":
                yield value
            elif key == "mount":
                yield value.partition(":")[2].replace("+", ", ") or value
            elif "." in key:
                yield f"{key}={value}"
            else:
                yield f"{key} {value}"


def settings_of(
    case: Case, kind: str, calls: Collection[str], file_systems: Sequence[str], *,
    keeps_database: bool, taken: Collection[str],
) -> list[Factor]:  # fmt: skip
    """The settings of a program, without those `taken`.

    `case` is how it is, `kind` its workload, `calls` the operations that it makes.
    `keeps_database` says that a recorded program has a database of SQLite.
    """
    found = [Factor(key="fs", values=tuple(file_systems))]
    found += _compressors(case, file_systems)
    found += [
        Factor(key="mount", values=(mount,), only=frozenset({fs}))
        for fs, mount in _MOUNTS.items()
        if fs in file_systems
    ]
    if not set(READS).isdisjoint(calls):
        found.append(Factor(key="read_ahead_kib", values=_WINDOWS_KIB))
    if WORKLOADS[kind].advises:
        found.append(Factor(key="advice", values=("random", "sequential")))
    if kind == SQLITE:
        found += _of_sqlite(case)
    found += [
        Factor(key="vm.dirty_expire_centisecs", values=("500", "12000"), apart=True),
        Factor(key="vm.dirty_writeback_centisecs", values=("100", "1500"), apart=True),
    ]
    if WORKLOADS[kind].syncs and not keeps_database and not set(SYNCS).isdisjoint(calls):
        found.append(Factor(key="sync_every_s", values=("5", "30"), apart=True))
    return [setting for setting in found if setting.key == "fs" or setting.key not in taken]


def _compressors(case: Case, file_systems: Sequence[str]) -> list[Factor]:
    """Each compressor that a file system has, without the one that it has already."""
    usual = default_compressors([case.kernel])
    found = []
    for fs in file_systems:
        able = FILE_SYSTEMS[fs].compr if fs in FILE_SYSTEMS else ()
        tried = tuple(name for name in able if name != usual.get((case.kernel, fs)))
        if tried:
            found.append(Factor(key="compressor", values=tried, only=frozenset({fs})))
    return found


def _of_sqlite(case: Case) -> list[Factor]:
    """SQLite's settings; those that promise less than the case's stand apart."""
    base = case.database
    found = [
        Factor(key="database.page_bytes", values=_without(_PAGES_BYTES, base.page_bytes)),
        Factor(key="database.cache_pages", values=_without(_CACHES_PAGES, base.cache_pages)),
    ]
    if base.journal in _SAFE_JOURNALS:
        journals = _without(_JOURNALS, base.journal)
        found.append(Factor(key="database.journal", values=journals))
        found.append(Factor(key="database.journal", values=("memory", "off"), apart=True))
    at = _STRENGTH.index(base.synchronous)
    if at:
        weaker = tuple(reversed(_STRENGTH[: min(at, _STRENGTH.index("full"))]))
        found.append(Factor(key="database.synchronous", values=weaker, apart=True))
    return found


def _without(values: Sequence[str], base: object) -> tuple[str, ...]:
    return tuple(value for value in values if value != str(base))
