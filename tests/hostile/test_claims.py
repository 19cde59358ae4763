"""What a file claims is held against what is there: numbers, lengths, names, tasks.

Each of these files has a few thousand bytes, and claims more than any machine has. It is refused by
one line, or taken in a time and memory that its own size explains.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from tests.hostile.calls import Call, Worker
from tests.hostile.conftest import Kept
from tests.hostile.test_recordings import PROGRAM, packed

pytest.importorskip("flashbed._sim", reason="the simulator is not compiled; make build")

pytestmark = pytest.mark.timeout(100_000)

Row = dict[str, Any]


def opened(path: bytes, descriptor: int = 3, flags: int = 0o102) -> Row:
    return {"call": "openat", "path": path, "flags": flags, "result": descriptor}


def there(path: bytes, length: int, mode: int = 0o100644, **more: Any) -> Row:
    row = {"call": "existed", "path": path, "length": length, "mode": mode}
    return {**row, "start_ns": 0, **more}


def written(length: int) -> Row:
    return {"call": "write", "descriptor": 3, "length": length, "result": length}


CLAIMS: dict[str, tuple[list[Row], int]] = {
    "a length below 0 makes room for another": (
        [there(b"a", -(2**61), result=-1), there(b"b", 2**61), opened(b"b", flags=0)], 2,
    ),
    "a path of 100,000 names": ([opened(b"/".join([b"a"] * 100_000))], 2),
    "the longest path of many names": ([opened(b"/".join([b"a"] * 4000))], 0),
    "a link with a target of a million names": (
        [there(b"a", 1, 0o120777, target=b"./" * 10**6 + b"b"), opened(b"a")], 2,
    ),
    "a link that leads through itself": (
        [there(b"a", 1, 0o120777, target=b"a/" * 4000 + b"b"), opened(b"a")], 0,
    ),
    "links that lead to each other": (
        [there(b"%d" % at, 1, 0o120777, target=b"%d/x" % (at + 1)) for at in range(50)]
        + [opened(b"0/" + b"y/" * 500 + b"z")], 0,
    ),
    "descriptors that many tasks inherit": (
        [opened(b"/", at) for at in range(8000)]
        + [{"call": "clone", "flags": 0, "result": at + 1} for at in range(8000)], 0,
    ),
    "descriptors that many tasks inherit and change": (
        [opened(b"/", at) for at in range(8000)]
        + [
            row
            for at in range(200)
            for row in (
                {"call": "clone", "flags": 0, "result": at + 1},
                {"call": "close", "task": at + 1, "descriptor": 0},
            )
        ], 2,
    ),
    "2,000 writes of 2 GiB": ([opened(b"a"), *[written(0x7FFFF000)] * 2000], 2),
    "folders that move into each other": (
        [{"call": "mkdir", "path": b"d0"}]
        + [
            row
            for at in range(3000)
            for row in (
                {"call": "mkdir", "path": b"d%d" % (at + 1)},
                {"call": "rename", "path": b"d%d" % at, "to_path": b"d%d/d" % (at + 1)},
            )
        ], 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_recording_claims_more_than_there_is(worker: Worker, claim: str) -> None:
    rows, status = CLAIMS[claim]
    rows = [{"descriptor": None, "start_ns": 100 * at, **row} for at, row in enumerate(rows)]
    call = Call(("ops", "check", "x.rec"), {"x.rec": packed(rows)})
    assert worker.finding(call) is None
    assert worker.ends(call)[0] == status


def _varint(number: int) -> bytes:
    low = b""
    while number > 127:
        low += bytes([number & 127 | 128])
        number >>= 7
    return low + bytes([number])


FIELDS: dict[str, Callable[[int], bytes]] = {
    "a list of doubles": lambda count: b"\x09" + _varint(40) + b"\xf7" + _varint(count),
    "a list of truths": lambda count: b"\x09" + _varint(40) + b"\xf1" + _varint(count),
    "a list of texts": lambda count: b"\x09" + _varint(40) + b"\xf8" + _varint(count),
    "a set of structs": lambda count: b"\x0a" + _varint(40) + b"\xfc" + _varint(count),
    "a map of doubles": lambda count: b"\x0b" + _varint(40) + _varint(count) + b"\x77",
    "a text": lambda count: b"\x08" + _varint(40) + _varint(count),
}  # fmt: skip
"""A field of the footer that no reader knows, with so many values."""
READERS: tuple[tuple[str, ...], ...] = (
    ("ops", "check", "x.rec"), ("run", "x.rec"), ("table", "good", "cases"), ("report", "good"),
)  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_a_footer_claims_more_values_than_it_has(worker: Worker, result: Kept, field: str) -> None:
    """A list of 2^62 doubles was passed over one by one: `run` and `report` never ended."""
    good = packed(list(PROGRAM))
    length = int.from_bytes(good[-8:-4], "little")
    footer = good[-8 - length : -9] + FIELDS[field](2**62) + b"\0"
    bent = good[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    for arguments in READERS:
        files = {**result, "x.rec": bent, "good/cases.parquet": bent}
        assert worker.finding(Call(arguments, files)) is None


DEEP_KEYS = (
    "a" + ".a" * 200_000 + " = 1\n", "[a" + ".a" * 200_000 + "]\n",
    "a = {" + "a." * 200_000 + "a = 1}\n", 'a = {b = 1, "a"' + ' . "b c"' * 50_000 + " = 1}\n",
    "\n".join("a." * 60 + f"b{number} = 1" for number in range(4000)),
)  # fmt: skip


@pytest.mark.parametrize("text", DEEP_KEYS, ids=range(len(DEEP_KEYS)))
def test_a_key_has_more_parts_than_any_table(worker: Worker, result: Kept, text: str) -> None:
    """`tomllib` took hours for 200,000 parts, also in a stranger's results."""
    deep = text.encode()
    assert worker.finding(Call(("run", "x.toml", "--out", "o"), {"x.toml": deep})) is None
    files = {**result, "good/experiment.toml": deep}
    assert worker.finding(Call(("report", "good"), files)) is None


MANY_TABLES = (
    "[[grid]]\n" * 100_000,
    "[experiment]\n" + "".join(f"x{number}.y = 1\n" for number in range(20_000)),
    "[experiment]\n" + "".join(f"titl{number} = 1\n" for number in range(20_000)),
)


@pytest.mark.parametrize("text", MANY_TABLES, ids=range(len(MANY_TABLES)))
def test_a_file_has_more_wrong_tables_than_anybody_reads(worker: Worker, text: str) -> None:
    """100,000 empty grids took hours: each table was looked for among the errors of all."""
    call = Call(("run", "x.toml", "--out", "o"), {"x.toml": text.encode()})
    assert worker.finding(call) is None


COLUMNS = ("target", "case_id", "experiment", "board", "fs", "pattern", "kernel", "window")


@pytest.mark.parametrize("column", COLUMNS)
def test_a_name_in_a_table_has_the_length_of_a_name(
    worker: Worker, result: Kept, column: str
) -> None:
    """A target of 100,000 characters ended `report` in an internal error, or never."""
    for name in ("cases", "requests"):
        rows = pl.read_parquet(io.BytesIO(result[f"good/{name}.parquet"]))
        if column in rows.columns:
            rows = rows.with_columns(pl.lit("x" * 100_000).alias(column))
        bent = io.BytesIO()
        rows.write_parquet(bent)
        files = {**result, f"good/{name}.parquet": bent.getvalue()}
        for arguments in (("report", "good"), ("table", "good", name)):
            assert worker.finding(Call(arguments, files)) is None


def test_the_longest_name_of_a_case_is_drawn(worker: Worker, result: Kept) -> None:
    files = dict(result)
    for name in ("cases", "requests", "wear", "flash", "finished"):
        rows = pl.read_parquet(io.BytesIO(files[f"good/{name}.parquet"]))
        long = pl.lit("-" + "x" * 30_000) + pl.col("case_id")
        bent = io.BytesIO()
        rows.with_columns(long.alias("case_id")).write_parquet(bent)
        files[f"good/{name}.parquet"] = bent.getvalue()
    assert worker.finding(Call(("report", "good"), files)) is None
