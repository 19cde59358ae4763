"""The fuzz: programs are valid and reproducible, the oracle is Linux, a planted bug is found."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from flashbed import cli
from flashbed.base.errors import InputError
from flashbed.bench.fuzz.bench import Bench
from flashbed.bench.fuzz.campaign import CampaignPlan, Report, fuzz
from flashbed.bench.fuzz.differences import (
    Difference,
    FlashOp,
    FuzzOutcome,
    FuzzRow,
    first_difference,
)
from flashbed.bench.fuzz.generator import CLASSES, LEFT_OUT, generate
from flashbed.bench.fuzz.oracle import Expected, MemoryFs, expected_of
from flashbed.bench.fuzz.program import MARK, FuzzCase, repaired
from flashbed.bench.fuzz.report import block, summary
from flashbed.bench.fuzz.shrink import Budget, Shrunk, shrink
from flashbed.program.content import generated
from flashbed.program.operations import HEADER, Operation, canonical, parse
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.targets.guest import yaffs2
from flashbed.targets.guest.requirements import Requirement
from tests.layers.agent.test_agent import generated as byte_by_byte
from tests.support import PROJECT
from tests.support.fuzz_fake import (
    Bug,
    OracleTarget,
    misreads_above,
    no_bug,
    wrong_bytes,
    wrong_result,
)

AGENT = PROJECT / "build" / "agent" / "flashbed-agent-host"
SEEDS = range(60)


def bench(bug: Bug = no_bug, **real: object) -> Bench:
    sim = OracleTarget("sim", contents=False)
    kernel = OracleTarget("uml", bug)
    for name, value in real.items():
        setattr(kernel, name, value)
    return Bench(sim, kernel, load_board("emulated"), load_kernel("6.1"))


def silent(_what: str, _done: int, _total: int | None = None) -> None:
    """No progress is shown."""


def ran(plan: CampaignPlan, on: Bench) -> Report:
    report = Report(plan=plan)
    fuzz(plan, on, report=report, progress=silent, stopped=lambda: False)
    return report


def case_of(prepare: str, body: str) -> FuzzCase:
    parts = [tuple(parse(f"{HEADER}\n{text}")) for text in (prepare, body)]
    return FuzzCase(case_id="one", fs="jffs2", read_ahead_kib=128, prepare=parts[0], body=parts[1])


# The generator.


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_makes_one_valid_program(kind: str, seed: int) -> None:
    case = generate(kind, "jffs2", seed)
    assert case == generate(kind, "jffs2", seed)
    assert case.case_id == f"fuzz-{kind}-jffs2-{seed}"
    assert canonical(parse(case.text), case.text.split("\n", 1)[0]) == case.text
    program = case.program(load_board("emulated"), load_kernel("6.1"))
    assert [*parse(program.prepare)][-1].name == "prepared"
    assert parse(program.body).count(MARK) == 1
    assert case.measured
    if kind != "cutcalls":  # the oracle leaves links and mapped files out; powercut judges these
        expected = expected_of(case)
        assert expected is not None
        assert len(expected) == len(case.measured)
    assert case.text.count("\n") < 300


def test_file_systems_and_seeds_have_programs_of_their_own() -> None:
    texts = {generate(k, fs, s).text for k in CLASSES for fs in ("jffs2", "ubifs") for s in SEEDS}
    assert len(texts) == len(CLASSES) * 2 * len(SEEDS)


def test_four_reads_programs_share_a_preparation() -> None:
    prepared = [generate("reads", "ubifs", seed).prepare for seed in range(8)]
    assert len(set(prepared)) == 2
    assert len(set(prepared[:4])) == len(set(prepared[4:])) == 1


def test_some_ubifs_programs_are_mounted_with_bulk_read_and_do_the_same() -> None:
    seeds = range(80)
    for kind in ("reads", "any", "faults"):
        bulk = [generate(kind, "ubifs", seed).bulk_read for seed in seeds]
        assert 10 < sum(bulk) < 50
        for seed in seeds:
            without = generate(kind, "ubifs", seed, ("bulk-read",))
            assert not without.bulk_read
            assert without.text == generate(kind, "ubifs", seed).text
    assert not any(generate(kind, "jffs2", seed).bulk_read for kind in CLASSES for seed in seeds)


def test_reads_write_nothing_after_the_mark() -> None:
    changing = {"write", "truncate", "unlink", "rmdir", "rename", "mkdir", "remount"}
    for seed in SEEDS:
        measured = generate("reads", "jffs2", seed).measured
        assert changing.isdisjoint(operation.name for operation in measured)
        assert not any("create" in str(op.fields[2]) for op in measured if op.name == "open")


def test_every_operation_a_file_system_knows_comes_up() -> None:
    names = {op.name for seed in range(200) for op in generate("any", "ubifs", seed).measured}
    assert names == {
        "mkdir", "open", "close", "read", "write", "fsync", "fdatasync", "truncate", "fadvise",
        "unlink", "rmdir", "rename", "sync", "drop_caches", "remount", "pause",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["truncate", "remount", "rename", "fsync", "drop_caches", "mkdir"])
def test_what_is_left_out_is_in_no_program(name: str) -> None:
    for kind in CLASSES:
        for seed in SEEDS:
            assert name not in {op.name for op in generate(kind, "ubifs", seed, (name,)).measured}


def test_compressible_data_can_be_left_out() -> None:
    def compressed(without: tuple[str, ...]) -> bool:
        cases = [generate("any", "ubifs", seed, without) for seed in SEEDS]
        return any(op.fields[4] for case in cases for op in case.measured if op.name == "write")

    assert compressed(())
    assert not compressed(("compressible",))


def test_a_name_there_is_not_is_refused() -> None:
    with pytest.raises(InputError, match="--class writes"):
        generate("writes", "jffs2", 0)
    with pytest.raises(InputError, match="--without seek: there are"):
        generate("any", "jffs2", 0, ("seek",))
    assert "remount" in LEFT_OUT


def test_whatever_is_taken_out_slots_are_put_right() -> None:
    case = generate("any", "jffs2", 5)
    lines = [op for op in case.body if op != MARK]
    for step in (2, 3, 5):
        for start in range(step):
            kept = repaired(lines[start::step], close=True)
            assert canonical(parse(canonical((*kept, Operation("prepared")))))


def test_recorded_bytes_stay_above_their_write() -> None:
    """They were dropped from every recording with contents, also from the one of seed 0."""
    lines = parse("flashbed-ops 2\nopen 0 a rw,create\ndata YWJj\nwrite 0 0 3 0 data\nclose 0\n")
    assert repaired(lines, close=True) == tuple(lines)


# The oracle.


@pytest.mark.parametrize("compressibility", [0, 1, 50, 100])
@pytest.mark.parametrize(("offset", "length"), [(0, 1), (7, 2), (60, 70), (4095, 4098), (2**40, 9)])
def test_generated_bytes_are_those_of_the_format(
    offset: int, length: int, compressibility: int
) -> None:
    expected = byte_by_byte(offset, length, 2**63 - 1, compressibility)
    assert generated(offset, length, 2**63 - 1, compressibility).tobytes() == expected


@pytest.mark.skipif(not AGENT.is_file(), reason="the agent is not built; make build")
@pytest.mark.parametrize("part", range(10))
def test_the_oracle_answers_as_the_file_system_of_this_machine(part: int, tmp_path: Path) -> None:
    """Results and bytes of whole programs; what would wait or needs root is taken out."""
    left_out = ("pause", "drop_caches", "remount", "sync")
    for seed in range(part * 20, part * 20 + 20):
        case = generate("any", "jffs2", seed)
        lines = [op for op in (*case.prepare, MARK, *case.measured) if op.name not in left_out]
        measured = lines[lines.index(MARK) + 1 :]
        fs = MemoryFs()
        for operation in lines[: lines.index(MARK)]:
            fs.execute(operation)
        expected = [fs.execute(operation) for operation in measured]
        file, folder = tmp_path / f"{seed}.ops", tmp_path / str(seed)
        file.write_text(canonical(lines))
        folder.mkdir()
        command = [str(AGENT), "run", str(file), "--dir", str(folder), "--contents"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        for operation, wanted, row in zip(
            measured, expected, done.stdout.splitlines(), strict=True
        ):
            fields = row.split()
            content = None if fields[7] == "-" else int(fields[7])
            assert (wanted.result, wanted.content_crc32) == (int(fields[5]), content), operation


def test_what_is_read_is_what_was_written_last() -> None:
    fs = MemoryFs()
    for line in ("open 0 a rw,create", "write 0 0 100 1 0", "write 0 150 10 2 0"):
        fs.execute(parse_one(line))
    first, last = generated(0, 100, 1, 0).tobytes(), generated(150, 10, 2, 0).tobytes()
    content = first + bytes(50) + last
    assert fs.execute(Operation("read", (0, 0, 4096))) == Expected(160, zlib.crc32(content))
    assert fs.execute(Operation("read", (0, 160, 1))) == Expected(0, 0)
    assert fs.sizes() == {"a": 160}


def parse_one(line: str) -> Operation:
    """An operation by itself, whatever its slot."""
    opened = [] if line.startswith(("open", "mkdir")) else ["open 0 x ro"]
    return parse("\n".join([HEADER, *opened, line]))[-1]


def test_a_preparation_that_fails_has_no_answers() -> None:
    assert expected_of(case_of("unlink a", "mark\nsync")) is None


def test_the_oracle_takes_from_the_kernel_that_there_was_no_room() -> None:
    case = case_of(
        "",
        "mark\nopen 0 a rw,create\nwrite 0 0 8192 1 0\nwrite 0 8192 10 1 0\n"
        "open 1 b rw,create\nread 1 0 10\nread 0 0 9000",
    )
    told = expected_of(case, [0, 4096, -28, -28, -9, 4096])
    assert told is not None
    assert [row.result for row in told] == [0, 4096, -28, -28, -9, 4096]
    assert told[-1].content_crc32 == zlib.crc32(generated(0, 4096, 1, 0).tobytes())


def test_half_of_the_full_programs_want_more_room() -> None:
    bodies = [{op.name for op in generate("full", "ubifs", seed).measured} for seed in SEEDS]
    growing = sum("truncate" in names or "unlink" in names for names in bodies)
    assert len(SEEDS) // 4 < growing < len(SEEDS)


# The comparison.

FLASH = FlashOp(start_ns=10, kind="read", page=5, offset_bytes=0, length_bytes=2048, task="a")
CASE = case_of("", "mark\nopen 0 a ro\nread 0 0 10\nsync")
ROWS = (FuzzRow("open", 0, -2, None), FuzzRow("read", 5, -9, None), FuzzRow("sync", 20, 0, None))
EXPECTED = [Expected(-2), Expected(-9), Expected(0)]
SAME = FuzzOutcome(ROWS, (FLASH, replace(FLASH, start_ns=21, page=6)))


def difference(real: FuzzOutcome, sim: FuzzOutcome | None = SAME) -> Difference | None:
    return first_difference(CASE, EXPECTED, real, sim)


def test_alike_is_no_difference_whatever_times_and_tasks_are() -> None:
    other = tuple(replace(op, start_ns=op.start_ns + 3, task="b") for op in SAME.flash)
    assert difference(FuzzOutcome(ROWS, other)) is None
    assert difference(FuzzOutcome(ROWS, ()), None) is None


@pytest.mark.parametrize(
    "change", [{"page": 7}, {"kind": "program"}, {"offset_bytes": 512}, {"length_bytes": 256}]
)
def test_flash_operations_have_to_be_alike_in_order(change: dict[str, object]) -> None:
    second = replace(SAME.flash[1], **change)  # type: ignore[arg-type]
    found = difference(FuzzOutcome(ROWS, (FLASH, second)))
    assert found is not None
    assert (found.kind, found.seq, found.operation) == ("flash", 2, "sync")
    assert (found.left, found.right) == ("read page 6 +0 2048", str(second))
    assert any(line.startswith(">      1  read page 6") for line in found.around)


def test_missing_and_superfluous_flash_operations_are_differences() -> None:
    fewer = difference(FuzzOutcome(ROWS, SAME.flash[:1]))
    assert fewer is not None
    assert fewer.right == "nothing more"
    more = difference(FuzzOutcome(ROWS, (*SAME.flash, FLASH)))
    assert more is not None
    assert more.left == "nothing more"


def test_the_earliest_operation_counts_and_a_result_before_flash() -> None:
    wrong = (*ROWS[:1], replace(ROWS[1], result=10), *ROWS[2:])
    found = difference(FuzzOutcome(wrong, SAME.flash[:1]))
    assert found is not None
    assert (found.kind, found.between, found.seq) == ("result", ("oracle", "kernel"), 1)
    assert (found.left, found.right) == ("-9", "10")
    found = difference(SAME, FuzzOutcome(wrong, SAME.flash))
    assert found is not None
    assert found.between == ("sim", "kernel")
    found = difference(FuzzOutcome(wrong, ()), SAME)
    assert found is not None
    assert found.seq == 1


def test_bytes_are_held_against_the_oracle() -> None:
    expected = [EXPECTED[0], Expected(10, 77), EXPECTED[2]]
    rows = (ROWS[0], FuzzRow("read", 5, 10, 78), ROWS[2])
    found = first_difference(CASE, expected, FuzzOutcome(rows, ()), None)
    assert found is not None
    assert (found.kind, found.left, found.right) == ("contents", "77", "78")
    told = (ROWS[0], FuzzRow("read", 5, 10, 77), ROWS[2])
    assert first_difference(CASE, expected, FuzzOutcome(told, ()), None) is None


def test_a_missing_row_is_a_difference() -> None:
    found = difference(FuzzOutcome(ROWS[:2], SAME.flash))
    assert found is not None
    assert (found.seq, found.right) == (2, "None")


# Making it shorter.


def shortest(bug: Bug, kind: str, budget: Budget | None = None) -> tuple[FuzzCase, Shrunk, Bench]:
    on = bench(bug)
    report = ran(CampaignPlan(kind=kind, file_systems=("jffs2",), cases=40, shrink=False), on)
    found = report.found[0]
    on.real.calls.clear()  # type: ignore[attr-defined]
    shrunk = shrink(
        found.case, found.difference, lambda cases: on.differences(cases, silent), budget
    )
    assert shrunk is not None
    assert shrunk.difference.signature == found.difference.signature
    return found.case, shrunk, on


@pytest.mark.parametrize("bound", [1_000, 5_000])
def test_a_misread_above_a_bound_becomes_a_minimal_program(bound: int) -> None:
    _, shrunk, on = shortest(misreads_above(bound), "reads")
    assert len(shrunk.case.measured) == 2
    assert sum(int(op.fields[2]) for op in shrunk.case.prepare if op.name == "write") == bound + 1
    opened, read = shrunk.case.measured
    assert opened.name == "open"
    assert (read.name, read.fields[1], read.fields[2]) == ("read", 0, bound + 1)
    assert shrunk.case.read_ahead_kib == 0
    assert [op.name for op in shrunk.case.prepare].count("write") == 1
    assert shrunk.calls == len(on.real.calls) <= 40  # type: ignore[attr-defined]
    assert shrunk.runs == sum(on.real.calls)  # type: ignore[attr-defined]


def test_wrong_results_and_wrong_bytes_become_minimal_programs() -> None:
    _, shrunk, _ = shortest(wrong_result, "any")
    assert shrunk.difference.kind == "result"
    assert [op.name for op in shrunk.case.body] == ["mark", "open", "write"]
    assert shrunk.case.measured[-1].fields[1:] == (0, 101, 0, 0)
    _, shrunk, _ = shortest(wrong_bytes, "any")
    assert shrunk.difference.kind == "contents"
    assert shrunk.case.measured[-1].fields[2] == 4097


def test_a_budget_is_kept() -> None:
    whole, shrunk, on = shortest(misreads_above(5_000), "reads", Budget(calls=4, per_call=9))
    assert len(on.real.calls) <= 4  # type: ignore[attr-defined]
    assert max(on.real.calls) <= 9  # type: ignore[attr-defined]
    assert shrunk.case.text.count("\n") <= whole.text.count("\n")
    whole, shrunk, _ = shortest(misreads_above(5_000), "reads", Budget(stopped=lambda: True))
    assert shrunk.case == whole


def test_what_does_not_differ_alone_is_not_made_shorter() -> None:
    case = generate("reads", "jffs2", 1)
    found = Difference(
        kind="flash", between=("sim", "kernel"), seq=0, operation="sync", left="a", right="b"
    )
    assert shrink(case, found, lambda cases: [None] * len(cases)) is None


# A run.


def test_programs_that_are_alike_are_exact() -> None:
    report = ran(
        CampaignPlan(kind="any", file_systems=("jffs2", "ubifs"), seed=7, cases=15, batch=10),
        bench(),
    )
    assert (report.programs, report.exact, report.clean) == (30, 30, True)
    assert report.next_seed == 22


def test_a_planted_difference_ends_the_run_and_is_told() -> None:
    on = bench(misreads_above(5_000))
    report = ran(CampaignPlan(kind="reads", file_systems=("ubifs",), cases=40), on)
    (found,) = report.found
    assert report.programs < 40
    assert not report.clean
    text = block(found, report, "--on uml")
    assert text.startswith(f"{found.case.case_id}: sim and kernel differ in flash operations\n")
    assert "    kernel  read page 999 +0 2048\n" in text
    assert "    sim     nothing more\n" in text
    assert "  the shortest program that shows it, 10 of " in text
    assert "\n    read 0 0 5001                            # 1\n" in text
    seed = found.case.case_id.rpartition("-")[2]
    again = f"again: flashbed fuzz --class reads --set fs=ubifs --seed {seed} --cases 1 --on uml"
    assert text.endswith(again)
    alone = ran(CampaignPlan(kind="reads", file_systems=("ubifs",), seed=int(seed), cases=1), on)
    assert [one.case for one in alone.found] == [found.case]
    assert alone.found[0].shrunk == found.shrunk
    told = json.loads(json.dumps(report.to_json()))
    assert found.shrunk is not None
    assert told["differences"][0]["shortest"]["program"] == found.shrunk.case.text


def test_keep_going_finds_all_and_makes_one_of_a_kind_shorter() -> None:
    report = ran(
        CampaignPlan(kind="reads", file_systems=("jffs2",), cases=40, keep_going=True),
        bench(misreads_above(5_000)),
    )
    assert report.programs == 40
    assert len(report.found) > 3
    assert [found.shrunk is not None for found in report.found].count(True) == 1
    assert "not shortened; as it is" in block(report.found[1], report, "--on uml")


def test_what_the_simulator_refuses_is_counted_and_still_held_against_the_oracle() -> None:
    on = bench()
    on.sim = OracleTarget("sim", refuses=frozenset({"rename", "remount"}), contents=False)
    report = ran(CampaignPlan(kind="any", file_systems=("jffs2",), cases=40), on)
    assert report.clean
    assert set(report.refused) == {"rename", "remount"}
    assert report.exact + sum(report.refused.values()) == 40
    assert "refused: rename: " in summary(report)
    on.real = OracleTarget("uml", wrong_result)
    assert ran(CampaignPlan(kind="any", file_systems=("jffs2",), cases=40, shrink=False), on).found


def test_a_case_that_does_not_run_is_an_error_and_the_others_go_on() -> None:
    on = bench(fails=frozenset({"fuzz-reads-jffs2-3"}))
    report = ran(CampaignPlan(kind="reads", file_systems=("jffs2",), cases=8), on)
    assert report.errors == [("fuzz-reads-jffs2-3", "uml: the guest died")]
    assert (report.exact, report.clean) == (7, False)
    assert "did not run: fuzz-reads-jffs2-3: uml: the guest died" in summary(report)


def test_a_run_without_an_end_stops_when_it_is_told() -> None:
    plan = CampaignPlan(kind="reads", file_systems=("jffs2", "ubifs"), cases=None, batch=10)
    report = Report(plan=plan)
    fuzz(plan, bench(), report=report, progress=silent, stopped=lambda: report.programs >= 25)
    assert report.programs == 25
    assert report.next_seed == 10


# The command.


def command(
    monkeypatch: pytest.MonkeyPatch, real: OracleTarget, *arguments: str
) -> int | str | None:
    targets = {"sim": OracleTarget("sim", contents=False), "uml": real}
    monkeypatch.setattr("flashbed.targets.load_target", lambda name: targets[name])
    monkeypatch.setattr(sys, "argv", ["flashbed", "fuzz", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


@pytest.mark.parametrize(("kind", "there", "tried"), [
    ("any", True, "jffs2, yaffs2, ubifs"), ("any", False, "jffs2, ubifs"),
    ("full", True, "jffs2, ubifs"),
])  # fmt: skip
def test_yaffs2_is_tried_where_its_core_is(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    there: bool,
    tried: str,
) -> None:
    found = Requirement("YAFFS2's core", there, "", "")
    monkeypatch.setattr(yaffs2, "core_found", lambda: found)
    command(monkeypatch, OracleTarget("uml"), "--class", kind, "--cases", "1")
    assert f"class {kind} on {tried}, seeds" in capsys.readouterr().out


def test_the_command_ends_with_1_for_a_difference_and_0_for_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    both = ("--set", "fs=jffs2,ubifs", "--cases", "5", "--seed", "3")
    assert command(monkeypatch, OracleTarget("uml"), *both) == 0
    out = capsys.readouterr().out
    assert out == (
        "10 programs of class reads on jffs2, ubifs, seeds from 3: 10 exact, 0 differing,"
        " 0 refused by the simulator, 0 that did not run\n"
        "  page writes and erases: as many in 10 of 10, within 2% in 10;"
        " page reads: within 1% in 10\n"
    )
    real = OracleTarget("uml", misreads_above(5_000))
    assert command(monkeypatch, real, "--set", "fs=jffs2", "--format", "json") == 1
    assert json.loads(capsys.readouterr().out)["differing"] == 1
    assert command(monkeypatch, OracleTarget("uml"), "--minutes", "0.01", "--class", "any") == 0


def test_an_interrupted_run_tells_what_is_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = OracleTarget("uml", interrupt_after=14)
    assert command(monkeypatch, real, "--cases", "20", "--set", "fs=ubifs", "--seed", "40") == 130
    told = capsys.readouterr()
    assert told.out.startswith("14 programs of class reads on ubifs, seeds from 40: 14 exact")
    assert told.err == "flashbed: interrupted; --seed 40 continues from here\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--on", "sim"),
        ("--set", "fs=ext4"),
        ("--set", "state=valid0.5"),
        ("--set", "board=emulated,omap3evm"),
        ("--class", "x"),
        ("--without", "x"),
        ("--format", "x"),
    ],
)
def test_what_cannot_be_meant_is_one_line(
    arguments: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command(monkeypatch, OracleTarget("uml"), *arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"flashbed: {arguments[0]} {arguments[1]}: ")
    assert told.err.count("\n") == 1
