"""The program as a user meets it, on targets that make their numbers up."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import polars as pl
import pytest

from flashbed.cli import GROUPS, app
from tests.layers.plan.test_study import CLAIM, STUDY
from tests.smoke.conftest import Run
from tests.support import PROJECT
from tests.support.fake import FakeTarget

Fakes = dict[str, FakeTarget]


def test_run_keeps_tables_that_table_prints(small: Path, fakes: Fakes, run: Run) -> None:
    status, out, err = run("run", "one", "--on", "sim,emulator", "--out", "r")
    assert status == 0
    assert "\nr\n" in out
    assert "small/one on sim: 96 cases measured" in err
    status, out, _ = run("table", "r", "cases", "--format", "json")
    assert status == 0
    rows = json.loads(out)
    assert len(rows) == 96 + 32
    assert rows[0]["case_id"] == "jffs2-omap3evm-2.6.37-sequential-8x4096-of-524288-ra0-s1"
    assert rows[0]["energy_cpu_nj"] == round(rows[0]["time_ns"] * 0.223)
    assert rows[-1]["fs"] == "ubifs"
    assert rows[-1]["energy_cpu_nj"] is None  # the board's profile has none of it
    assert run("table", "r", "requests")[1].startswith("case_id,target,seq,op,file,")


def test_an_experiment_can_keep_no_row_for_each_operation(
    small: Path, fakes: Fakes, run: Run
) -> None:
    text = (small / "experiments/small/one.toml").read_text()
    (small / "experiments/small/one.toml").write_text(
        text.split("[measures]")[0].replace("open_measured", 'omit = ["requests"]\nopen_measured')
    )
    assert run("run", "one", "--set", "requests=8", "--out", "r")[0] == 0
    status, out, err = run("table", "r", "requests")
    assert (status, out) == (2, "")
    assert "requests was not recorded" in err
    assert json.loads(run("table", "r", "cases", "--format", "json")[1])[0]["flash_reads"] > 0


def test_the_default_target_is_the_simulator(small: Path, fakes: Fakes, run: Run) -> None:
    status, out, _ = run("run", "one", "--set", "requests=8")
    assert status == 0
    assert "\nresults/small/one\n" in out
    assert fakes["emulator"].ran == []


def test_one_case_runs_alone(small: Path, fakes: Fakes, run: Run) -> None:
    case = "jffs2-emulated-6.1-sequential-8x4096-of-524288-ra128-s1"
    arguments = ["run", "one", "--on", "emulator", "--case", case, "--trace", "flash", "--out", "r"]
    assert run(*arguments)[0] == 0
    assert fakes["emulator"].ran == [case]
    assert len(run("table", "r", "flash")[1].splitlines()) == 2


def test_a_run_ends_with_what_it_compared_and_the_next_commands(
    small: Path, fakes: Fakes, run: Run
) -> None:
    _, out, _ = run("run", "one", "--set", "kernel=6.1", "--out", "a b")
    lines = out.splitlines()
    assert "each row adds up the same" in lines[0]
    assert lines[1].split()[:2] == ["fs", "read_ahead_kib"]
    assert len(lines) == 3 + 4 + 3  # title, head, rule; two file systems, two windows; what is next
    assert lines[-2:] == [
        "next: flashbed report 'a b'", "      flashbed table 'a b' cases --format csv",
    ]  # fmt: skip


def test_the_answer_for_a_program_has_the_rows_of_the_table(
    small: Path, fakes: Fakes, run: Run
) -> None:
    status, out, _ = run("run", "one", "--set", "kernel=6.1", "--out", "r", "--format", "json")
    found = json.loads(out)
    assert (status, found["directory"], found["rows_left_out"]) == (0, "r", 0)
    assert [row["fs"] for row in found["rows"]].count("jffs2") == 2
    times = [row["time_ns"] for row in found["rows"]]
    assert times == sorted(times)
    assert run("run", "one", "--format", "xml")[0] == 2


def test_a_table_is_narrowed_and_laid_out(small: Path, fakes: Fakes, run: Run) -> None:
    run("run", "one", "--set", "kernel=6.1", "--out", "r")
    arguments = ["table", "r", "cases", "--where", "fs=jffs2", "--columns", "requests,time_ns"]
    _, out, _ = run(*arguments, "--sort=-time_ns")
    header, first, *_ = out.splitlines()
    assert header == "requests,time_ns"
    assert int(first.split(",")[0]) > 8
    _, out, _ = run(*arguments, "--format", "text")
    assert out.splitlines()[0].split() == ["requests", "time_ns"]
    assert out.splitlines()[2].split()[2] in ("us", "ms", "s")
    assert run("table", "r", "cases", "--where", "colour=red")[0] == 2


def test_parquet_goes_to_a_pipe(
    small: Path, fakes: Fakes, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("run", "one", "--out", "r")
    raw = io.BytesIO()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", io.TextIOWrapper(raw))
        run("table", "r", "cases", "--format", "parquet")
        assert pl.read_parquet(io.BytesIO(raw.getvalue())).height == 96


def test_list_names_experiments_and_their_cases(small: Path, run: Run) -> None:
    status, out, _ = run("list")
    assert status == 0
    assert "small/one  Small" in out
    assert "cases: 96 on sim, 32 on emulator" in out


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("boards", "omap3evm  Mistral omap3evm"), ("chips", "pages of 2048 + 64 B"),
        ("kernels", "6.1  on sim, uml, emulator"), ("workloads", "postmark  patterns: creation"),
        ("axes", "fs  file system, or the partition itself"),
    ],
)  # fmt: skip
def test_list_names_what_experiments_are_made_of(
    small: Path, run: Run, what: str, line: str
) -> None:
    status, out, _ = run("list", what)
    assert status == 0
    assert line in out


def test_reproduce_prints_claims_and_agreement(small: Path, fakes: Fakes, run: Run) -> None:
    status, out, _ = run("reproduce", "small", "--format", "json")
    assert status == 0
    result = json.loads(out)
    assert set(result) == {"claims", "agreement"}
    keys = "id item text source published sim uml emulator verdict_sim verdict_uml verdict_emulator"
    always, sometimes = keys.split(), {"intervals", "differs"}
    for claim in result["claims"]:
        assert list(claim)[: len(always)] == always
        assert set(claim) - set(always) <= sometimes
    keys = (
        "target case_id flash_reads_error_pct flash_programs_error_pct flash_erases_error_pct"
        " flash_time_error_pct time_error_pct"
    )
    assert all(list(row) == keys.split() for row in result["agreement"])
    assert len(result["agreement"]) == 32
    assert {claim["verdict_emulator"] for claim in result["claims"]} > {"not measured", "agrees"}
    assert Path("results/small/report.html").is_file()


def test_reproduce_goes_on_without_the_emulator(small: Path, fakes: Fakes, run: Run) -> None:
    fakes["emulator"].unavailable = "qemu-system-arm is missing: apt-get install qemu-system-arm"
    status, out, err = run("reproduce", "small", "--on", "sim,emulator")
    assert status == 0
    assert out.splitlines()[-1] == "results/small/report.html"
    assert "flashbed: emulator not measured: qemu-system-arm is missing: apt-get" in err
    _, out, _ = run("reproduce", "small", "--format", "json")
    claims = json.loads(out)["claims"]
    assert {claim["verdict_emulator"] for claim in claims} == {"not measured"}
    assert run("run", "one", "--on", "emulator", "--out", "r")[0] == 1


def test_report_is_made_of_what_is_there(small: Path, fakes: Fakes, run: Run) -> None:
    run("run", "one", "--set", "kernel=2.6.37", "--out", "r")
    assert run("report", "r") == (0, "r/report.html\n", "")
    assert "No real kernel was measured" in Path("r/report.html").read_text()


def test_report_of_a_studys_folder_is_the_one_that_reproduce_wrote(
    small: Path, fakes: Fakes, run: Run
) -> None:
    """`make report` adds a kernel's cases to a study, and writes its report again."""
    (small / "experiments" / "small.toml").write_text(STUDY)
    file = small / "experiments" / "small" / "one.toml"
    text = file.read_text()
    file.write_text(text[: text.index("[[claim]]")] + CLAIM)
    run("reproduce", "small", "--on", "sim")
    before = Path("results/small/report.html").read_bytes()
    assert b"A paper" in before
    assert run("report", "results/small") == (0, "results/small/report.html\n", "")
    assert Path("results/small/report.html").read_bytes() == before


def test_reproduce_and_report_write_the_page_of_all_results(
    small: Path, fakes: Fakes, run: Run
) -> None:
    assert run("report") == (2, "", "flashbed: results: holds no results; start with"
                             " `flashbed run figure3`\n")  # fmt: skip
    _, _, err = run("reproduce", "small", "--on", "sim")
    assert "all results on one page: results/index.html" in err
    before = Path("results/index.html").read_text()
    _, out, _ = run("run", "one", "--out", "results/mine")
    assert out.splitlines()[-1].strip().startswith("flashbed report    # all results")
    assert run("report") == (0, "results/index.html\n", "")
    assert Path("results/index.html").read_text() != before
    assert run("report", "--out", "all.html") == (0, "all.html\n", "")


def test_a_target_that_adds_to_a_study_leaves_the_others_in_its_report(
    small: Path, fakes: Fakes, run: Run
) -> None:
    """`make report` reproduces on the simulator, and then on a real kernel only."""
    run("reproduce", "small", "--on", "sim")
    status, _, _ = run("reproduce", "small", "--on", "emulator")
    assert status == 0
    text = Path("results/small/report.html").read_text()
    assert "the simulated stack" in text
    assert "the emulated board" in text


def test_report_takes_the_folder_that_reproduce_leaves(small: Path, fakes: Fakes, run: Run) -> None:
    run("reproduce", "small", "--on", "sim", "--out", "all")
    assert run("report", "all", "--out", "again.html") == (0, "again.html\n", "")
    assert Path("again.html").read_bytes() == Path("all/report.html").read_bytes()
    Path("empty").mkdir()
    status, _, err = run("report", "empty")
    assert (status, err) == (2, "flashbed: empty: not the result of a run (no run.json)\n")


def test_a_failed_case_is_one_line_and_exit_1(small: Path, fakes: Fakes, run: Run) -> None:
    bad = "jffs2-emulated-6.1-sequential-8x4096-of-524288-ra0-s1"
    fakes["sim"].fails = {bad}
    status, _, err = run("run", "one", "--out", "r")
    assert status == 1
    assert f"flashbed: sim: case {bad}: no space left on device\n" in err
    assert len(json.loads(run("table", "r", "cases", "--format", "json")[1])) == 95


def test_an_interrupt_leaves_whole_results(small: Path, fakes: Fakes, run: Run) -> None:
    fakes["sim"].interrupt_after = 12
    status, _, err = run("run", "one", "--out", "r")
    assert status == 130
    assert err == (
        "flashbed: interrupted; finished cases are kept, the same command continues after them\n"
    )
    assert len(json.loads(run("table", "r", "cases", "--format", "json")[1])) == 12
    fakes["sim"].interrupt_after = None
    status, _, err = run("run", "one", "--out", "r")
    assert (status, err) == (0, "small/one on sim: 84 cases measured, 12 were there\n")


@pytest.mark.parametrize("what", ["experiments", "boards", "chips", "kernels"])
def test_an_unfinished_file_does_not_break_a_list(small: Path, run: Run, what: str) -> None:
    """One board whose file was begun ended `list boards` after the boards before it."""
    good = run("list", what)[1]
    for file in ("boards/a-half", "boards/kernels/0.0", "experiments/small/a-half"):
        (small / f"{file}.toml").write_text("[board]\n")
    (small / "boards" / "no-toml.toml").write_text("[board")
    status, out, err = run("list", what)
    assert (status, out) == (0, good)
    assert all(line.startswith("flashbed: left out: ") for line in err.splitlines())
    assert ".toml: " in err


@pytest.mark.extension
def test_a_file_of_operations_stands_for_an_experiment(small: Path, run: Run) -> None:
    Path("my.ops").write_text("flashbed-ops 1\nopen 0 a wo,create\nwrite 0 0 9 1 0\nclose 0\n")
    status, out, _ = run("run", "my.ops", "--set", "fs=jffs2,ubifs")
    assert status == 0
    assert out.startswith("2 configurations doing the same work")
    assert "results/operations/my\n" in out
    Path("my.ops").write_text("flashbed-ops 1\nopen 0 a\n")
    status, out, err = run("run", "my.ops")
    assert (status, out) == (2, "")
    assert err.startswith("flashbed: my.ops:2: wrong-arguments")


MAPPED = """flashbed-ops 2
open 0 a rw,create
truncate 0 8192
mmap 0 0 0 8192 rw
store 0 0 4096 1 0
munmap 0
fsync 0
close 0
"""


@pytest.mark.extension
def test_every_answer_tells_of_failed_calls(small: Path, run: Run) -> None:
    """JFFS2 has no shared mappings that can be written to, so SQLite's WAL cannot run on it.

    It got a time, a place in the ranking, a lifetime and "62 of 62 cuts recovered".
    """
    told = "3 calls failed (EINVAL 2, EFAULT 1)"
    Path("wal.ops").write_text(MAPPED)
    out = run("run", "wal.ops", "--set", "fs=jffs2,ubifs", "--out", "r")[1]
    assert out.startswith("1 of 2 configurations did the same work")
    assert f"WARNING: {told}" in out
    lines = out.splitlines()
    assert [line.split()[:2] for line in lines[3:5]] == [["ubifs", "0"], ["jffs2", "3"]]
    (ubifs, jffs2) = json.loads(
        run("run", "wal.ops", "--set", "fs=jffs2,ubifs", "--out", "r", "--format", "json")[1]
    )["rows"]
    assert (ubifs["failed"], jffs2["failed"]) == (0, 3)
    run("report", "r")
    assert f"WARNING: {told}" in Path("r/report.html").read_text()
    cut = ("powercut", "wal.ops", "--on", "sim", "--set", "fs=jffs2", "--samples", "2")
    _, out, _ = run(*cut, "--out", "c")
    assert f"{told}: what was cut is less than the program's work" in out
    (failed,) = json.loads(run(*cut, "--out", "c", "--format", "json")[1])["failed"].values()
    assert failed == told


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("run nothing", "no experiment 'nothing'; there are small/one"),
        ("run ./gone.toml", "gone.toml: no such file"),
        ("run gone.rec", "gone.rec: no such file"),
        ("run gone.ops", "gone.ops: no such file"),
        ("run boards.txt", "boards.txt: no recording, no file of operations and no experiment"),
        ("run .", ".: a folder, and no recording"),
        ("run sh", "no experiment 'sh'; there are small/one; `flashbed exec -- sh` runs a program"),
        ("run -- sh -c true", "`flashbed exec -- sh -c true` runs a program"),
        ("run", "Missing argument"),
        ("walk", "No such command"),
        ("run one --on moon", "--on moon: no such target; there are sim, sim-chip, uml, emulator"),
        ("run one --set fs=ext4", "--set fs=ext4: not in small/one: jffs2, ubifs, yaffs2"),
        ("run one --set fs=yaffs2 --on emulator", "none of the chosen cases of small/one runs"),
        ("run one --case jffs3", "--case jffs3: no such case in small/one"),
        ("run one --trace disk", "must be flash, wear, waits"),
        ("run one --out boards.txt/x", "boards.txt/x: Not a directory"),
        ("table nowhere cases", "nowhere: not the result of a run"),
        ("table nowhere cases --format xml", "--format xml: text, json, csv or parquet"),
        ("report nowhere", "nowhere: not the result of a run"),
        ("reproduce nothing", "no study 'nothing'; there are small"),
        ("doctor --format xml", "--format xml: text or json"),
        (
            "powercut one --on moon",
            "--on moon: no such target; there are sim, sim-chip, uml, emulator",
        ),
        ("powercut one --on sim --chip reset", "--chip: the simulator's chip has no driver that"),
        ("powercut one --on uml", "--on uml: none of the chosen cases of small/one runs on it"),
        ("powercut one --on emulator --case x", "--case x: no such case of small/one on emulator"),
        ("powercut one --on emulator --step 2 --samples 3", "--step and --samples: one of them"),
        ("powercut one --on emulator --format xml", "--format xml: text or json"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    small: Path, fakes: Fakes, run: Run, arguments: str, says: str
) -> None:
    Path("boards.txt").write_text("a file")
    status, out, err = run(*arguments.split())
    assert (status, out) == (2, "")
    assert says in err
    assert err.startswith("flashbed: ")
    assert err.count("\n") == 1


CUT = ("powercut", "one", "--on", "emulator", "--set", "fs=jffs2", "--set", "requests=8",
       "--set", "pattern=sequential", "--set", "read_ahead_kib=0", "--set", "seed=1")  # fmt: skip


def test_powercut_says_what_recovered(small: Path, fakes: Fakes, run: Run) -> None:
    fakes["emulator"].changes = 9
    status, out, _ = run(*CUT, "--step", "2", "--out", "r")
    assert status == 0
    assert ": 5 of 5 cuts recovered\n  mounted in 0.0 / 0.0 / 0.0 ms (min / median / max)\n" in out
    rows = json.loads(run("table", "r", "power_cuts", "--format", "json")[1])
    assert [row["change"] for row in rows] == [1, 3, 5, 7, 9]
    assert {row["target"] for row in rows} == {"emulator"}
    ran = len(fakes["emulator"].ran)
    assert run(*CUT, "--step", "2", "--out", "r")[0] == 0
    assert len(fakes["emulator"].ran) == ran, "what is there is not run again"
    assert run(*CUT, "--step", "3", "--out", "r")[0] == 0
    assert len(fakes["emulator"].ran) == ran + 2
    assert run("report", "r")[0] == 0
    assert "Power cuts" in Path("r/report.html").read_text()


def test_a_cut_that_did_not_recover_is_exit_1(small: Path, fakes: Fakes, run: Run) -> None:
    fakes["emulator"].changes = 9
    fakes["emulator"].bad_change = 4
    status, out, err = run(*CUT, "--samples", "50", "--format", "json", "--out", "r")
    assert (status, err) == (1, "flashbed: 1 of 9 cuts did not recover\n")
    (row,) = json.loads(out)["cases"]
    assert (row["cuts"], row["recovered"], row["not_mounted"]) == (9, 8, 1)
    assert row["first_bad"][0]["reason"].startswith("mounting: EUCLEAN")


def test_a_bad_profile_is_named(small: Path, fakes: Fakes, run: Run) -> None:
    file = small / "boards" / "omap3evm.toml"
    file.write_text(file.read_text().replace("erase_array_ns", "erase_aray_ns"))
    status, _, err = run("run", "one")
    assert status == 2
    assert (
        "boards/omap3evm.toml: chip.erase_aray_ns: unknown key, erase_array_ns is meant?\n" in err
    )


def test_doctor_says_what_is_there_and_how_to_get_the_rest(run: Run) -> None:
    status, out, _ = run("doctor", "--format", "json")
    assert status == 0
    checks = {check["name"]: check for check in json.loads(out)["checks"]}
    assert {"python", "simulator", "qemu-system-arm", "agent (armv7)"} <= set(checks)
    assert checks["python"]["found"]
    assert all(check["how"] for check in checks.values())
    assert run("doctor")[1].startswith("ok       python: 3.")


def test_a_profile_is_begun_in_the_working_folder(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had gone into the folder of the shipped boards, in a wheel into the package."""
    monkeypatch.delenv("FLASHBED_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    assert run("board", "new", "mine", "--blank")[:2] == (0, "boards/mine.toml\n")
    assert (tmp_path / "boards" / "mine.toml").is_file()
    assert run("board", "new", "mine", "--blank")[0] == 2
    assert run("board", "new", "emulated", "--blank")[0] == 2  # a name that is taken
    assert not (tmp_path / "boards" / "emulated.toml").exists()


def test_a_profile_takes_the_prices_of_a_known_board(small: Path, run: Run) -> None:
    words = ("board", "new", "mine", "--blank")
    assert run(*words, "--like", "omap3evm", "--mhz", "528")[0] == 0
    table = tomllib.loads((small / "boards" / "mine.toml").read_text())
    assert table["software"]["syscall_ns"] == round(1_500 * 720 / 528)
    for wrong in (("--like", "omap3evm"), ("--mhz", "528"), ("--like", "omap3evm", "--mhz", "0")):
        status, _, err = run("board", "new", "other", "--blank", *wrong)
        assert (status, err.count("\n")) == (2, 1), wrong
    assert not (small / "boards" / "other.toml").exists()


def test_a_profile_is_begun_without_a_board(small: Path, fakes: Fakes, run: Run) -> None:
    status, out, _ = run("board", "new", "mine", "--blank")
    assert (status, out) == (0, "project/boards/mine.toml\n")
    path = small / "boards" / "mine.toml"
    blanks = re.findall(r'^(?!source)\w+ = "\?"', path.read_text(), re.MULTILINE)
    status, _, err = run("run", "one", "--set", "board=mine")
    assert status == 2
    assert err.count("boards/mine.toml: ") == len(blanks) > 10
    assert run("board", "new", "mine", "--blank")[0] == 2  # it is there
    known = tomllib.loads((PROJECT / "boards" / "emulated.toml").read_text())
    lines, table = [], ""
    for line in path.read_text().splitlines():
        table = line.strip("[]") if line.startswith("[") else table
        key = line.split(" = ")[0]
        is_blank = '= "?"' in line
        lines.append(f"{key} = {json.dumps(known[table].get(key, 4))}" if is_blank else line)
    path.write_text("\n".join(lines))
    few = ("--set", "fs=jffs2", "--set", "requests=8", "--set", "board=mine")
    assert run("run", "one", *few, "--out", "r")[0] == 0


def _shown_commands() -> list[tuple[str, ...]]:
    """Every command that help shows, with those of groups."""
    found: list[tuple[str, ...]] = [
        (str(command.name),) for command in app.registered_commands if not command.hidden
    ]
    for group in app.registered_groups:
        if not group.hidden:
            within = group.typer_instance.registered_commands if group.typer_instance else []
            found += [(str(group.name), str(command.name)) for command in within]
    return found


@pytest.mark.parametrize("command", _shown_commands(), ids=" ".join)
def test_help_has_examples(command: tuple[str, ...], run: Run) -> None:
    status, out, _ = run(*command, "--help")
    assert status == 0
    examples = " ".join(out.split("Example", 1)[1].split())
    assert f"flashbed {' '.join(command)}" in examples


def test_every_command_has_its_place_in_the_help(run: Run) -> None:
    shown = {command[0] for command in _shown_commands()}
    assert shown == {name for names in GROUPS.values() for name in names}
    out = run("--help")[1]
    at = [out.index(f"─ {group} ─") for group in GROUPS if group != "Your parts"]
    assert at == sorted(at)


def test_a_time_that_no_chip_has_is_said_and_measured(small: Path, fakes: Fakes, run: Run) -> None:
    few = ("--set", "fs=jffs2", "--set", "requests=8", "--set", "chip.program_array_ns=250")
    status, _, err = run("run", "one", *few, "--out", "r")
    assert status == 0
    lines = [line for line in err.splitlines() if line.startswith("flashbed: WARNING: ")]
    assert lines == [
        f"flashbed: WARNING: project/boards/{board}.toml: chip.program_array_ns = 250:"
        " NAND takes 50_000 to 10_000_000 ns; is 250_000 meant?"
        for board in ("omap3evm", "emulated")
    ]


def test_the_shell_completes_commands_and_options() -> None:
    program = Path(sys.executable).with_name("flashbed")
    for words, at, found in (("re", 1, "record report reproduce"), ("run --se", 2, "--set")):
        done = subprocess.run(
            [program], capture_output=True, text=True, check=True,
            env={**os.environ, "_FLASHBED_COMPLETE": "complete_bash",
                 "COMP_WORDS": f"flashbed {words}", "COMP_CWORD": str(at)},
        )  # fmt: skip
        assert done.stdout.split() == found.split()


def test_calibrate_needs_a_board_that_is_there(small: Path, fakes: Fakes, run: Run) -> None:
    assert run("calibrate", "emulated", "--on", "sim")[0] == 2
    assert run("calibrate", "nothing")[0] == 2
    fakes["emulator"].unavailable = "qemu-system-arm is missing: apt-get"
    assert run("calibrate", "emulated") == (
        1,
        "",
        "flashbed: emulator: qemu-system-arm is missing: apt-get\n",
    )


def test_the_version_is_printed(run: Run) -> None:
    assert run("--version")[:2] == (0, "flashbed 0.1.0\n")


def test_help_loads_no_tables() -> None:
    """What only some commands need is loaded by them: polars alone took a quarter of the time."""
    program = "import sys, flashbed.cli; sys.exit('polars' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_exec_starts_its_kernel_before_tables_are_loaded() -> None:
    """They take 0.3 s of the second in which a program is to run its first instruction."""
    program = (
        "import sys, flashbed.cli, flashbed.api.executing, flashbed.api.exec_options\n"
        "sys.exit(not {'numpy', 'polars'}.isdisjoint(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_an_interrupt_while_the_program_starts_is_quiet() -> None:
    """It was a traceback through the imports."""
    code = (
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'flashbed.cli': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from flashbed.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "list"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
