"""Settings of a database that decide which of its operations reach the flash.

The defaults are SQLite's when the papers were written (3.7: pages of 1 KiB, a cache of 2,000 pages,
journal mode delete). They are set explicitly, because today's defaults differ (4 KiB, 2,000 KiB).
"""

from __future__ import annotations

import importlib.machinery
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from flashbed.base.errors import InputError
from flashbed.stack.conditions import Condition, plain

__all__ = ["PACKAGED", "PAPERS", "Database"]

PACKAGED = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*):(?=[^/])")
"""A `file` that a Python package ships: `pyzipcode:zipcodes.db`."""

_VALUED = {
    "page": "page_bytes", "cache": "cache_pages", "records": "records", "tps": "transactions_per_s",
}  # fmt: skip
_WORDS: dict[str, dict[str, Any]] = {
    "truncate": {"journal": "truncate"},
    "persist": {"journal": "persist"},
    "wal": {"journal": "wal"},
    "memory": {"journal": "memory"},
    "nojournal": {"journal": "off"},
    "syncoff": {"synchronous": "off"},
    "syncnormal": {"synchronous": "normal"},
    "syncextra": {"synchronous": "extra"},
    "vacuumfull": {"auto_vacuum": "full"},
    "vacuumincremental": {"auto_vacuum": "incremental"},
    "prepared": {"prepared": True},
    "fdatasync": {"sync": "fdatasync"},
    "connected": {"connected": True},
    "held": {"held": True},
    "reconnect": {"reconnect": True},
    "autocommit": {"autocommit": True},
    "letters": {"contents": "letters"},
    "board": {"executed": "board"},
}
"""Grammar of a database as one word: what differs from the papers' settings."""


class Database(Condition):
    """`database = { … }` of an experiment (docs/guide/my-database.md).

    `contents` is what the workload's records consist of: random bytes, as in the papers, which no
    file system can compress, or letters. `records` is the number of rows before a workload reads
    or updates the table. `connected` says whether the connection is open when measuring begins;
    with `reconnect` each request opens one of its own and closes it. A `held` database keeps its
    inode while caches are dropped, as where `drop_caches` is 1 and drops pages alone.
    `autocommit` makes each request a transaction of its own; `transactions_per_s` does too, and
    says how many of them begin a second (of a script: runs of its measured part). `executed` says
    where SQLite runs: on the host, once, with its calls replayed on the board, or on the board
    itself. `script` and `file` are the user's own program and the database it begins with.
    """

    example = "page4096-wal-prepared"

    page_bytes: Annotated[int, Field(ge=512, le=65536)] = 1024
    cache_pages: Annotated[int, Field(ge=10, lt=2**20)] = 2000
    journal: Literal["delete", "truncate", "persist", "wal", "memory", "off"] = "delete"
    synchronous: Literal["off", "normal", "full", "extra"] = "full"
    auto_vacuum: Literal["none", "full", "incremental"] = "none"
    prepared: bool = False
    sync: Literal["fsync", "fdatasync"] = "fsync"
    connected: bool = False
    held: bool = False
    reconnect: bool = False
    autocommit: bool = False
    transactions_per_s: Annotated[float, Field(ge=1e-6, le=1e6)] | None = None
    contents: Literal["random", "letters"] = "random"
    executed: Literal["host", "board"] = "host"
    records: Annotated[int, Field(ge=1, lt=2**24)] = 5000
    script: Annotated[str, Field(min_length=1)] | None = None
    file: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.page_bytes & (self.page_bytes - 1):
            raise ValueError(f"page_bytes: {self.page_bytes} is not a power of two")
        if (self.script or self.file) and not self.name:
            raise ValueError("name: missing; tables need it as the name of your own script or file")
        if self.file and self.executed == "board":
            raise ValueError(
                "file: its bytes cannot be copied to a board that runs SQLite; a script can make it"
            )
        if self.reconnect and self.connected:
            raise ValueError("reconnect: each request opens a connection, so none is connected")
        if self.file and not self.script:
            raise ValueError("script: missing; a file needs a script that uses it")
        return self

    @property
    def text(self) -> str:
        """See `Condition`; `papers` is SQLite with the papers' settings."""
        usual = Database()
        parts = [
            f"{word}{plain(getattr(self, key))}"
            for word, key in _VALUED.items()
            if getattr(self, key) != getattr(usual, key)
        ]
        parts += [
            word
            for word, values in _WORDS.items()
            if all(getattr(self, key) == value for key, value in values.items())
        ]
        return "-".join(parts) or "papers"

    def named_with(self, key: str, value: object) -> str | None:
        """See `Condition`: settings of a script or file are told apart by a name."""
        if self.name is None or getattr(self, key) == value:
            return self.name
        return re.sub("[_.]", "-", f"{self.name}-{key}-{value}").lower()

    @classmethod
    def values_of(cls, word: str, value: str) -> dict[str, Any]:
        """See `Condition`."""
        if not value:
            return _WORDS[word]
        return {_VALUED[word]: float(value) if word == "tps" else int(value)}

    @property
    def commits_each(self) -> bool:
        """Whether each request is a transaction of its own."""
        return self.autocommit or self.transactions_per_s is not None

    @property
    def period_ns(self) -> int | None:
        """From the beginning of a transaction to that of the next; None at no rate."""
        return None if self.transactions_per_s is None else round(1e9 / self.transactions_per_s)

    @property
    def file_path(self) -> Path | None:
        """The path of `file`. Raises `InputError` if its package is not installed."""
        if self.file is None:
            return None
        packaged = PACKAGED.match(self.file)
        if packaged is None:
            return Path(self.file)
        folder = _package(packaged[1])
        if folder is None:
            raise InputError(
                f"database.file: {self.file}: no package {packaged[1]}; pip install it"
            )
        inside = Path(self.file[packaged.end() :])
        if ".." in inside.parts:
            raise InputError(f"database.file: {self.file}: not a file of the package")
        return folder / inside

    @property
    def pragmas(self) -> tuple[str, ...]:
        """The pragmas of every connection, in the order in which they take effect.

        The first of the others reads the database. In WAL mode locking must be exclusive before
        that, so that SQLite uses no shared memory.
        """
        exclusive = ("PRAGMA locking_mode = EXCLUSIVE",) if self.journal == "wal" else ()
        return (
            *exclusive,
            f"PRAGMA page_size = {self.page_bytes}",
            f"PRAGMA auto_vacuum = {self.auto_vacuum}",
            f"PRAGMA cache_size = {self.cache_pages}",
            f"PRAGMA synchronous = {self.synchronous}",
            f"PRAGMA journal_mode = {self.journal}",
        )


def _package(name: str) -> Path | None:
    """The folder of a package, found on the module path without importing it."""
    places: list[str] | None = None
    for part in name.split("."):
        spec = importlib.machinery.PathFinder.find_spec(part, places)
        if spec is None or not spec.submodule_search_locations:
            return None
        places = list(spec.submodule_search_locations)
    return Path(places[0]) if places else None


PAPERS = Database()
"""SQLite with the papers' settings."""
