"""What `flashbed exec` is given is checked before a kernel is booted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flashbed.base.errors import InputError
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.exec.account import as_json, text
from flashbed.targets.exec.folders import at
from flashbed.targets.exec.outcome import NotRunError, outcome_of
from flashbed.targets.exec.request import ExecRequest, environment, find, puts_of

ANSWER = """\
ran exit 0
time 5000000
call write 4 1000 4096
call read 2 500 0
counts run 10 20 1 4000000
counts flush 1 2 0 300000
wear 0 1 0 0
page 2048
end
"""


def _request(**changes: object) -> ExecRequest:
    stack = Stack(board=load_board("emulated"), kernel=load_kernel("6.1"), fs="ubifs")
    values = {
        "stack": stack, "words": ["ls", "a b"],
        "program": "/bin/ls", "variables": {"LANG": "C.UTF-8"}, **changes,
    }  # fmt: skip
    return ExecRequest(**values)  # type: ignore[arg-type]


def test_only_a_few_variables_and_those_asked_for_go_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.setenv("MINE", "y")
    monkeypatch.delenv("TERM", raising=False)
    assert set(environment([])) == {"PATH", "LANG", "HOME", "TMPDIR"}
    seen = environment(["MINE", "OTHER=a=b"])
    assert (seen["MINE"], seen["OTHER"]) == ("y", "a=b")
    for wrong in ("NOT_THERE_AT_ALL", "1=2", "=x", "a b=c"):
        with pytest.raises(InputError):
            environment([wrong])


def test_a_command_is_found_as_the_program_will_see_it(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    board = load_board("emulated")
    assert find("sh", "/usr/bin:/bin", []).endswith("/sh")
    with pytest.raises(InputError, match="no such command"):
        find("no-such-command", "/usr/bin", [])
    with pytest.raises(InputError, match="not executable"):
        find("/etc/passwd", "/usr/bin", [])
    with pytest.raises(InputError, match="is not a program"):
        find("/etc", "/usr/bin", [])
    with pytest.raises(InputError, match="not executable"):
        find("./script", "", puts_of([script], board))
    script.chmod(0o755)
    assert find("./script", "", puts_of([script], board)) == f"{at()}/script"


def test_a_program_in_a_folder_that_is_covered_is_refused(tmp_path: Path) -> None:
    if not tmp_path.is_relative_to("/tmp"):
        pytest.skip("temporary files are elsewhere")
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    with pytest.raises(InputError, match="--put"):
        find(str(script), "", [])


def test_files_are_put_in_the_order_of_their_names(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "b").write_text("2")
    (folder / "a").symlink_to("b")
    board = load_board("emulated")
    puts = puts_of([folder], board)
    assert [(put.kind, put.path) for put in puts] == [
        ("folder", "d"), ("link", "d/a"), ("file", "d/b"),
    ]  # fmt: skip
    with pytest.raises(InputError, match="d is already taken by another --put"):
        puts_of([folder, folder], board)
    with pytest.raises(InputError, match="No such file"):
        puts_of([tmp_path / "none"], board)
    os.mkfifo(folder / "c")
    with pytest.raises(InputError, match="neither"):
        puts_of([folder], board)
    big = tmp_path / "big"
    with big.open("wb") as out:
        out.truncate(51 << 20)
    with pytest.raises(InputError, match="partition of 50 MiB"):
        puts_of([big], board)


def test_the_request_keeps_any_bytes_in_one_line_each() -> None:
    lines = _request(words=["x", "a b\n%é"]).text().splitlines()
    assert lines[0] == "flashbed-program 1"
    assert "arg a%20b%0a%25%c3%a9" in lines
    assert "env LANG=C.UTF-8" in lines
    assert lines[-1] == "run"


def test_the_answer_becomes_counts_and_a_lifetime() -> None:
    outcome = outcome_of(ANSWER, "x")
    assert outcome is not None
    assert (outcome.exit_status, outcome.time_ns, outcome.wear) == (0, 5_000_000, [0, 1, 0, 0])
    assert outcome.bytes_written == 4096
    assert outcome.bytes_programmed == 22 * 2048
    found = as_json(_request(), outcome, 24.0)
    assert found["amplification"] == 11.0
    assert found["years"]["low"] > 0
    said = text(_request(), outcome, None)
    assert "20 page writes" in said
    assert "WAF            11.00" in said


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("ran exit 0", "ran exit 3", "the program failed with exit status 3"),
        ("ran exit 0", "ran signal 11", "signal 11 ended the program"),
        ("page", "failed write 28 11255\nfailed write 0 2\npage", "11,257 calls failed"),
    ],
)
def test_a_program_that_failed_has_no_lifetime(old: str, new: str, why: str) -> None:
    """A program whose 11,257 writes failed on a full flash got a lifetime of decades."""
    outcome = outcome_of(ANSWER.replace(old, new), "x")
    assert outcome is not None
    found = as_json(_request(), outcome, 24.0)
    assert (found["years"], found["failure"]) == (None, why)
    said = text(_request(), outcome, 24.0)
    assert f"lifetime       none: {why}, so" in said
    assert ("write             11,255 ENOSPC" in said) == ("calls failed" in why)


def test_a_program_that_until_ended_did_its_work() -> None:
    outcome = outcome_of(ANSWER.replace("ran exit 0", "ran signal 15\nuntil 15"), "x")
    assert outcome is not None
    assert as_json(_request(), outcome, 24.0)["years"] is not None


def test_an_answer_that_breaks_off_is_none_and_nonsense_is_refused() -> None:
    for end in range(len(ANSWER.splitlines())):
        assert outcome_of("\n".join(ANSWER.splitlines()[:end]), "x") is None
    with pytest.raises(NotRunError):
        outcome_of("time x\nend\n", "x")
    with pytest.raises(NotRunError, match="mounting"):
        outcome_of("error mounting ubifs: No space\n", "x")


@pytest.mark.parametrize(("number", "status"), [(2, 127), (13, 126), (8, 126)])
def test_what_cannot_be_executed_has_the_statuses_of_env(number: int, status: int) -> None:
    with pytest.raises(NotRunError) as raised:
        outcome_of(f"cannot {number}\ntime 1\n", "x")
    assert raised.value.exit_status == status
