"""`flashbed cost fit` and `predict` as a user meets them; the examples of its reference."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import polars as pl
import pytest

from flashbed.answers.costs.cost_fit import fit_cases
from flashbed.results.run_directory import RunDirectory, read_table
from flashbed.stack.profiles import load_board
from tests.layers.costs.test_costs import table
from tests.smoke.conftest import Run
from tests.smoke.examples import steps

INSERT = "--pattern insert --requests 1000 --request-bytes 220"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """`model.json`, fitted to a run directory `costs` of made-up cases on two file systems."""
    monkeypatch.chdir(tmp_path)
    prices = {"transaction": 1e7, "request": 1e5, "page": 2e5}
    ubifs = table(prices, "insert")
    yaffs2 = table(prices, "insert", fs="yaffs2", flash_reads=None)
    yaffs2 = yaffs2.with_columns(pl.format("yaffs2-{}", "case_id").alias("case_id"))
    RunDirectory.create(Path("costs"), "test/costs")
    pl.concat([ubifs, yaffs2]).write_parquet("costs/cases.parquet")
    status, out, err = run("cost", "fit", "costs", "--out", "model.json")
    assert (status, err) == (0, "model: wrote model.json\n")
    assert "insert: 75 cases, 27 of them held out (300 bytes, 300 requests)" in out
    assert "10 ms ± " in out
    assert "not in these tables: page reads, energy, component energy" in out
    return tmp_path / "model.json"


def test_a_prediction_is_a_line_for_each_cost(model: Path, run: Run) -> None:
    status, out, _ = run("cost", "predict", "model.json", *INSERT.split(), "--fs", "ubifs")
    assert status == 0
    lines = out.splitlines()
    assert lines[0].startswith("1,000 x insert of 220 bytes: ubifs, emulated, Linux 6.1, on sim")
    names = [line.split("  ")[1] for line in lines[1:]]
    assert names == [
        "time", "page reads", "page writes", "erases", "energy", "component energy",
    ]  # fmt: skip
    # 250 leaves of 4 records and 3 interior pages.
    assert lines[1].split()[1:3] == ["161", "ms"]
    assert "requests 62 %, pages 32 %, transaction 6 %" in lines[1]


def test_a_program_reads_json_with_null_for_unknown(model: Path, run: Run) -> None:
    arguments = [
        "cost",
        "predict",
        "model.json",
        *INSERT.split(),
        "--fs",
        "yaffs2",
        "--format",
        "json",
    ]
    status, out, _ = run(*arguments, "--rate", "1/h", "--page-bytes", "4096")
    assert status == 0
    answer = json.loads(out)
    found = answer["prediction"]
    assert (found["fs"], found["page_bytes"], found["records"]) == ("yaffs2", 4096, None)
    assert found["flash_reads"] is None
    assert found["energy_nj"] is None
    assert found["flash_erases"]["value"] == pytest.approx(1000, rel=1e-3)
    assert found["time_ns"]["low"] <= found["time_ns"]["value"] <= found["time_ns"]["high"]
    assert sum(found["time_ns"]["parts"].values()) == pytest.approx(found["time_ns"]["value"])
    # 1,000 erases of 400 blocks an hour.
    assert answer["lifetime"]["mean_block_erases_per_day"] == pytest.approx(60, rel=1e-3)
    assert answer["lifetime"]["worst_block_erases"] is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (f"predict gone.json {INSERT}", "gone.json: no such file"),
        (
            f"cost predict costs/run.json {INSERT}",
            "costs/run.json: not a model of `flashbed cost fit`",
        ),
        (f"predict model.json {INSERT}", "fs: say which, there are ubifs, yaffs2"),
        (f"predict model.json {INSERT} --fs jffs2", "fs jffs2: of insert the model has"),
        (f"predict model.json {INSERT} --fs ubifs --set board=x", "board x: of insert"),
        (f"predict model.json {INSERT} --fs ubifs --set board", "--set board: AXIS=VALUE"),
        (f"predict model.json {INSERT} --fs ubifs --set x=1", "--set x: a model is chosen by"),
        (f"predict model.json {INSERT} --fs ubifs --database wal", "database wal: of insert"),
        (f"predict model.json {INSERT} --fs ubifs --database x.db", "x.db: no such name"),
        (f"predict model.json {INSERT} --fs ubifs --page-bytes 2048", "page_bytes 2,048: the"),
        (
            f"predict model.json {INSERT} --fs ubifs --database page4096 --page-bytes 1024",
            "--page-bytes 1024: --database has 4096",
        ),
        (f"predict model.json {INSERT} --fs ubifs --format csv", "--format csv: text or json"),
        (f"predict model.json {INSERT} --fs ubifs --rate x", "--rate x: N/UNIT"),
        (f"predict model.json {INSERT} --fs ubifs --endurance 9", "--endurance: needs --rate"),
        (
            "predict model.json --pattern insert --requests 9 --request-bytes 220 --fs ubifs",
            "requests 9: the model is of 100 to 5,000, it says nothing beyond",
        ),
        (
            f"predict other.json {INSERT} --fs ubifs --rate 1/h",
            "changed since the model was fitted",
        ),
        ("model sqlite nothing", "nothing: not the result of a run"),
        ("model sqlite empty", "nothing to fit a model to: no cases"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(model: Path, run: Run, arguments: str, says: str) -> None:
    Path("other.json").write_text(
        model.read_text().replace(load_board("emulated").sha256, "0" * 64)
    )
    RunDirectory.create(Path("empty"), "test/costs")
    table({}).clear().write_parquet("empty/cases.parquet")
    status, out, err = run(*arguments.split())
    assert (status, out) == (2, "")
    assert says in err
    assert err.startswith("flashbed: ")
    assert err.count("\n") == 1


@pytest.mark.extension
@pytest.mark.timeout(600)
@pytest.mark.long
def test_the_examples_of_the_document_are_true(
    project: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run is what is shown of the grid; the errors of what was held out keep to bounds."""
    document = project / "docs" / "reference" / "cost-model.md"
    monkeypatch.chdir(tmp_path)
    axes = ["--set", "fs=ubifs", "--set", "pattern=insert,update"]
    assert run("run", "models/sqlite", *axes, "--out", "costs")[0] == 0
    assert run("cost", "fit", "costs", "--out", "model.json")[0] == 0
    sections = ("The answer", "The lifetime", "The prices")
    examples = [example for section in sections for example in steps(document, section)]
    assert len(examples) == 3
    for example in examples:
        status, out, _ = run(*shlex.split(example.command)[1:])
        assert status == 0, example.command
        assert out.splitlines()[: len(example.shown)] == example.shown, example.command
    for found in fit_cases(read_table(Path("costs"), "cases")).model.models:
        for name, bound_pct in (("time_ns", 3), ("flash_reads", 8), ("flash_programs", 4)):
            prices = found.quantities[name]
            assert prices is not None
            assert prices.held_out_mean_pct < bound_pct, (found.pattern, name)
            assert prices.held_out_within > 0.85, (found.pattern, name)
