"""`flashbed lifetime` as a user meets it, and the examples of its document."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from flashbed.targets.base import Batch, Program
from tests.smoke.conftest import Run
from tests.support.fake import FakeTarget

Fakes = dict[str, FakeTarget]
CASE = "jffs2-omap3evm-2.6.37-sequential-8x4096-of-524288-ra0-s1"
"""On the fake target block n of 800 is erased n times by a round, and nothing is programmed."""


def json_of(run: Run, *arguments: str) -> list[dict[str, object]]:
    status, out, _ = run("lifetime", *arguments, "--format", "json")
    assert status == 0
    found: list[dict[str, object]] = json.loads(out)["lifetime"]
    return found


def test_an_experiment_is_run_with_its_wear(small: Path, fakes: Fakes, run: Run) -> None:
    """799 erases of the worst block a day: 100,000 take 125 days, 0.343 years."""
    (answer,) = json_of(run, "one", "--case", CASE, "--rate", "1/day")
    assert fakes["sim"].ran == [CASE]
    assert (answer["name"], answer["target"], answer["board"]) == (CASE, "sim", "omap3evm")
    assert (answer["blocks"], answer["blocks_erased"], answer["erases"]) == (800, 799, 319_600)
    seen = answer["years_levelling_seen"]
    assert isinstance(seen, dict)
    assert seen["value"] == pytest.approx(100_000 / 799 / 365.25)
    perfect = answer["years_perfect_levelling"]
    assert isinstance(perfect, dict)
    assert perfect["value"] == pytest.approx(100_000 / 399.5 / 365.25)
    # What was run is kept, and answers the next question.
    fakes["sim"].unavailable = "broken"
    directory = "results/lifetime/small/one"
    (again,) = json_of(run, directory, "--case", CASE, "--rate", "2/day")
    assert again["worst_block_erases_per_day"] == 2 * 799


def test_many_cases_are_a_list(small: Path, fakes: Fakes, run: Run) -> None:
    status, out, _ = run("lifetime", "one", "--set", "seed=1", "--set", "pattern=random")
    assert status == 0
    lines = out.splitlines()
    assert lines[0].split() == ["case", "target", "mean", "worst", "amplification", "lifetime"]
    assert len(lines) == 2 + len(fakes["sim"].ran)


def names(answers: list[dict[str, object]]) -> set[object]:
    return {answer["name"] for answer in answers}


def test_only_the_cases_that_were_asked_for_are_judged(small: Path, fakes: Fakes, run: Run) -> None:
    """The results folder of an experiment keeps older cases, which were judged at the new rate."""
    first = json_of(run, "one", "--set", "pattern=random", "--set", "seed=1", "--rate", "1/day")
    second = json_of(run, "one", "--case", CASE, "--rate", "24/day")
    assert names(second) == {CASE}
    assert CASE not in names(first)
    directory = "results/lifetime/small/one"
    assert names(json_of(run, directory, "--rate", "1/h")) == names(first) | {CASE}
    chosen = json_of(run, directory, "--set", "pattern=random", "--rate", "1/h")
    assert names(chosen) == names(first)
    both = ("--set", "pattern=random", "--case", CASE)
    assert "no such case in" in run("lifetime", directory, *both)[2]
    assert "none of the chosen cases" in run("lifetime", directory, "--on", "emulator")[2]
    assert names(json_of(run, directory, "--on", "sim", "--rate", "1/h")) == names(first) | {CASE}


def test_an_experiment_that_keeps_no_requests_is_judged_by_its_counts(
    small: Path, fakes: Fakes, run: Run
) -> None:
    """`lifetime sqlite/requests` ended with "requests was not recorded"."""
    file = small / "experiments" / "small" / "one.toml"
    text = file.read_text()
    start, end = text.index("[[figure]]"), len(text)
    text = text[:start] + text[end:]
    file.write_text(text.replace("[workload]", 'omit = ["requests"]\n\n[workload]', 1))
    (answer,) = json_of(run, "one", "--case", CASE, "--rate", "1/day")
    assert answer["worst_block_erases_per_day"] == 799
    assert answer["bytes_written"] is None
    assert (
        "  lifetime      not known: how often does it run?"
        in run("lifetime", "one", "--case", CASE)[1]
    )


def test_what_a_round_leaves_in_memory_is_never_free(
    small: Path, fakes: Fakes, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that does not sync had `no end … nothing was programmed` on UBIFS."""
    batch_of = FakeTarget._batch
    flushed: dict[str, int | None] = dict.fromkeys(("flush_programs", "flush_erases"))

    def batch(self: FakeTarget, programs: Sequence[Program], trace_flash: bool) -> Batch:
        batch = batch_of(self, programs, trace_flash)
        known = {name: pl.lit(value, pl.Int64) for name, value in flushed.items()}
        cases = batch.cases.with_columns(bytes_written=pl.lit(4096, pl.Int64), **known)
        cases = cases.with_columns(elapsed_ns=pl.lit(10**9, pl.Int64))
        wear = batch.wear.with_columns(
            pl.lit(0, pl.Int64).alias("erases_measured"),
            pl.lit(flushed["flush_erases"], pl.Int64).alias("erases_flush"),
        )
        return replace(batch, cases=cases, wear=wear)

    monkeypatch.setattr(FakeTarget, "_batch", batch)
    words = ("one", "--case", CASE, "--rate", "24/day", "--out")
    _, out, _ = run("lifetime", *words, "unknown")
    assert "  lifetime      unknown: nothing reached the flash yet" in out
    assert "no end" not in out
    flushed.update(flush_programs=0, flush_erases=0)
    assert (
        "no end: nothing was written to the flash or erased"
        in run("lifetime", *words, "nothing")[1]
    )
    flushed.update(flush_programs=64, flush_erases=1)
    (answer,) = json_of(run, *words, "flushed")
    assert answer["bytes_flushed"] == answer["bytes_programmed"] == 64 * 2048
    assert (answer["programs_per_day"], answer["erases_per_day"]) == (24 * 64, 24 * 800)
    assert answer["years"] is not None
    assert answer["worst_block_erases_per_day"] == 24


def test_a_wear_table_stands_alone(small: Path, fakes: Fakes, run: Run) -> None:
    run("run", "one", "--case", CASE, "--trace", "flash,wear", "--out", "r")
    assert len(run("table", "r", "flash")[1].splitlines()) == 2
    _, out, _ = run("table", "r", "wear", "--format", "csv")
    assert out.splitlines()[2] == f"{CASE},sim,1,2,1,good,"
    pl.read_csv(io.StringIO(out)).write_parquet("mine.parquet")
    (answer,) = json_of(run, "mine.parquet", "--rate", "1/day", "--board", "omap3evm")
    (same,) = json_of(run, "r", "--rate", "1/day")
    assert answer["years"] == same["years"]
    _, out, _ = run("lifetime", "mine.parquet", "--rate", "1/day", "--endurance", "799000")
    assert "  lifetime      2.4 to 2.9 years\n" in out


def test_counters_come_from_standard_input_too(
    small: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pipe:
        buffer = io.BytesIO(b"ubi0: max/mean erase counter: 431/213, WL threshold: 4096\n")

    monkeypatch.setattr(sys, "stdin", Pipe())
    status, out, err = run("lifetime", "-", "--age", "3y", "--endurance", "3000")
    assert (status, err) == (0, "")
    assert out.startswith("standard input\n")
    assert "worst block 0.393 a day (431 seen)" in out
    assert "time left" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("nothing", "no experiment 'nothing'"),
        ("one --case x", "--case x: no such case in small/one"),
        ("one --rate soon", "--rate soon: N/UNIT"),
        ("one --endurance 0", "--endurance 0: not a number of erases"),
        ("one --board omap3evm", "--board: does not apply here"),
        ("one --age 3y", "--age: does not apply here"),
        ("one --on moon", "--on moon: no such target"),
        ("one --format csv", "--format csv: text or json"),
        ("boards.txt --endurance 10", "--age TIME: the age of the device"),
        ("boards.txt --age 3y", "boards.txt:1: 'a file' is no row of erase counters"),
        ("boards.txt --age 3y --case x", "--case: does not apply here"),
        ("counts.txt --age long", "--age long: must be a time above 0"),
        ("counts.txt --age 3y", "--endurance N or --board NAME"),
        ("counts.txt --age 3y --board x", "boards/x.toml: no such board"),
        ("counts.txt --age 3y --board bare", "boards/bare.toml: has no [endurance]"),
        ("counts.txt --age 3y --before gone.txt --board bare", "gone.txt: no such file"),
        ("counts.txt --age 3y --before more.txt --endurance 9", "readings are swapped"),
        ("gone.parquet --rate 1/h", "gone.parquet: no such file"),
        ("gone.txt --age 3y --endurance 100000", "gone.txt: no such file"),
        ("bad.parquet --rate 1/h", "bad.parquet: cannot be read as Parquet"),
        ("bad.parquet", "bad.parquet: how often does it happen? Use --rate"),
        ("other.parquet --rate 1/h", "other.parquet: no wear table: it has no column block"),
        ("typed.parquet --rate 1/h", "typed.parquet: no wear table: a column has another type"),
        ("empty.parquet --rate 1/h", "empty.parquet: a wear table without rows"),
        ("folder", "folder: not the result of a run"),
        (f"half --case {CASE}", f"half: no wear of {CASE} on sim; `--trace wear` records it"),
        ("r", "r: wear was not recorded; `flashbed run --trace wear` records it"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    small: Path, fakes: Fakes, run: Run, arguments: str, says: str
) -> None:
    run("run", "one", "--case", CASE, "--out", "r")
    run("run", "one", "--case", CASE.replace("ra0", "ra128"), "--trace", "wear", "--out", "half")
    run("run", "one", "--case", CASE, "--out", "half")
    Path("boards.txt").write_text("a file")
    Path("counts.txt").write_text("5\n5\n")
    Path("more.txt").write_text("6\n6\n")
    Path("bad.parquet").write_text("no")
    Path("folder").mkdir()
    columns = {"case_id": "a", "target": "sim", "block": "x", "erases_measured": 1, "state": "good"}
    pl.DataFrame({"case_id": ["a"]}).write_parquet("other.parquet")
    pl.DataFrame({name: [value] for name, value in columns.items()}).write_parquet("typed.parquet")
    numbers = pl.DataFrame({**{name: [value] for name, value in columns.items()}, "block": [1]})
    numbers.clear().write_parquet("empty.parquet")
    board = (small / "boards" / "omap3evm.toml").read_text().replace('"omap3evm"', '"bare"')
    bare = re.sub(r"\[endurance\].*?\n\n", "", board, flags=re.DOTALL)
    (small / "boards" / "bare.toml").write_text(bare)
    status, out, err = run("lifetime", *arguments.split())
    assert (status, out) == (2, "")
    assert says in err
    assert err.startswith("flashbed: ")
    assert err.count("\n") == 1


def test_a_target_that_cannot_run_is_said_and_exit_1(small: Path, fakes: Fakes, run: Run) -> None:
    fakes["sim"].unavailable = "the simulator is not compiled"
    status, _, err = run("lifetime", "one")
    assert status == 1
    assert "sim not measured: the simulator is not compiled" in err


@pytest.mark.extension
@pytest.mark.parametrize("page", ["lifetime", "in-the-field"])
def test_the_examples_of_the_document_are_true(
    project: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    """Every `$ flashbed …` prints what stands below it; files are what the document shows."""
    text = (project / "docs" / "guide" / f"{page}.md").read_text()
    monkeypatch.chdir(tmp_path)
    for content, name in re.findall(r"^```text\n(# (\S+\.txt)\n.*?)```", text, re.M | re.S):
        Path(name).write_text(content)
    blocks = re.findall(r"```console\n\$ flashbed (.*?[^\\])\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 3
    for command, printed in blocks:
        status, out, _ = run(*shlex.split(command.replace("\\\n", " ")))
        assert status == 0, command
        given = iter(out.rstrip().splitlines())
        left_out = False
        for line in printed.rstrip().splitlines():
            if line == "...":
                left_out = True
            elif left_out:
                assert line in given, line  # takes what comes before it as well
                left_out = False
            else:
                assert line == next(given), command
        assert left_out or next(given, None) is None


def test_another_program_of_the_same_name_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    """A program was changed, and its years were still those of the runs that aged the old one."""
    monkeypatch.chdir(tmp_path)
    on = ("--set", "partition.blocks=64", "--rate", "1/h", "--format", "json")

    def years(name: str, size: int) -> float:
        writes = "".join(
            f"write 0 {n * size} {size} {n} 60\nfsync 0\npause 1000000000\n" for n in range(30)
        )
        Path(name).write_text(f"flashbed-ops 1\nopen 0 log wo,create,append\n{writes}close 0\n")
        status, out, err = run("lifetime", name, *on)
        assert status == 0, err
        return float(json.loads(out)["lifetime"][0]["years"]["low"])

    before, after = years("one.ops", 80), years("one.ops", 8000)
    assert after < before
    assert after == pytest.approx(years("other.ops", 8000), rel=0.2)
