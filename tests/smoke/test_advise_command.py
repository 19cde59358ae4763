"""`flashbed advise` as a user meets it, on the simulator and real file-system code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.smoke.conftest import Run


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results go into a folder of the test's own."""
    monkeypatch.chdir(tmp_path)


LOGGER = ("advise", "programs/logger", "--set", "fs=jffs2,ubifs")
ALONE = ("--confirm", "none", "--cuts", "0")


def json_of(run: Run, *arguments: str) -> dict[str, Any]:
    status, out, _ = run(*LOGGER, *arguments, "--format", "json")
    assert status == 0
    found: dict[str, Any] = json.loads(out)
    return found


def test_it_says_what_to_take_why_and_how_to_set_it(run: Run) -> None:
    status, out, err = run(*LOGGER, *ALONE, "--goal", "lifetime")
    assert status == 0
    assert "settings, each alone" in err
    assert out.startswith("take jffs2: ")
    for part in ("take jffs2", "now ubifs", "each setting alone, on jffs2:", "to set it:",
                 "compressor none: ", "the program syncs 40 times itself",
                 "/etc/fstab: mtd:PARTITION /data jffs2 noatime 0 0"):  # fmt: skip
        assert part in out


def test_what_is_best_depends_on_the_goal_and_now_stays_where_nothing_is_better(run: Run) -> None:
    by_writes = json_of(run, *ALONE, "--goal", "lifetime")
    assert by_writes["advised"]["set"] == {"fs": "jffs2"}
    kept = json_of(run, *ALONE, "--goal", "lifetime", "--now", "fs=jffs2")
    assert kept["headline"].startswith("keep jffs2: ")
    ubifs = json_of(run, *ALONE, "--goal", "time")["advised"]
    assert ubifs["time_ns"] <= min(each["time_ns"] for each in by_writes["front"])


def test_space_is_what_df_leaves(run: Run) -> None:
    found = json_of(run, *ALONE, "--goal", "space")
    (jffs2, ubifs) = (
        next(each["left_bytes"] for each in found["front"] if each["set"]["fs"] == fs)
        for fs in ("jffs2", "ubifs")
    )
    assert found["advised"]["left_bytes"] == jffs2 > ubifs


def test_a_command_is_recorded_first(run: Run) -> None:
    status, out, err = run("advise", *ALONE, "--set", "fs=jffs2", "--", "sh", "-c", "echo 1 > a")
    assert (status, out.splitlines()[0].split()[0]) == (0, "keep")
    assert "sh.rec: the recording" in err


def test_a_limit_is_kept_or_named(run: Run) -> None:
    tight = json_of(run, *ALONE, "--goal", "lifetime", "--within", "p99_ms<=0.2")
    assert tight["missed"] == ["p99_ms<=0.2"]
    wide = json_of(run, *ALONE, "--goal", "lifetime", "--within", "p99_ms<=0.5")
    assert (wide["missed"], wide["advised"]["set"]["fs"]) == ([], "jffs2")


def test_keeping_durability_tries_nothing_that_stands_apart(run: Run) -> None:
    assert json_of(run, *ALONE, "--keep", "durability")["apart"] == []
    apart = json_of(run, *ALONE)["apart"]
    assert any("sync_every_s" in each["set"] for each in apart)


def test_a_weaker_file_system_is_not_advised_but_named(run: Run) -> None:
    status, out, _ = run(
        "advise", "programs/config", "--confirm", "none", "--cuts", "40", "--format", "json",
    )  # fmt: skip
    found = json.loads(out)
    assert status == 0
    assert found["advised"]["set"]["fs"] == "ubifs"
    words = {each["set"]["fs"]: each["power_cuts"]["word"] for each in found["weaker"]}
    assert words["jffs2"].startswith("may damage")
    assert found["advised"]["power_cuts"]["word"].startswith("may lose the last")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--within", "years>=3"], "--within years: how often does it run?"),
        (["--goal", "boot"], "--goal boot: lifetime, time, latency, energy or space"),
        (["--now", "fs=yaffs2"], "--now fs=yaffs2: --set fs=jffs2,ubifs has another"),
        (["--now", "compressor=lzo,zlib"], "takes one value"),
        (["--set", "nonsense=1"], "nonsense"),
        (["--goal", "energy", *ALONE], "--goal energy: is not known on this board"),
    ],
)
def test_what_cannot_be_asked_is_one_line(run: Run, arguments: list[str], said: str) -> None:
    status, out, err = run(*LOGGER, *arguments)
    assert (status, out) == (2, "")
    assert said in err.splitlines()[-1]


def test_it_is_of_one_program_on_one_board(run: Run) -> None:
    status, _, err = run("advise", "sqlite/requests", *ALONE)
    assert status == 2
    assert "advise takes one program on one board; --set board= chooses of" in err
