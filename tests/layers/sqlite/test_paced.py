"""SQL at a program's own pace: pauses between requests, and requests that commit by themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from flashbed.analysis.statements import statements
from flashbed.errors import InputError
from flashbed.formats.operations import parse
from flashbed.formats.profiles import load_kernel
from flashbed.plan.case import Case
from flashbed.plan.database import Database
from flashbed.plan.experiment import read_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.targets.base import Program
from flashbed.targets.sim import SimTarget
from flashbed.workloads.sqlite import operations

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
                       autocommit=True)  # fmt: skip
            prepare, body = operations(one, 10 * SECOND)
            programs[word, pause_ns] = Program(
                one.case_id, "ubifs", one.profile(), load_kernel("6.1"), 0, prepare, body,
                record_flush=True,
            )  # fmt: skip
    batches = SimTarget().run(list(programs.values()))
    counts = {
        row["case_id"]: row["flash_programs"] + row["flush_programs"]
        for batch in batches
        for row in batch.cases.to_dicts()
    }
    pages = {key: counts[program.case_id] for key, program in programs.items()}
    assert pages["normal", 0] > 2 * pages["off", 0]
    assert pages["off", SECOND] == pytest.approx(pages["normal", SECOND], rel=0.1)


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
