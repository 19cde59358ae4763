"""Power cuts on the host's side, with a script in the guest's place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from flashbed.base.errors import InputError
from flashbed.bench.powercut.cutting import Choice, PowerCuts
from flashbed.bench.powercut.judge import LOST, NOT_MOUNTED, RECOVERED
from flashbed.bench.powercut.outcomes import lines, summary
from flashbed.plan import workloads
from flashbed.plan.case import Case
from flashbed.plan.workloads.fsync_files import operations
from flashbed.program.operations import parse
from flashbed.results.columns import empty_table
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import PLAIN, Apart, Batch, Cut, Program, RunOptions
from flashbed.targets.guest.boot import Machine
from flashbed.targets.guest.guest import Guest, run_guest
from flashbed.targets.guest.results import Measuring
from flashbed.targets.guest.stream import Reader, StreamError

PREPARE = "flashbed-ops 1\nprepared\n"
BODY = "flashbed-ops 1\nmark\nopen 0 a wo,create\nwrite 0 0 10 1 0\nfsync 0\nclose 0\nsync\n"
PROGRAM = Program(
    case_id="one",
    stack=Stack(
        board=load_board("emulated"), kernel=load_kernel("6.1"), fs="jffs2", read_ahead_kib=0
    ),
    prepare=PREPARE,
    body=BODY,
)

# A chip that does 5 changes: 1 in open, 1 in write, 2 in fsync, 1 in sync.
GUEST = f"""#!{sys.executable}
import os, re, sys, time
job = open("job").read()
out = open("stream", "w")
def say(text):
    out.write(text); out.flush()
say("flashbed-stream 1\\ninfo kernel 6.1-test\\n")
RESULTS = [(3, 0, 1), (4, 10, 2), (5, 0, 4), (6, 0, 4), (7, 0, 5)]
def case(name):
    row = "r {{}} {{}} 1 1 {{}} 0 - {{}}\\n"
    rows = "".join(row.format(n, *found) for n, found in enumerate(RESULTS))
    say(f"case {{name}}\\n{{rows}}c 0 5 0 0\\nend {{name}}\\n")
A = "s 10 a\\np 0 10 1:0\\n"
def cut(name, change, files=None, mount=0):
    say(f"cut {{name}} {{change}}\\n")
    files = files if files is not None else A if change > 1 else ""
    found = "" if mount else files + "u 0\\n"
    say(f"m {{mount}} 1000\\n" + found + f"endcut {{name}} {{change}}\\n")
def each():
    for line in job.splitlines():
        words = line.split(" ")
        if words[0] == "case":
            case(words[1])
        elif words[0] == "cut":
            yield words[1], int(words[2])
"""

Guests = Callable[..., Guest]
EVERY = Choice(1, None, 1)


@pytest.fixture
def guest(tmp_path: Path) -> Guests:
    def make(script: str, patience_s: float = 20, *, remembers_changes: bool = True) -> Guest:
        program = tmp_path / "guest"
        program.write_text(GUEST + script)
        program.chmod(0o755)
        machine = Machine(
            name="the guest",
            process="the script",
            command=[str(program)],
            patience_s=patience_s,
            patience_variable="PATIENCE",
        )
        measuring = Measuring(software_time=False)
        return Guest(
            machine=machine,
            board=load_board("emulated"),
            kernel="6.1",
            measuring=measuring,
            remembers_changes=remembers_changes,
        )

    return make


class Scripted:
    """A target that is one guest."""

    software_time = False
    apart = Apart()

    def __init__(self, guest: Guest, work: Path) -> None:
        self.name, self.guest, self.work = "uml", guest, work

    def prepare(self, say: Callable[[str], None]) -> None:
        say("nothing to fetch")

    def run(self, programs: Sequence[Program], options: RunOptions = PLAIN) -> Iterator[Batch]:
        return run_guest(self.guest, programs, self.work, options, done=0)


def cuts(
    guest: Guest, work: Path, choice: Choice = EVERY, programs: int = 1
) -> tuple[pl.DataFrame, dict[str, list[str]], list[Batch]]:
    """The power_cuts of a run, its failures by case, and its batches."""
    asked = [replace(PROGRAM, case_id=name) for name in ("one", "two", "three")[:programs]]
    target = PowerCuts(Scripted(guest, work), choice, "uml")
    batches = list(target.run(asked))
    failures: dict[str, list[str]] = {}
    for failure in (failure for batch in batches for failure in batch.failures):
        assert "\n" not in failure.message
        failures.setdefault(failure.case_id, []).append(failure.message)
    rows = [batch.power_cuts for batch in batches if batch.power_cuts.height]
    return (pl.concat(rows) if rows else pl.DataFrame()), failures, batches


GOOD = 'for name, change in each():\n    cut(name, change)\nsay("done\\n")\n'


def test_every_change_is_cut_and_judged(guest: Guests, tmp_path: Path) -> None:
    rows, failures, batches = cuts(guest(GOOD), tmp_path, programs=2)
    assert failures == {}
    assert rows["case_id"].to_list() == ["one"] * 5 + ["two"] * 5
    assert rows["change"].to_list() == [1, 2, 3, 4, 5] * 2
    assert set(rows["verdict"]) == {RECOVERED}
    # Acknowledged by fsync, which has returned when the fifth change is made.
    assert rows["acknowledged_files"].to_list() == [0, 0, 0, 0, 1] * 2
    cases = pl.concat([batch.cases for batch in batches if batch.cases.width])
    assert cases["case_id"].to_list() == ["one", "two"]
    requests = next(batch.requests for batch in batches if batch.power_cuts.height)
    assert requests["changes"].to_list() == [1, 2, 4, 4, 5]


def test_what_a_cut_left_is_judged(guest: Guests, tmp_path: Path) -> None:
    script = """
for name, change in each():
    cut(name, change, files="" if change == 5 else None, mount=-117 if change == 3 else 0)
say("done\\n")
"""
    rows, failures, _ = cuts(guest(script), tmp_path)
    assert failures == {}
    expected = [RECOVERED, RECOVERED, NOT_MOUNTED, RECOVERED, LOST]
    assert rows["verdict"].to_list() == expected
    (row,) = summary(rows.with_columns(target=pl.lit("uml")), empty_table("cut_files"))
    assert (row["cuts"], row["recovered"], row["not_mounted"], row["lost"]) == (5, 3, 1, 1)
    assert [bad["change"] for bad in row["first_bad"]] == [3, 5]
    said = lines([row])
    assert said[0] == "one on uml: 3 of 5 cuts recovered, 1 not mounted, 1 lost"
    assert said[1].startswith("  mounted in ")
    assert said[3] == "  cut 5: lost: a: is missing, and had been acknowledged"


def test_a_guest_that_dies_in_a_cut_costs_that_cut(guest: Guests, tmp_path: Path) -> None:
    script = """
for name, change in each():
    if change in (2, 4):
        say(f"cut {name} {change}\\n")
        open("console.log", "w").write("Kernel panic - not syncing: why\\n")
        os._exit(1)
    cut(name, change)
say("done\\n")
"""
    rows, failures, _ = cuts(guest(script), tmp_path, programs=2)
    assert rows["case_id"].to_list() == ["one"] * 3 + ["two"] * 3
    assert rows["change"].to_list() == [1, 3, 5] * 2
    assert list(failures) == ["one", "two"]
    for messages in failures.values():
        assert [message.split(":")[0] for message in messages] == ["cut 2", "cut 4"]
        assert "kernel died: Kernel panic - not syncing: why; console: " in messages[0]


def test_a_guest_that_dies_in_the_last_cut_keeps_the_others(guest: Guests, tmp_path: Path) -> None:
    script = """
for name, change in each():
    if change == 5:
        say(f"cut {name} {change}\\n")
        os._exit(1)
    cut(name, change)
say("done\\n")
"""
    rows, failures, _ = cuts(guest(script), tmp_path)
    assert rows["change"].to_list() == [1, 2, 3, 4]
    assert [message.split(":")[0] for message in failures["one"]] == ["cut 5"]


def test_a_guest_that_always_dies_is_given_up_and_what_was_found_is_kept(
    guest: Guests, tmp_path: Path
) -> None:
    script = """
for name, change in each():
    if change > 1:
        say(f"cut {name} {change}\\n")
        os._exit(1)
    cut(name, change)
"""
    rows, failures, _ = cuts(guest(script), tmp_path)
    assert rows["change"].to_list() == [1]
    assert [message.split(":")[0] for message in failures["one"]] == [
        "cut 2",
        "cut 3",
        "cut 4",
        "cut 5",
    ]


def test_a_cut_that_cannot_be_made_ends_its_case_s_cuts(guest: Guests, tmp_path: Path) -> None:
    script = """
for name, change in each():
    if change < 3:
        cut(name, change)
    elif change == 3:
        say(f"cut {name} 3\\nerror case:{name} 0 EINVAL cut 3: Invalid argument\\n")
say("done\\n")
"""
    rows, failures, _ = cuts(guest(script), tmp_path, programs=2)
    assert rows["change"].to_list() == [1, 2] * 2
    assert failures["one"] == ["cut 3 and 2 more: EINVAL: cut 3: Invalid argument"]
    assert list(failures) == ["one", "two"]


def test_a_case_that_is_not_the_same_after_a_reboot_fails(guest: Guests, tmp_path: Path) -> None:
    script = """
if "boot-1" in os.getcwd():
    RESULTS[-1] = (7, 0, 6)
for name, change in each():
    if change == 2:
        say(f"cut {name} {change}\\n")
        os._exit(1)
    cut(name, change)
say("done\\n")
"""
    rows, failures, _ = cuts(guest(script), tmp_path)
    assert rows["change"].to_list() == [1]
    assert failures["one"][1].endswith("its second run made other changes to the chip")


def test_a_guest_whose_chip_forgets_refuses_in_one_line(guest: Guests, tmp_path: Path) -> None:
    rows, failures, _ = cuts(guest(GOOD, remembers_changes=False), tmp_path)
    assert rows.height == 0
    assert failures == {"one": ["power cuts: the guest's chip does not record its changes"]}


def test_a_case_without_changes_has_nothing_to_be_cut(guest: Guests, tmp_path: Path) -> None:
    script = "RESULTS = [(line, 0, 0) for line in range(3, 8)]\n" + GOOD
    _, failures, batches = cuts(guest(script), tmp_path)
    assert failures == {"one": ["power cuts: makes no change to the chip"]}
    assert not any(batch.cases.height for batch in batches)


def test_the_job_has_the_chip_s_commands_before_and_the_cuts_after_the_case(
    guest: Guests, tmp_path: Path
) -> None:
    script = 'open(os.path.join(sys.path[0], "job"), "w").write(job)\n' + GOOD
    cuts(guest(script), tmp_path, Choice(2, None, 3, ("drop 7", "drop 9")))
    job = (tmp_path / "job").read_text()
    assert "\nchip drop 7\nchip drop 9\ncase c0 0 counts,changes\nops 7\n" in job
    tail = "\nsync\ncut c0 1 3000010\ncut c0 3 3000012\ncut c0 5 3000014\ndone\n"
    assert job.endswith(tail)


def test_cuts_are_chosen_by_the_seed() -> None:
    assert [cut.change for cut in Choice(3, None, 1).cuts(10)] == [1, 4, 7, 10]
    assert [cut.change for cut in Choice(None, 4, 1).cuts(3)] == [1, 2, 3]
    some = Choice(None, 20, 1).cuts(1000)
    assert some == Choice(None, 20, 1).cuts(1000) != Choice(None, 20, 2).cuts(1000)
    changes = [cut.change for cut in some]
    assert changes == sorted(set(changes))
    assert len(changes) == 20
    assert Choice(1, None, 1).cuts(1) == (Cut(1, 1_000_004),)


@pytest.mark.parametrize(
    "rows",
    [
        "m 0 1\n",
        "cut c 1\ns 1 a\n",
        "cut c 1\nm 0 1\np 0 1 zero\n",
        "cut c 1\nm 0 1\nendcut c 1\n",
        "cut c 1\nm -5 1\nu 0\nendcut c 1\n",
        "cut c 1\nm 0 1\nu 0\nendcut c 2\n",
        "cut c 1\nm 0 1\ns 1 a\np 0 1 ones\n",
    ],
)
def test_rows_that_make_no_cut_are_refused(rows: str) -> None:
    with pytest.raises(StreamError):
        list(Reader().feed(b"flashbed-stream 1\n" + rows.encode()))


def case(**axes: int | str) -> Case:
    values = {
        "experiment": "x", "board": "emulated", "kernel": "6.1", "fs": "jffs2",
        "read_ahead_kib": 0, "pattern": "random", "requests": 300, "request_bytes": 4096,
        "file_bytes": 12288, "seed": 1,
    }  # fmt: skip
    return Case(**(values | axes))  # type: ignore[arg-type]


@pytest.mark.parametrize("axes", [{}, {"seed": 9}, {"request_bytes": 100, "file_bytes": 1000}])
def test_the_workload_is_made_of_operations_that_follow_its_seed(axes: dict[str, int]) -> None:
    prepare, body = operations(case(**axes), 1000)
    assert operations(case(**axes), 1000) == (prepare, body)
    assert parse(prepare)[-1].name == "prepared"
    names = [operation.name for operation in parse(body)]
    assert names[0] == "mark"
    assert {"fsync", "fdatasync", "rename", "unlink", "truncate", "sync", "pause"} <= set(names)
    writes = [operation for operation in parse(body) if operation.name == "write"]
    limits = case(**axes)
    for write in writes:
        _, offset, length, _, _ = map(int, write.fields)
        assert length <= limits.request_bytes
        assert offset + length <= limits.file_bytes
    seeds = [int(write.fields[3]) for write in writes]
    assert len(set(seeds)) == len(seeds)


def test_the_workload_refuses_what_it_cannot_be() -> None:
    assert operations(case(), 0)[1] != operations(case(seed=2), 0)[1]
    with pytest.raises(InputError, match="has no pattern 'sequential'; it has random"):
        workloads.operations("fsync-files", case(pattern="sequential"), 0)
    with pytest.raises(InputError, match="does not fit"):
        operations(case(file_bytes=100), 0)
