"""SQL at a program's own pace: pauses between requests, commits of their own, and a rate."""

from __future__ import annotations

import itertools
import subprocess
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from flashbed.answers.analysis.statements import statements
from flashbed.base.errors import InputError
from flashbed.plan.case import Case
from flashbed.plan.database import Database
from flashbed.plan.experiment import load_experiment, read_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.plan.workloads.sqlite import operations
from flashbed.program.operations import parse
from flashbed.stack.profiles import load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Batch, Program
from flashbed.targets.sim import SimTarget
from tests.support.exec_programs import FLASHBED

SECOND = 1_000_000_000
SCRIPT = """CREATE TABLE log (at INTEGER, what TEXT);
-- measured
INSERT INTO log VALUES (1, 'a');
UPDATE log SET what = 'b';
"""


def case(pattern: str, requests: int = 20, pause_ns: int = SECOND, **database: object) -> Case:
    return Case(
        experiment="sqlite/x", board="emulated", kernel="6.1", fs="ubifs", read_ahead_kib=0,
        pattern=pattern, requests=requests, request_bytes=60, file_bytes=0, seed=1,
        pause_ns=pause_ns, database=Database.model_validate({"records": 40, **database}),
    )  # fmt: skip


def program(one: Case) -> Program:
    prepare, body = operations(one, 10 * SECOND)
    return Program(
        case_id=one.case_id,
        stack=Stack(board=one.profile(), kernel=load_kernel("6.1"), fs=one.fs, read_ahead_kib=0),
        prepare=prepare,
        body=body,
    )


def simulated(*programs: Program) -> list[Batch]:
    return list(SimTarget().run(programs))


@pytest.mark.parametrize("pattern", ["insert", "select", "select-random", "update", "contacts"])
def test_the_program_sleeps_between_two_requests_and_makes_the_same_calls(pattern: str) -> None:
    prepare, body = operations(case(pattern), 0)
    parse(body)
    pause = f"\npause {SECOND}"
    assert body.count(pause) == 19
    assert (prepare, body.replace(pause, "")) == operations(case(pattern, pause_ns=0), 0)


def test_a_request_that_commits_by_itself_is_a_transaction_of_its_own() -> None:
    _, together = operations(case("insert", pause_ns=0), 0)
    _, apart = operations(case("insert", autocommit=True), 0)
    assert together.count("compute ") == 22  # BEGIN and END
    assert apart.count("compute ") == 20
    assert apart.count("fsync") > 20 * 2 > together.count("fsync")


def test_a_script_sleeps_between_two_runs_of_its_measured_part(tmp_path: Path) -> None:
    script = tmp_path / "my.sql"
    script.write_text(SCRIPT)
    _, body = operations(case("script", 3, name="mine", script=str(script)), 0)
    kinds = [line.split()[0] for line in body.splitlines()]
    told = [kind for kind in kinds if kind in ("compute", "pause")]
    assert told == [*("compute", "compute", "pause") * 2, "compute", "compute"]


def test_on_the_board_the_program_sleeps_too() -> None:
    _, body = operations(case("insert", 3, executed="board", autocommit=True), 0)
    parse(body)
    kinds = [line.split()[0] for line in body.splitlines()]
    assert kinds[3:] == ["sql_open", "sql", "pause", "sql", "pause", "sql", "sql_close"]


@pytest.mark.parametrize("pattern", ["join", "select-all"])
def test_one_request_has_no_pause(pattern: str) -> None:
    with pytest.raises(InputError, match=f"pause_ns: {pattern} is one request"):
        operations(case(pattern), 0)


def test_a_pause_belongs_to_no_statement() -> None:
    rows = [("open", 5), ("compute", 10), ("pause", SECOND), ("read", 7), ("compute", 10)]
    requests = pl.DataFrame(
        {
            "case_id": ["a"] * 5,
            "target": ["sim"] * 5,
            "seq": range(5),
            "op": [op for op, _ in rows],
            "latency_ns": [latency for _, latency in rows],
            "flash_time_ns": [0] * 5,
        }
    )
    assert statements(requests)["latency_ns"].to_list() == [15, 17]


@pytest.mark.extension
def test_off_is_no_better_than_normal_where_the_flusher_meets_the_data() -> None:
    """600 commits took 0.4 s and `off` looked 14 times better than `normal`; it is equal."""
    programs = {}
    for word in ("off", "normal"):
        for pause_ns in (0, SECOND):
            one = case("insert", 300, pause_ns, journal="wal", synchronous=word, page_bytes=4096,
                       autocommit=True, contents="letters")  # fmt: skip
            programs[word, pause_ns] = replace(program(one), record_flush=True)
    batches = simulated(*programs.values())
    counts = {
        row["case_id"]: row["flash_programs"] + row["flush_programs"]
        for batch in batches
        for row in batch.cases.to_dicts()
    }
    pages = {key: counts[program.case_id] for key, program in programs.items()}
    assert pages["normal", 0] > 2 * pages["off", 0]
    assert pages["off", SECOND] == pytest.approx(pages["normal", SECOND], rel=0.1)


def at_a_rate(per_s: float, requests: int = 20, **database: object) -> Case:
    return case("insert", requests, 0, page_bytes=4096, transactions_per_s=per_s, **database)


def test_a_rate_makes_each_request_a_transaction_and_adds_no_call() -> None:
    """A user says a commit a second, and had to say a pause: the commit's own time came on top."""
    own = ("spawn", "task", "pause", "wait")
    _, body = operations(at_a_rate(1), 0)
    parse(body)
    calls = [line for line in body.splitlines()[1:] if not line.startswith(own)]
    _, alone = operations(case("insert", pause_ns=0, page_bytes=4096, autocommit=True), 0)
    assert calls == alone.splitlines()[1:]
    assert body.count(f"\npause {SECOND}") == 20
    assert operations(at_a_rate(1, autocommit=True), 0)[1] == body


@pytest.mark.extension
def test_the_time_of_a_transaction_is_part_of_its_period() -> None:
    (batch,) = simulated(program(at_a_rate(1, 60)))
    (elapsed_ns,) = batch.cases["elapsed_ns"]
    assert 60 * SECOND < elapsed_ns < 60.1 * SECOND
    _, *due_ns = batch.requests.filter(pl.col("op") == "spawn")["start_ns"].to_list()
    assert {after - before for before, after in itertools.pairwise(due_ns)} == {SECOND}


@pytest.mark.extension
def test_a_late_transaction_begins_at_once() -> None:
    (late,) = simulated(program(at_a_rate(1000, 60)))
    (flat_out,) = simulated(program(case("insert", 60, 0, page_bytes=4096, autocommit=True)))
    assert late.cases["elapsed_ns"][0] == pytest.approx(flat_out.cases["elapsed_ns"][0], rel=0.01)


@pytest.mark.extension
def test_the_answer_says_that_the_rate_was_not_kept(tmp_path: Path) -> None:
    words = ["run", "sqlite/requests", "--set", "board=emulated", "--set", "kernel=6.1",
             "--set", "fs=ubifs", "--set", "pattern=insert", "--set", "requests=300",
             "--set", "request_bytes=100"]  # fmt: skip
    said = {}
    for per_s in ("2", "1000"):
        out = ["--set", f"database.transactions_per_s={per_s}", "--out", str(tmp_path / per_s)]
        done = subprocess.run([FLASHBED, *words, *out], capture_output=True, text=True, check=True)
        said[per_s] = [line for line in done.stderr.splitlines() if "at this rate" in line]
    assert said["2"] == []
    assert said["1000"][0].startswith(
        "flashbed: WARNING: 300 transactions at this rate are due in 0.3 s and took"
    )


def test_a_rate_stands_in_the_name_of_a_case_and_is_read_back() -> None:
    for per_s, word in ((1, "tps1"), (0.2, "tps0.2"), (0.000001, "tps0.000001")):
        database = Database(transactions_per_s=per_s)
        assert str(database) == word
        assert Database.parse(word) == database
    mine = Database(name="mine", script="my.sql")
    assert mine.named_with("transactions_per_s", 0.5) == "mine-transactions-per-s-0-5"


def test_a_script_runs_its_measured_part_at_a_rate(tmp_path: Path) -> None:
    script = tmp_path / "my.sql"
    script.write_text(SCRIPT)
    given = {"name": "mine", "script": str(script), "transactions_per_s": 0.1}
    _, body = operations(case("script", 3, 0, **given), 0)
    kinds = [line.split()[0] for line in body.splitlines()]
    told = [kind for kind in kinds if kind in ("compute", "pause")]
    assert told == ["compute", "compute", "pause"] * 3


def test_a_rate_and_a_pause_or_one_request_are_refused() -> None:
    with pytest.raises(InputError, match=r"pause_ns: the program has database\.transactions_per_s"):
        operations(case("insert", transactions_per_s=1), 0)
    with pytest.raises(InputError, match=r"database\.transactions_per_s: join is one request"):
        operations(case("join", pause_ns=0, transactions_per_s=1), 0)


EXPERIMENT = """
[experiment]
id = "mine/mine"
title = "t"
question = "q"
source = "s"
[workload]
kind = "sqlite"
request_bytes = 1
settle_ns = 0
[[grid]]
targets = ["sim"]
board = ["emulated"]
kernel = ["6.1"]
fs = ["jffs2"]
read_ahead_kib = [0]
pattern = ["script"]
requests = [2]
seed = [1]
database = { name = "mine", script = "my.sql", journal = "wal" }
"""


def test_a_scripts_pragmas_are_set_and_its_name_says_so(tmp_path: Path) -> None:
    """`--set database.journal=delete` ended with "name: missing"."""
    (tmp_path / "my.sql").write_text(SCRIPT)
    toml = tmp_path / "mine.toml"
    toml.write_text(EXPERIMENT)
    settings = ["database.journal=delete,wal", "database.page_bytes=4096", "pause_ns=5000000000"]
    found = [planned.case for planned in plan(read_experiment(toml), parse_settings(settings))]
    assert [(str(each.database), each.database.journal) for each in found] == [
        ("mine-journal-delete-page-bytes-4096", "delete"),
        ("mine-page-bytes-4096", "wal"),
    ]
    assert found[0].case_id.endswith("-s1-pause5000ms-mine-journal-delete-page-bytes-4096")
    bodies = {operations(each, 0)[1] for each in found}
    assert len(bodies) == 2
    assert replace(found[0], pause_ns=0).case_id != found[0].case_id


def test_a_key_is_set_in_the_tables_that_are_chosen_in_either_order() -> None:
    """`--set database.page_bytes=4096 --set database=wal` ran WAL with pages of 1 KiB."""
    experiment = load_experiment("sqlite/requests")
    words = ["database.transactions_per_s=1", "database=page4096-wal"]
    only = ["board=emulated", "kernel=6.1", "fs=ubifs", "pattern=insert", "requests=600"]
    for settings in (words, words[::-1]):
        chosen = plan(experiment, parse_settings([*only, *settings]))
        assert {str(planned.case.database) for planned in chosen} == {"page4096-tps1-wal"}


def test_transactions_at_a_rate_may_have_a_connection_each() -> None:
    """The clock was waited for, and never begun."""
    one = case("insert", 5, 0, transactions_per_s=1, reconnect=True)
    (batch,) = simulated(program(one))
    assert batch.failures == ()
    assert batch.cases["elapsed_ns"].item() == pytest.approx(5 * SECOND, rel=0.02)
