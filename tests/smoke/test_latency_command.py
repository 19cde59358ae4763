"""`flashbed latency` as a user meets it, on the simulator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.smoke.conftest import Run

OPS = "flashbed-ops 1\nopen 0 log rw,create\nmark\n" + "".join(
    f"write 0 {n * 4096} 4096 {n} 50\nfsync 0\npause 1000000000\n" for n in range(20)
)


@pytest.fixture
def ops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("log.ops").write_text(OPS)
    return "log.ops"


def test_it_prints_calls_causes_and_the_slowest(ops: str, run: Run) -> None:
    status, out, err = run("latency", ops, "--slowest", "2")
    assert status == 0, err
    lines = out.splitlines()
    assert lines[0].startswith("40 calls, ")
    assert any(line.split()[:2] == ["fsync", "20"] for line in lines)
    assert any("write-back" in line for line in lines)
    assert sum(" fsync of log at " in line for line in lines) == 2
    assert lines[-1] == "results/latency/operations/log"


def test_json_adds_up(ops: str, run: Run) -> None:
    _, out, _ = run("latency", ops, "--format", "json", "--set", "fs=jffs2,ubifs", "--parts", "4")
    found = json.loads(out)
    assert [case["choice"] for case in found] == ["jffs2", "ubifs"]
    for case in found:
        whole = case["calls"][-1]
        assert whole["call"] == "all"
        assert sum(cause["all_ns"] for cause in case["causes"]) == whole["time_ns"]
        assert [part["calls"][-1]["calls"] for part in case["parts"]] == [10] * 4
        for call in case["slowest"]:
            named = ("seq", "op", "file", "start_ns", "latency_ns")
            causes = [value for name, value in call.items() if name not in named]
            assert sum(causes) == call["latency_ns"]


def test_markdown_is_tables_and_a_list(ops: str, run: Run) -> None:
    status, out, _ = run("latency", ops, "--format", "markdown")
    assert status == 0
    assert all(line == "" or line[:2] in ("| ", "- ", "##") for line in out.splitlines())


def test_a_script_of_sql_is_a_program_too(ops: str, run: Run) -> None:
    Path("mine.sql").write_text("CREATE TABLE t(a);\n-- measured\nINSERT INTO t VALUES (1);\n")
    status, out, err = run("latency", "mine.sql", "--set", "requests=5", "--format", "json")
    assert status == 0, err
    assert any(row["call"] == "fsync" for row in json.loads(out)[0]["calls"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "latency: what? An experiment, a recording, operations, or -- COMMAND"),
        (("log.ops", "--", "ls"), "latency: log.ops or -- ls: one of them"),
        (("--",), "no command behind --"),
        (("ls", "files"), "latency takes one experiment, recording or file of operations"),
        (("nothing.sql",), "nothing.sql: no such file"),
        (("log.ops", "--set", "fs=ext4"), "ext4"),
        (("log.ops", "--parts", "0"), "--parts"),
    ],
)  # fmt: skip
def test_wrong_input_ends_in_one_line(
    ops: str, run: Run, arguments: tuple[str, ...], said: str
) -> None:
    status, out, err = run("latency", *arguments)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("flashbed: ") == 1


def test_a_command_is_recorded_first(ops: str, run: Run) -> None:
    pytest.importorskip("flashbed.targets.recorder.session")
    status, out, err = run(
        "latency", "--format", "json", "--", "sh", "-c", "echo on > mode; sync mode"
    )
    if status == 1 and "not recorded" in err:
        pytest.skip("nothing can be recorded here")
    assert status == 0, err
    assert any(row["call"] == "write" for row in json.loads(out)[0]["calls"])
    assert Path("results/record/sh.rec").exists() or Path("results/record/sh.rec.parts").exists()
    status, _, err = run("latency", "--", "false")
    assert status == 1
    assert "false: exited with 1" in err
