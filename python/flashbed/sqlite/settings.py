"""How a database is set up: the pragmas that decide what reaches the flash.

The defaults are those SQLite had when the papers were written (3.7: 1 KiB pages, a cache of 2,000
pages, a journal that is deleted), set explicitly because today's are others (4 KiB, 2 MB).
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from flashbed.toml_models import Strict

__all__ = ["Database"]


class Database(Strict):
    """`database = { … }` of an experiment (docs/sqlite.md)."""

    page_bytes: Annotated[int, Field(ge=512, le=65536)] = 1024
    cache_pages: Annotated[int, Field(ge=10, lt=2**20)] = 2000
    journal: Literal["delete", "truncate", "persist", "wal", "memory", "off"] = "delete"
    synchronous: Literal["off", "normal", "full", "extra"] = "full"
    auto_vacuum: Literal["none", "full", "incremental"] = "none"
    prepared: bool = False
    sync: Literal["fsync", "fdatasync"] = "fsync"

    @model_validator(mode="after")
    def _a_page(self) -> Self:
        if self.page_bytes & (self.page_bytes - 1):
            raise ValueError(f"page_bytes: {self.page_bytes} is no power of two")
        return self

    @property
    def before(self) -> tuple[str, ...]:
        """Pragmas of every connection, in an order in which they take effect."""
        exclusive = ("PRAGMA locking_mode = EXCLUSIVE",) if self.journal == "wal" else ()
        return (
            f"PRAGMA page_size = {self.page_bytes}",
            f"PRAGMA auto_vacuum = {self.auto_vacuum}",
            f"PRAGMA cache_size = {self.cache_pages}",
            f"PRAGMA synchronous = {self.synchronous}",
            *exclusive,
            f"PRAGMA journal_mode = {self.journal}",
        )
