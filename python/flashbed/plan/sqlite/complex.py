"""Complex requests, which the SQLite paper leaves to future work (section VI).

Three tables: `owners`, ten times as many `things`, and as many `parts`; each thing has an owner and
each part a thing, drawn by the seed. What a pattern asks for is one statement, run for one owner
after the other; `indexed` is `scanned` with an index over the owner.

Left out: statements that write; views, triggers, several connections.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

__all__ = ["COMPLEX", "complex_request", "complex_rows"]

COMPLEX = {
    "scanned": "SELECT val FROM things WHERE owner = {}",
    "indexed": "SELECT val FROM things WHERE owner = {}",
    "join-three": (
        "SELECT owners.val, parts.val FROM owners, things, parts WHERE things.owner = owners.id "
        "AND parts.thing = things.id AND owners.id = {}"
    ),
    "group-by": "SELECT owner, count(*), max(val) FROM things WHERE owner >= {} GROUP BY owner",
    "subquery": (
        "SELECT count(*) FROM things WHERE owner = {} AND id IN "
        "(SELECT thing FROM parts WHERE parts.id % 2)"
    ),
}
"""Pattern -> its statement, with the owner's number left open."""
THINGS_OF_AN_OWNER = 10


def complex_rows(
    pattern: str, records: int, contents: Iterator[str | bytes]
) -> Iterable[tuple[str, tuple[int | str | bytes, ...]]]:
    """The statements that make the tables, `records` things and parts."""
    draw, owners = random.Random(1).random, _owners(records)
    yield "CREATE TABLE owners (id INTEGER PRIMARY KEY, val TEXT)", ()
    yield "CREATE TABLE things (id INTEGER PRIMARY KEY, owner INTEGER, val TEXT)", ()
    yield "CREATE TABLE parts (id INTEGER PRIMARY KEY, thing INTEGER, val TEXT)", ()
    if pattern != "scanned":
        yield "CREATE INDEX things_owner ON things (owner)", ()
        yield "CREATE INDEX parts_thing ON parts (thing)", ()
    yield "BEGIN", ()
    for number in range(1, 1 + owners):
        yield "INSERT INTO owners VALUES (?, ?)", (number, next(contents))
    for number in range(1, 1 + records):
        owner = 1 + int(draw() * owners)
        yield "INSERT INTO things VALUES (?, ?, ?)", (number, owner, next(contents))
    for number in range(1, 1 + records):
        thing = 1 + int(draw() * records)
        yield "INSERT INTO parts VALUES (?, ?, ?)", (number, thing, next(contents))
    yield "END", ()


def complex_request(pattern: str, index: int, records: int) -> str:
    """The request of that number: for one owner after the other."""
    return COMPLEX[pattern].format(1 + index % _owners(records))


def _owners(records: int) -> int:
    return max(1, records // THINGS_OF_AN_OWNER)
