"""`flashbed trace` as a user meets it: what it refuses, and where it keeps a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from flashbed.tracing.trace import load
from tests.smoke.conftest import Run

OPERATIONS = "flashbed-ops 1\nopen 0 f rw,create\nwrite 0 0 4096 1 0\nclose 0\n"


@pytest.fixture
def operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("my.ops").write_text(OPERATIONS)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("my.ops --on sim --fs ext4", "--fs ext4: one of jffs2, yaffs2, ubifs, mtd, mtd-driver"),
        ("my.ops --on sim --fs jffs2,ubifs", "--fs jffs2,ubifs: one of jffs2"),
        ("my.ops --on uml --fs jffs2,bulk_read", "bulk_read is a mount option of ubifs"),
        ("my.ops", "my.ops: a file of operations, and no command: --on says where it runs"),
        ("my.ops --on ssh://root@board", "my.ops: a file of operations, and no command"),
        ("sqlite/requests", "sqlite/requests: an experiment, and no command: --on says"),
        ("mine.toml", "mine.toml: an experiment, and no command"),
    ],
)
def test_what_cannot_be_traced_is_one_line_and_exit_2(
    operations: Path, run: Run, arguments: str, says: str
) -> None:
    """The first two were internal errors, the others were run as a command."""
    status, out, err = run("trace", *arguments.split())
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
    assert not Path("results").exists()


@pytest.mark.extension
def test_a_trace_is_not_overwritten_without_a_word(operations: Path, run: Run) -> None:
    """Every trace was kept in results/trace, in place of the one before."""
    words = ("trace", "my.ops", "--on", "sim", "--flash")
    places = [run(*words)[1].splitlines()[-1] for _ in range(2)]
    assert places == ["results/trace/my", "results/trace/my-2"]
    assert run(*words, "--out", "mine", "--format", "flashmon", "--format", "csv")[2] == ""
    status, _, err = run(*words, "--fs", "ubifs,bulk_read", "--out", "mine")
    assert (status, err) == (0, "flashbed: mine: replaces the trace of my\n")
    assert load(Path("mine")).facts.fs == "ubifs"
    # Nothing of the old one is taken for the new one's.
    assert sorted(file.suffix for file in Path("mine").iterdir()) == [".json"] + [".parquet"] * 4
