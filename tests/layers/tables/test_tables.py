"""A run directory holds whole cases only, in the experiment's order, and the same bytes again."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import polars as pl
import pytest

from flashbed.base.errors import InputError
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import plan
from flashbed.results.run_directory import SCHEMAS, RunDirectory, conform, read_table
from flashbed.running.runner import TargetOutcome, run_target
from tests.support.fake import FakeTarget


def run(target: FakeTarget, out: Path, *, trace_flash: bool = False) -> TargetOutcome:
    experiment = load_experiment("one")
    directory = RunDirectory.create(out, experiment.id)
    return run_target(
        experiment,
        plan(experiment),
        target,
        directory,
        trace_flash=trace_flash,
        progress=lambda *_: None,
    )


def test_two_complete_runs_give_the_same_bytes(small: Path) -> None:
    run(FakeTarget("sim"), Path("a"))
    run(FakeTarget("emulator"), Path("a"))
    run(FakeTarget("emulator", batch_cases=7), Path("b"))
    run(FakeTarget("sim", batch_cases=50), Path("b"))
    for table in ("cases", "requests"):
        assert (Path("a") / f"{table}.parquet").read_bytes() == (
            Path("b") / f"{table}.parquet"
        ).read_bytes()


def test_an_interrupted_run_goes_on_where_it_was(small: Path) -> None:
    target = FakeTarget("emulator", interrupt_after=9)
    with pytest.raises(KeyboardInterrupt):
        run(target, Path("a"))
    assert read_table(Path("a"), "cases").height == 9
    target.interrupt_after = None
    assert run(target, Path("a")) == TargetOutcome(
        target="emulator", measured=23, kept=9, failures=()
    )
    assert len(target.ran) == len(set(target.ran)) == 32
    run(FakeTarget("emulator"), Path("b"))
    assert Path("a/cases.parquet").read_bytes() == Path("b/cases.parquet").read_bytes()


def test_parts_that_were_being_removed_hide_nothing(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was killed while it removed merged parts lost rows.

    A part with its list of cases, but without its tables, counted as the last word on them.
    """
    removed = shutil.rmtree

    def killed(path: Path, *, ignore_errors: bool = False) -> None:
        for table in path.glob("*/requests.parquet"):
            table.unlink()
            raise KeyboardInterrupt
        removed(path, ignore_errors=ignore_errors)

    monkeypatch.setattr("flashbed.results.run_directory.shutil.rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        run(FakeTarget("emulator"), Path("a"))
    monkeypatch.undo()
    monkeypatch.setenv("FLASHBED_ROOT", str(small))
    monkeypatch.chdir(small.parent)
    assert run(FakeTarget("emulator"), Path("a")) == TargetOutcome(
        target="emulator", measured=0, kept=32, failures=()
    )
    run(FakeTarget("emulator"), Path("b"))
    assert Path("a/requests.parquet").read_bytes() == Path("b/requests.parquet").read_bytes()
    assert {path.name for path in Path("a").iterdir()} == {
        path.name for path in Path("b").iterdir()
    }


def test_a_part_that_was_being_written_is_no_result(small: Path) -> None:
    run(FakeTarget("emulator"), Path("a"))
    left = Path("a/parts/.000001.77")
    left.mkdir(parents=True)
    (left / "cases.parquet").write_bytes(b"PAR1 half a file")
    assert run(FakeTarget("emulator"), Path("a")) == TargetOutcome(
        target="emulator", measured=0, kept=32, failures=()
    )
    assert not Path("a/parts").exists()


def test_a_failed_case_is_kept_out_and_tried_again(small: Path) -> None:
    bad = "ubifs-emulated-6.1-random-64x4096-of-524288-ra0-s2"
    target = FakeTarget("emulator", fails={bad})
    outcome = run(target, Path("a"))
    assert [failure.case_id for failure in outcome.failures] == [bad]
    assert bad not in read_table(Path("a"), "cases")["case_id"]
    target.fails = set()
    assert run(target, Path("a")) == TargetOutcome(
        target="emulator", measured=1, kept=31, failures=()
    )


def test_a_changed_profile_runs_its_cases_again(small: Path) -> None:
    run(FakeTarget("sim"), Path("a"))
    file = small / "boards" / "omap3evm.toml"
    file.write_text(file.read_text().replace("syscall_ns = 1_500", "syscall_ns = 1_501"))
    assert run(FakeTarget("sim"), Path("a")) == TargetOutcome(
        target="sim", measured=64, kept=32, failures=()
    )
    assert read_table(Path("a"), "cases").height == 96
    assert read_table(Path("a"), "cases")["board_sha256"].n_unique() == 2


def test_a_trace_is_recorded_when_asked_for(small: Path) -> None:
    run(FakeTarget("sim"), Path("a"))
    with pytest.raises(InputError, match="flash was not recorded; `flashbed run --trace flash`"):
        read_table(Path("a"), "flash")
    assert run(FakeTarget("sim"), Path("a"), trace_flash=True).measured == 96
    assert read_table(Path("a"), "flash").height == 96
    assert read_table(Path("a"), "cases").height == 96


def test_tables_have_the_columns_of_the_format(small: Path, project: Path) -> None:
    """docs/reference/tables.md and the program name the same columns, in the same order."""
    run(FakeTarget("sim"), Path("a"), trace_flash=True)
    page = (project / "docs" / "reference" / "tables.md").read_text()
    for table, schema in SCHEMAS.items():
        section = page.split(f"\n## {table}\n")[1].split("\n## ")[0]
        heads = re.findall(r"^- (`\w+`(?:,\s+`\w+`)*)", section, re.MULTILINE)
        assert re.findall(r"`(\w+)`", " ".join(heads)) == list(schema)
        if table in ("cases", "requests", "flash"):
            assert dict(read_table(Path("a"), table).schema) == schema


def test_results_of_before_a_column_was_there_are_gone_on_with(small: Path) -> None:
    run(FakeTarget("emulator"), Path("a"))
    for name in ("cases", "requests"):
        file = Path("a") / f"{name}.parquet"
        pl.read_parquet(file).drop("flash_time_ns").write_parquet(file)
    run(FakeTarget("sim"), Path("a"))
    before = read_table(Path("a"), "cases").filter(target="emulator")
    assert before.height == before["flash_time_ns"].null_count() == 32


def test_windows_of_before_they_could_be_left_to_the_kernel_were_set(small: Path) -> None:
    run(FakeTarget("sim"), Path("a"))
    file = Path("a/cases.parquet")
    pl.read_parquet(file).drop("window").write_parquet(file)
    assert set(read_table(Path("a"), "cases")["window"]) == {"forced"}


def test_an_unknown_column_is_a_bug() -> None:
    with pytest.raises(ValueError, match="cases has no column colour"):
        conform(pl.DataFrame({"colour": ["red"]}), "cases")


def test_other_directories_are_left_alone(small: Path) -> None:
    Path("mine").mkdir()
    Path("mine/thesis.tex").write_text("precious")
    with pytest.raises(InputError, match="mine: not empty"):
        run(FakeTarget("sim"), Path("mine"))
    RunDirectory.create(Path("a"), "small/other")
    with pytest.raises(InputError, match="holds small/other, not small/one"):
        run(FakeTarget("sim"), Path("a"))
    with pytest.raises(InputError, match="not the result of a run"):
        read_table(Path("mine"), "cases")
    with pytest.raises(InputError, match="no table 'case'"):
        read_table(Path("a"), "case")
