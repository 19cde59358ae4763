"""Results at which commands once ended badly: calls like those in `known.py`, of files made first.

Polars aborted or panicked at damage, a column of another kind was found by no check, `lifetime` ran
an experiment before it said that the board has no [endurance], and wear without a count of
programs was an internal error.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import polars as pl
import pytest

from tests.hostile.calls import Call, Worker
from tests.hostile.conftest import Kept
from tests.hostile.good import EXPERIMENT, check, toml_of
from tests.hostile.test_hostile import OF_RESULTS as OF_BYTES
from tests.hostile.test_others import OF_RESULTS as OF_ROWS
from tests.support.fatal import FATAL

pytest.importorskip("flashbed._sim", reason="the simulator is not compiled; make build")

OF_RESULTS = tuple(dict.fromkeys((*OF_BYTES, *OF_ROWS)))
RUN = ("run", "x.toml", "--out", "good")
TABLES = ("cases", "requests", "finished", "wear", "flash")


def as_parts(result: Kept) -> dict[str, bytes | str | None]:
    """A run that was ended before its parts were merged."""
    files: dict[str, bytes | str | None] = {
        name: text for name, text in result.items() if not name.endswith(".parquet")
    }
    for name in TABLES:
        files[f"good/parts/000001/{name}.parquet"] = result[f"good/{name}.parquet"]
    return {**files, "x.toml": toml_of(EXPERIMENT)}


def packed(frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.write_parquet(file, compression="uncompressed", statistics=False)
    return file.getvalue()


@pytest.mark.parametrize("arguments", OF_RESULTS, ids=" ".join)
def test_tables_at_which_polars_aborts(
    worker: Worker, result: Kept, arguments: tuple[str, ...]
) -> None:
    folder = "traced/" if "traced" in arguments else "good/"
    for name in result:
        if name.startswith(folder) and name.endswith(".parquet"):
            check(worker, Call(arguments, {**result, name: FATAL}))


@pytest.mark.parametrize("table", TABLES)
def test_parts_at_which_polars_aborts(worker: Worker, result: Kept, table: str) -> None:
    name = f"good/parts/000001/{table}.parquet"
    status, said = worker.ends(Call(RUN, {**as_parts(result), name: FATAL}))
    assert (status, said.splitlines()) == (
        2, [f"flashbed: {name}: damaged; remove good/parts/000001 and run the experiment again"]
    )  # fmt: skip


def spoilt(data: bytes) -> Iterator[bytes]:
    """Every piece of sixteen bytes, set to ones."""
    for at in range(4, len(data) - 8, 16):
        yield data[:at] + b"\xff" * 16 + data[at + 16 :]


@pytest.mark.parametrize("table", ["requests", "wear"])
def test_parts_with_spoilt_pages(worker: Worker, result: Kept, table: str) -> None:
    """Polars panicked, and its words stood before ours."""
    good = as_parts(result)
    name = f"good/parts/000001/{table}.parquet"
    there = good[name]
    assert isinstance(there, bytes)
    for data in list(spoilt(there))[::7]:
        check(worker, Call(RUN, {**good, name: data}))


KINDS = (pl.String, pl.Float64, pl.Boolean, pl.Binary, pl.Date, pl.List(pl.Int64), pl.Null)


def test_profiles_of_no_known_content(worker: Worker, result: Kept) -> None:
    """The report cut the text of a checksum that was null."""
    cases = pl.read_parquet(io.BytesIO(result["good/cases.parquet"]))
    without = cases.with_columns(pl.lit(None, pl.String).alias("board_sha256"))
    call = Call(("report", "good"), {**result, "good/cases.parquet": packed(without)})
    check(worker, call)
    assert worker.ends(call)[0] == 0


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("arguments", [RUN, ("report", "good"), ("power", "draw", "good")])
def test_columns_of_another_kind(
    worker: Worker, result: Kept, arguments: tuple[str, ...], kind: pl.DataType
) -> None:
    good = {**as_parts(result)} if arguments == RUN else {**result}
    for table, column in (("requests", "seq"), ("cases", "requests"), ("wear", "state")):
        name = next(name for name in good if name.endswith(f"/{table}.parquet"))
        there = good[name]
        assert isinstance(there, bytes)
        frame = pl.read_parquet(io.BytesIO(there))
        bent = frame.with_columns(pl.Series(column, [None] * frame.height, dtype=kind))
        check(worker, Call(arguments, {**good, name: packed(bent)}))


@pytest.mark.parametrize("column", ["case_id", "target"])
@pytest.mark.parametrize("table", TABLES)
def test_rows_of_no_case(worker: Worker, result: Kept, table: str, column: str) -> None:
    """A run that continues orders the rows that are there by their cases."""
    name = f"good/{table}.parquet"
    less = packed(pl.read_parquet(io.BytesIO(result[name])).drop(column))
    parts = {key: text for key, text in as_parts(result).items() if table not in key}
    status, said = worker.ends(Call(RUN, {**parts, name: less}))
    assert (status, said) == (
        2, f"flashbed: {name}: damaged; remove good and run the experiment again\n"
    )  # fmt: skip


def test_lifetime_says_first_that_there_is_no_endurance(worker: Worker) -> None:
    files = {"x.toml": toml_of(EXPERIMENT)}
    call = Call(("lifetime", "x.toml", "--rate", "1/min", "--out", "o"), files)
    check(worker, call)
    status, said = worker.ends(call)
    assert (status, "[endurance]" in said) == (2, True)
    assert not (worker.folder / "work" / "o" / "cases.parquet").exists()


def test_wear_without_a_count_of_programs(worker: Worker, result: Kept) -> None:
    cases = pl.read_parquet(io.BytesIO(result["good/cases.parquet"]))
    without = cases.with_columns(pl.lit(None, pl.Int64).alias("flash_programs"))
    arguments = ("lifetime", "good", "--rate", "1/min", "--endurance", "9999")
    call = Call(arguments, {**result, "good/cases.parquet": packed(without)})
    check(worker, call)
    assert "has wear and no flash_programs" in worker.ends(call)[1]
