"""Cost models: their terms against real SQLite, their fit against prices that are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flashbed.answers.costs.cost_fit import fit_cases
from flashbed.answers.costs.model import Model, load
from flashbed.answers.costs.predict import chosen, only_database, predict, subject_of
from flashbed.answers.costs.terms import TERMS, SqlLoad, pages_of, read_in_kib, terms
from flashbed.answers.lifetimes.estimate import estimate
from flashbed.base.errors import InputError
from flashbed.results.run_directory import conform
from flashbed.stack.profiles import load_board

COUNTS = (100, 300, 1000, 3000, 5000)
SIZES = (50, 150, 300, 450, 600)
DATABASES = {"papers": (1024, 2000), "page4096": (4096, 2000), "cache500": (1024, 500)}
ASKED = SqlLoad(
    pattern="update",
    requests=1000,
    request_bytes=450,
    page_bytes=1024,
    cache_pages=2000,
    records=5000,
    read_ahead_kib=0,
)


def table(prices: dict[str, float], pattern: str = "update", **columns: object) -> pl.DataFrame:
    """Cases whose times are the prices of what they come to."""
    rows = []
    for count in COUNTS:
        for size in SIZES:
            for word, (page_bytes, cache_pages) in DATABASES.items():
                asked = SqlLoad(
                    pattern=pattern,
                    requests=count,
                    request_bytes=size,
                    page_bytes=page_bytes,
                    cache_pages=cache_pages,
                    records=5000,
                    read_ahead_kib=0,
                )
                cost = sum(prices.get(name, 0.0) * much for name, much in terms(asked).items())
                rows.append(
                    {
                        "case_id": f"{pattern}-{count}x{size}-{word}",
                        "experiment": "test/costs",
                        "target": "sim",
                        "board": "emulated",
                        "kernel": "6.1",
                        "fs": "ubifs",
                        "read_ahead_kib": 0,
                        "mount": "default",
                        "pattern": pattern,
                        "requests": count,
                        "request_bytes": size,
                        "state": "new",
                        "faults": "none",
                        "database": word,
                        "time_ns": round(cost),
                        "flash_reads": 0,
                        "flash_programs": 64 * count,
                        "flash_erases": count,
                        "board_sha256": load_board("emulated").sha256,
                        "kernel_sha256": "k",
                        **columns,
                    }
                )
    return conform(pl.DataFrame(rows), "cases")


def model_of(*tables: pl.DataFrame) -> Model:
    return fit_cases(pl.concat(tables)).model


@example(record_bytes=1013, records=128, page_bytes=4096)
@given(
    record_bytes=st.integers(1, 6000),
    records=st.integers(1, 2500),
    page_bytes=st.sampled_from([512, 1024, 4096, 8192]),
)
@settings(max_examples=40, deadline=None)
def test_a_table_has_the_pages_that_sqlite_makes(
    record_bytes: int, records: int, page_bytes: int
) -> None:
    connection = apsw.Connection(":memory:")
    for statement in (
        f"PRAGMA page_size = {page_bytes}",
        "CREATE TABLE one (id INTEGER PRIMARY KEY, val TEXT)",
        "BEGIN",
    ):
        connection.execute(statement)
    rows = ((number, "x" * record_bytes) for number in range(1, 1 + records))
    connection.executemany("INSERT INTO one VALUES (?, ?)", rows)
    connection.execute("END")
    pages = int(str(connection.pragma("page_count")))
    connection.close()
    # Interior pages are not quite full.
    assert pages_of(records, record_bytes, page_bytes) == pytest.approx(pages - 1, rel=0.02, abs=2)


@pytest.mark.parametrize(
    ("until", "read"),
    [(17, 112), (50, 240), (100, 240), (167, 368), (300, 496), (334, 496), (1012, 1264)],
)
def test_a_file_is_read_in_by_windows(until: int, read: int) -> None:
    """As the simulator had it in the page cache, 128 KiB of read-ahead."""
    assert read_in_kib(until, 5000, 128) == read
    assert read_in_kib(until, read - 3, 128) == read - 3
    assert read_in_kib(until, 5000, 0) == -(-until // 4) * 4


PRICE = st.floats(1e3, 1e6) | st.just(0.0)


@given(st.fixed_dictionaries(dict.fromkeys(TERMS, PRICE)), st.sampled_from(["insert", "update"]))
@settings(max_examples=40, deadline=None)
def test_prices_that_a_table_was_made_of_are_found(prices: dict[str, float], pattern: str) -> None:
    prices["transaction"] += 1e6
    (model,) = model_of(table(prices, pattern)).models
    found = model.quantities["time_ns"]
    assert found is not None
    # Times are whole, terms nearly alike: what a price comes to is known, not its last digits.
    told_apart = set(model.terms)
    assert {"transaction", "request", "record_kib", "page", "page_kib"} <= told_apart
    if pattern == "insert":
        for name in told_apart:
            assert found.prices[name] == pytest.approx(prices[name], rel=1e-3, abs=10)
    assert found.residual_max_pct < 0.01
    assert found.held_out_max_pct < 0.01
    asked = replace(ASKED, pattern=pattern, requests=1234, request_bytes=220)
    answer = predict(model, asked).quantities["time_ns"]
    assert answer is not None
    cost = sum(prices[name] * much for name, much in terms(asked).items())
    assert answer.value == pytest.approx(cost, rel=1e-3)
    assert sum(answer.parts.values()) == pytest.approx(answer.value)


def test_scatter_widens_the_band_and_is_covered_by_it() -> None:
    exact = table({"transaction": 1e7, "request": 1e5, "page": 2e5})
    noise = pl.Series([1 + 0.02 * ((7 * n) % 11 - 5) / 5 for n in range(exact.height)])
    noisy = exact.with_columns((pl.col("time_ns") * noise).cast(pl.Int64))
    bands = []
    for cases in (exact, noisy):
        (model,) = model_of(cases).models
        answer = predict(model, ASKED).quantities["time_ns"]
        prices = model.quantities["time_ns"]
        assert answer is not None
        assert prices is not None
        bands.append((answer.high - answer.low) / answer.value)
        assert prices.held_out_within >= 0.9
    assert bands[0] < 1e-4
    assert 0.02 < bands[1] < 0.1


def test_what_is_held_out_is_not_fitted() -> None:
    """Wrong times of the middle size and the second number leave the prices as they were."""
    right = table({"transaction": 1e7, "request": 1e5})
    held = (pl.col("request_bytes") == 300) | (pl.col("requests") == 300)
    wrong = right.with_columns(
        pl.when(held).then(pl.col("time_ns") * 2).otherwise("time_ns").alias("time_ns")
    )
    (model,) = model_of(wrong).models
    assert (model.held_out_requests, model.held_out_request_bytes) == ((300,), (300,))
    assert (model.cases, model.held_out_cases) == (75, 27)
    prices = model.quantities["time_ns"]
    assert prices is not None
    assert prices.prices["request"] == pytest.approx(1e5, rel=1e-4)
    assert prices.residual_max_pct < 0.01
    assert prices.held_out_mean_pct == pytest.approx(50, abs=0.1)
    assert prices.scatter == pytest.approx(0.5, abs=0.01)


def test_a_model_of_one_database_predicts_for_that_one() -> None:
    """Without --database `predict` took the papers' settings, which a model may not have."""
    rows = table({"request": 1e5})
    assert only_database(model_of(rows), "update") == "papers"
    letters = rows.with_columns(pl.lit("letters").alias("database"))
    assert only_database(model_of(letters), "update") == "letters"
    assert only_database(model_of(letters), "insert") is None


def test_terms_that_go_with_others_are_left_to_them() -> None:
    one_size = table({"request": 1e5}).filter(pl.col("database") == "papers")
    (model,) = model_of(one_size).models
    assert "page" in model.terms
    assert "page_kib" not in model.terms
    assert "spilled_page" in model.terms


def test_what_a_table_does_not_know_is_null() -> None:
    (model,) = model_of(table({}, time_ns=None)).models
    assert model.quantities["time_ns"] is None
    assert model.quantities["energy_nj"] is None
    assert predict(model, ASKED).quantities["time_ns"] is None
    erases = predict(model, ASKED).quantities["flash_erases"]
    assert erases is not None
    assert erases.value == pytest.approx(1000)


def test_repeating_it_is_a_lifetime() -> None:
    """1,000 blocks erased and programmed a round, on 400 blocks: 2.5 erases of each."""
    board = load_board("emulated")
    found = predict(model_of(table({"request": 1e5})).models[0], ASKED)
    subject = subject_of(found, "it", 24.0, board)
    answer = estimate(subject.observed, 100_000)
    assert answer is not None
    assert answer.mean_block_per_day == pytest.approx(2.5 * 24)
    assert answer.worst_block_per_day is None
    assert answer.perfect_levelling.value == pytest.approx(100_000 / 60 / 365.25)
    assert answer.levelling_seen.low is None
    assert answer.levelled_by_ubi_low == pytest.approx(91_808 / 60 / 365.25, rel=0.01)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"requests": 99}, "requests 99: the model is of 100 to 5,000"),
        ({"request_bytes": 601}, "request_bytes 601: the model is of 50 to 600"),
        ({"page_bytes": 2048}, "page_bytes 2,048: the model is of 1,024, 4,096"),
        ({"cache_pages": 499}, "cache_pages 499: the model is of 500 to 2,000"),
        ({"records": 4000}, "records 4,000: the model is of 5,000, it says nothing beyond"),
    ],
)
def test_what_was_not_in_the_tables_is_refused(changed: dict[str, Any], says: str) -> None:
    (model,) = model_of(table({"request": 1e5})).models
    with pytest.raises(InputError, match=says):
        predict(model, replace(ASKED, **changed))


def test_more_of_a_term_than_any_case_had_is_refused() -> None:
    """Each axis is in range, their product is not."""
    cases = table({"request": 1e5}).filter(
        (pl.col("requests") < 5000) | (pl.col("request_bytes") < 300)
    )
    (model,) = model_of(cases).models
    with pytest.raises(InputError, match=r"record_kib .*: the model's tables have"):
        predict(model, replace(ASKED, requests=5000, request_bytes=600))


def test_a_model_is_chosen_by_its_setting() -> None:
    prices = {"request": 1e5}
    ubifs, jffs2 = table(prices), table(prices, fs="jffs2")
    jffs2 = jffs2.with_columns(pl.format("jffs2-{}", "case_id").alias("case_id"))
    model = model_of(ubifs, jffs2, table(prices, "insert"))
    assert chosen(model, "update", {"fs": "jffs2"}).setting.fs == "jffs2"
    assert chosen(model, "insert", {}).pattern == "insert"
    for pattern, wanted, says in (
        ("update", {}, "fs: say which, there are ubifs, jffs2"),
        ("join", {}, "--pattern join: the model has update, insert"),
        ("insert", {"fs": "jffs2"}, "fs jffs2: of insert the model has ubifs"),
        ("insert", {"size": "3"}, "--set size: a model is chosen by target, board"),
        ("insert", {"database": "wal"}, "database wal: of insert the model has papers"),
    ):
        with pytest.raises(InputError, match=says):
            chosen(model, pattern, wanted)


@pytest.mark.parametrize(
    ("cases", "says"),
    [
        (table({}, pattern="update").clear(), "nothing to fit a model to: no cases"),
        (table({}).with_columns(pattern=pl.lit("script")), "75 cases: pattern script has no terms"),
        (table({}).with_columns(database=pl.lit("log")), "75 cases: database log is a name"),
        (table({}).filter(pl.col("requests") < 300, pl.col("request_bytes") < 300), "left to fit"),
        (table({}).filter(requests=100, request_bytes=50), "left to fit"),
        (
            table({}).with_columns(board_sha256=pl.col("requests").cast(pl.String)),
            "ubifs update on sim, emulated, Linux 6.1: runs differ in board_sha256",
        ),
    ],
)
def test_tables_that_say_too_little_are_refused(cases: pl.DataFrame, says: str) -> None:
    with pytest.raises(InputError, match=says):
        fit_cases(cases)


def test_the_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    model = model_of(table({"request": 1e5}))
    path = tmp_path / "model.json"
    path.write_text(model.model_dump_json())
    assert load(path) == model
    for text, says in (
        ("{", "not a model"),
        ('{"format": "flashbed-model 2"}', "format"),
        (model.model_dump_json().replace('"page_kib"', '"pages"', 1), "other terms than"),
        (model.model_dump_json().replace('"cases"', '"sizes"', 1), "not a model"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=says):
            load(path)
    with pytest.raises(InputError, match="no such file"):
        load(tmp_path / "none.json")
