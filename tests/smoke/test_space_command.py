"""`flashbed space` as a user meets it, on the simulator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.smoke.conftest import Run

pytestmark = pytest.mark.extension


def test_it_prints_a_table_that_adds_up(run: Run) -> None:
    status, out, err = run("space")
    assert (status, err) == (0, "")
    rows = [line.split() for line in out.splitlines() if line.startswith((" ubi", "    "))]
    *parts, left, whole = [
        next(int(word.replace(",", "")) for word in reversed(row[: at + 1]) if word[0].isdigit())
        for row in rows
        for at in [next(n for n, word in enumerate(row) if word.endswith("%")) - 1]
    ]
    assert sum(parts) + left == whole == 400 << 17
    assert "df -k: 40172 size, 38096 available" in out


def test_json_has_the_numbers_of_each_stack(run: Run) -> None:
    words = ("--set", "fs=jffs2,yaffs2", "--partition", "4MiB,8MiB", "--files", "3MiB")
    status, out, _ = run("space", *words, "--compressible", "0", "--format", "json")
    assert status == 0
    found = json.loads(out)
    assert [one["partition_bytes"] >> 20 for one in found] == [4, 8, 4, 8]
    for one in found:
        parts = sum(part["bytes"] for part in one["parts"])
        assert parts + one["available_bytes"] == one["partition_bytes"]
        assert one["written"][0]["bytes"] == one["files"]["bytes"] + one["files"]["more_bytes"]


def test_where_jffs2_and_ubifs_cross_is_said_of_one_chip(run: Run) -> None:
    words = ("--set", "fs=jffs2,ubifs", "--compressible", "0", "--partition", "8MiB")
    _, out, _ = run("space", *words)
    assert "JFFS2 holds more random data than UBIFS at every size of this chip" in out
    _, out, _ = run("space", *words, "--set", "chip.blocks=1024,2048")
    assert "of this chip" not in out


@pytest.mark.parametrize(
    ("words", "status", "line"),
    [
        (("--partition", "4MiB"), 1, "the smallest partition that mounts has 61 blocks, 7.625 MiB"),
        (("--files", "41MiB", "--compressible", "0"), 1, "41.00 MiB of files do not fit: "),
        (("--partition", "4MiB", "--fastmap"), 1, "the smallest partition that mounts has 61 "),
        (("--fastmap", "--set", "fs=yaffs2"), 2, "--fastmap: yaffs2 is not on UBI"),
        (("--volume", "60MiB"), 1, "UBI leaves 356 of this partition: 132 too many"),
        (("--volume", "1MiB"), 1, "--volume 1MiB, 9 LEBs: "),
        (("--volume", "1MiB", "--set", "fs=jffs2"), 2, "jffs2 is not on UBI"),
        (("--partition", "big"), 2, "--partition big: a size such as 85MiB"),
        (("--partition", "1GiB"), 2, "--partition 1GiB: 8,192 erase blocks; the chip has 2,048"),
        (("--compressible", "95"), 2, "percents from 0 to 90"),
        (("-c", "200"), 2, "--image FOLDER names what it makes"),
        (("--image", "nowhere"), 2, "--image nowhere: not a folder"),
        (("--image", ".", "--set", "fs=yaffs2"), 2, "there is no mkfs of yaffs2"),
        (("--set", "state=90%full"), 2, "does not hold here"),
    ],
)
def test_what_does_not_fit_is_one_line(
    words: tuple[str, ...], status: int, line: str, run: Run, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    exited, _, err = run("space", *words)
    assert exited == status
    assert line in err
    assert len(err.splitlines()) == 1


def test_a_chip_without_published_times_has_space_too(run: Run) -> None:
    status, out, err = run("space", "--set", "chip=W25N512GW", "--compressible", "0")
    assert status == 0, err
    assert "times are not published" in err
    assert "volume: 386 LEBs of 126,976 bytes" in out
