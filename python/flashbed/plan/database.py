"""How a database is set up: what decides which of its operations reach the flash.

The defaults are those SQLite had when the papers were written (3.7: pages of 1 KiB, a cache of
2,000 pages, a journal that is deleted), set explicitly because today's are others (4 KiB, 2,000
KiB).
"""

from __future__ import annotations

import importlib.machinery
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from flashbed.errors import InputError
from flashbed.plan.conditions import Condition

__all__ = ["PACKAGED", "PAPERS", "Database"]

PACKAGED = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*):(?=[^/])")
"""A `file` that a Python package ships: `pyzipcode:zipcodes.db`."""

_VALUED = {"page": "page_bytes", "cache": "cache_pages", "records": "records"}
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
    "board": {"executed": "board"},
}
"""How a database is written as one word: what differs from the papers'."""


class Database(Condition):
    """`database = { … }` of an experiment (docs/sqlite.md).

    `records` are in the table before a workload reads or updates it. `connected` is whether the
    connection is open when measuring begins. `executed` is where SQLite runs: on the host, once,
    and its calls on the board, or on the board itself. `script` and `file` are a
    program of one's own and the database it begins with.
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
    executed: Literal["host", "board"] = "host"
    records: Annotated[int, Field(ge=1, lt=2**24)] = 5000
    script: Annotated[str, Field(min_length=1)] | None = None
    file: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.page_bytes & (self.page_bytes - 1):
            raise ValueError(f"page_bytes: {self.page_bytes} is no power of two")
        if (self.script or self.file) and not self.name:
            raise ValueError(
                "name: missing; a script or a file of one's own stands in tables by it"
            )
        if self.file and self.executed == "board":
            raise ValueError(
                "file: its bytes cannot be copied to a board that runs SQLite; a script can make it"
            )
        if self.file and not self.script:
            raise ValueError("script: missing; a file is what a script begins with")
        return self

    @property
    def text(self) -> str:
        """See `Condition`; `papers` is SQLite as the papers had it."""
        usual = Database()
        parts = [
            f"{word}{getattr(self, key)}"
            for word, key in _VALUED.items()
            if getattr(self, key) != getattr(usual, key)
        ]
        parts += [
            word
            for word, values in _WORDS.items()
            if all(getattr(self, key) == value for key, value in values.items())
        ]
        return "-".join(parts) or "papers"

    @classmethod
    def values_of(cls, word: str, value: str) -> dict[str, Any]:
        """See `Condition`."""
        return {_VALUED[word]: int(value)} if value else _WORDS[word]

    @property
    def file_path(self) -> Path | None:
        """Where `file` is. Raises `InputError` for one of a package that is not installed."""
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
        """Of every connection, in an order in which they take effect.

        A database in WAL mode is read by the first of the others, and without shared memory then.
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
    """The folder of a package, found on the module path; nothing of it is imported."""
    places: list[str] | None = None
    for part in name.split("."):
        spec = importlib.machinery.PathFinder.find_spec(part, places)
        if spec is None or not spec.submodule_search_locations:
            return None
        places = list(spec.submodule_search_locations)
    return Path(places[0]) if places else None


PAPERS = Database()
"""SQLite as the papers had it."""
