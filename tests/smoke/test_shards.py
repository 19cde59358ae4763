"""A run in shards, and what `merge` makes of them."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest

from tests.smoke.conftest import Run
from tests.smoke.examples import check, steps

pytestmark = pytest.mark.extension

WHOLE = (
    "run", "figure3", "--set", "kernel=6.1", "--set", "requests=8,64", "--jobs", "2",
    "--out", "whole",
)  # fmt: skip
RUN = ("run", "one", "--on", "sim", "--set", "kernel=2.6.37,6.1", "--trace", "flash")


@pytest.fixture
def shards(small: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The small experiment in three shards, each of several units."""
    monkeypatch.setattr("flashbed.plan.case_units.UNIT_CASES", 5)
    folders = []
    for number in (3, 1, 2):
        folder = f"shard{number}"
        assert run(*RUN, "--shard", f"{number}/3", "--out", folder)[0] == 0
        folders.append(folder)
    return folders


def bytes_of(folder: str) -> dict[str, bytes]:
    """Every file below a folder."""
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_merged_shards_are_the_bytes_of_one_run(shards: list[str], run: Run) -> None:
    _, whole, _ = run(*RUN, "--out", "whole")
    status, out, err = run("merge", *shards, "-o", "merged")
    assert (status, err) == (0, "3 shards: 64 cases\n")
    assert out == whole.replace("whole", "merged")
    assert bytes_of("merged") == bytes_of("whole")
    sizes = [len(bytes_of(folder)["finished.parquet"]) for folder in shards]
    assert min(sizes) > 0


def test_a_merged_run_goes_on_as_one(shards: list[str], run: Run) -> None:
    run("merge", *shards, "-o", "merged")
    assert "0 cases measured, 64 were there" in run(*RUN, "--out", "merged")[2]


def test_a_finished_shard_is_kept(shards: list[str], run: Run) -> None:
    before = bytes_of("shard1")
    _, _, err = run(*RUN, "--shard", "1/3", "--out", "shard1")
    assert "0 cases measured" in err
    assert bytes_of("shard1") == before


def spoilt(word: str, value: object) -> None:
    file = Path("shard2/shard.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | {word: value}))


def test_what_is_no_run_is_one_line(shards: list[str], run: Run) -> None:
    def line(*arguments: str) -> str:
        status, _, err = run("merge", *arguments, "-o", "merged")
        assert status == 2
        assert not Path("merged").exists()
        (said,) = err.splitlines()
        return said

    assert line("shard1", "shard3") == (
        "flashbed: merge: shards 2/3 are missing; run them with --shard"
    )
    assert line(*shards, "shard1") == "flashbed: merge: a folder is named twice"
    shutil.copytree("shard1", "again")
    assert line(*shards, "again") == (
        "flashbed: again: shard 1/3, as shard1 is; name each shard once"
    )
    run(*RUN, "--out", "whole")
    assert line(*shards, "whole") == (
        "flashbed: whole: no finished shard; run it with --shard I/N, to its end"
    )
    for word, value, said in (
        ("commit", "0" * 40, "flashbed's commit differs from that of shard3 (000000000000, "),
        ("of", 4, "the number of shards differs from that of shard3 (4, 3)"),
        ("plan", "f" * 64, "what --set and --trace chose differs from that of shard3"),
        ("experiment_sha256", "f" * 64, "the experiment's file differs from that of shard3"),
        ("number", "2", "shard.json: not flashbed-shard 1; run the shard again"),
    ):
        kept = Path("shard2/shard.json").read_text()
        spoilt(word, value)
        assert said in line(*shards)
        Path("shard2/shard.json").write_text(kept)
    Path("there").mkdir()
    Path("there/run.json").write_text("{}")
    status, _, err = run("merge", *shards, "-o", "there")
    assert (status, err) == (2, "flashbed: there: holds a run already; choose another -o\n")


def test_a_case_in_two_shards_is_one_line(shards: list[str], run: Run) -> None:
    """A folder that had held a whole run is a shard with all its cases."""
    run(*RUN, "--out", "whole")
    run(*RUN, "--shard", "2/3", "--out", "whole")
    status, _, err = run("merge", "shard1", "whole", "shard3", "-o", "merged")
    assert status == 2
    assert err.startswith("flashbed: shard3: ")
    assert err.endswith(" is in whole too; run one of them again into an empty folder\n")


def test_a_folder_is_of_one_shard(shards: list[str], run: Run) -> None:
    status, _, err = run(*RUN, "--shard", "2/3", "--out", "shard1")
    assert (status, err) == (2, "flashbed: shard1: holds shard 1/3; choose another --out\n")
    assert run(*RUN, "--shard", "4/3")[0] == 2


def test_each_shard_has_a_folder_of_its_own_if_none_is_named(small: Path, run: Run) -> None:
    _, out, _ = run("run", "one", "--shard", "2/2")
    assert "results/small/one-shard-2-of-2\n" in out


def test_the_commands_of_the_document_make_the_folder_of_one_run(
    project: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = project / "docs" / "guide" / "many-machines.md"
    assert run(*WHOLE)[0] == 0
    found = list(steps(page, "Several machines by hand"))
    for step in found:
        words = shlex.split(step.command)
        assert words.pop(0) == "flashbed"
        status, out, err = run(*words)
        assert status == 0, err
        check(step.shown, out.splitlines())
    assert len(found) == 3
    assert bytes_of("merged") == bytes_of("whole")
