"""Tables of strangers: read as they are, or refused before they fill the memory."""

from __future__ import annotations

import os
import random
from pathlib import Path

import polars as pl
import pytest

from flashbed.base import frames
from flashbed.base.errors import InputError
from flashbed.base.footer import Extent, extent
from flashbed.base.frames import DamagedError, read_parquet
from flashbed.results.run_directory import RunDirectory, conform, read_table

ROWS = 3_000_001
COLUMNS = ("a", "b", "c", "d", "e")


def varint(number: int) -> bytes:
    """As a footer has it."""
    rest, found = number * 2, b""
    while rest > 0x7F:
        found += bytes([rest & 0x7F | 0x80])
        rest >>= 7
    return found + bytes([rest])


@pytest.fixture(scope="module")
def zeros(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three million rows in a few KiB."""
    path = tmp_path_factory.mktemp("frames") / "zeros.parquet"
    columns = [pl.zeros(ROWS, pl.Int64, eager=True).alias(name) for name in COLUMNS]
    pl.DataFrame(columns).write_parquet(path, row_group_size=ROWS)
    return path


def test_the_footer_tells_rows_and_columns(zeros: Path) -> None:
    assert extent(zeros) == Extent(ROWS, len(COLUMNS))
    assert zeros.stat().st_size < 10_000


def test_several_row_groups_are_summed(tmp_path: Path) -> None:
    path = tmp_path / "groups.parquet"
    frame = pl.DataFrame({"n": range(1000), "text": ["x"] * 1000, "yes": [True, None] * 500})
    frame.write_parquet(path, row_group_size=300, metadata={"who": "us"})
    assert extent(path) == Extent(1000, 3)
    assert read_parquet(path).equals(frame)


def test_a_few_bytes_that_stand_for_gigabytes_are_refused(zeros: Path, tmp_path: Path) -> None:
    """Polars allocated what the row group said; what the file says of all of it may be less."""
    data = zeros.read_bytes()
    at = data.rfind(varint(ROWS))
    assert varint(ROWS) != varint(130_000_000)
    path = tmp_path / "bomb.parquet"
    path.write_bytes(data[:at] + varint(130_000_000) + data[at + 4 :])
    with pytest.raises(InputError, match=r"130,000,000 rows, 107,374,182 at most"):
        read_parquet(path)


def test_a_text_that_is_there_once_and_meant_often_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "text.parquet"
    pl.DataFrame({"text": ["x" * 1_000_000] * 1000}).write_parquet(path)
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(frames, "TEXT_BYTES_MAX", 100 << 20)
    with pytest.raises(InputError, match="953 MiB of text, 100 MiB at most"):
        read_parquet(path)


@pytest.mark.parametrize("value", [[1], {"a": 1}])
def test_columns_of_other_things_are_damage(value: object, tmp_path: Path) -> None:
    """Casting a struct to a number gives a struct, and whatever reckoned with it failed."""
    path = tmp_path / "nested.parquet"
    pl.DataFrame({"n": [value]}).write_parquet(path)
    with pytest.raises(DamagedError):
        read_parquet(path)


def test_any_damage_of_a_footer_is_said(zeros: Path, tmp_path: Path) -> None:
    data, draw = zeros.read_bytes(), random.Random(1)
    length = int.from_bytes(data[-8:-4], "little")
    path = tmp_path / "damaged.parquet"
    for _ in range(600):
        bent = bytearray(data[-8 - length :])
        for _ in range(draw.randrange(1, 6)):
            bent[draw.randrange(length)] = draw.choice((0, 0xFF, 0x9F, 0xFB, draw.randrange(256)))
        path.write_bytes(data[: -8 - length] + bent)
        try:
            found = extent(path)
        except ValueError:
            continue
        assert found.rows >= 0


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" * 2, b"\xff\xff\xff\x00PAR1", b"x" * 100])
def test_what_is_no_parquet_is_damaged(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "none.parquet"
    path.write_bytes(data)
    with pytest.raises(DamagedError):
        read_parquet(path)


def test_nesting_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "deep.parquet"
    footer = b"\x1c" * 100_000
    path.write_bytes(footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(DamagedError, match="nested too deep"):
        read_parquet(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.parquet")
    with pytest.raises(DamagedError, match="no regular file"):
        read_parquet(tmp_path / "pipe.parquet")


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("case_id", None, "case_id: null"),
        ("target", None, "target: null"),
        ("block", None, "block: null"),
        ("erases", -1, "erases: out of range"),
        ("erases", 2**62, "erases: out of range"),
    ],
)
def test_rows_that_no_run_writes_are_refused(
    column: str, value: object, says: str, tmp_path: Path
) -> None:
    """They were internal errors of whatever read them."""
    good = conform(
        pl.DataFrame({"case_id": ["a", "b"], "target": ["sim"] * 2, "block": [0, 1]}), "wear"
    )
    (tmp_path / "run.json").write_text("{}")
    good.write_parquet(tmp_path / "wear.parquet")
    assert read_table(tmp_path, "wear").equals(good)
    bent = pl.Series(column, [None, value], dtype=good.schema[column])
    good.with_columns(bent).write_parquet(tmp_path / "wear.parquet")
    with pytest.raises(InputError, match=says):
        read_table(tmp_path, "wear")


def test_a_finished_case_without_a_name_is_damage(tmp_path: Path) -> None:
    """Names were sorted, and nothing is not less than a name."""
    run = RunDirectory.create(tmp_path / "r", "t/x")
    rows = {"case_id": ["a", None], "target": ["sim", "sim"], "key": ["k", "k"]}
    pl.DataFrame(rows).write_parquet(run.path / "finished.parquet")
    with pytest.raises(InputError, match="damaged"):
        run.finished()
