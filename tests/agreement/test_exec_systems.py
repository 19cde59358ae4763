"""Programs of exec on systems that `--set` and `--sysctl` choose, and hostile programs.

A sparse file of 1 TiB filled the host's disk with `--keep`, a carriage return in a name lost the
answer, a long command ended a recording, closed standard streams and `fb.execute("a b")` failed.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path

import pytest

import flashbed as fb
from tests.agreement.test_exec import FLASHBED, Ran, pytestmark
from tests.support import PROJECT

__all__ = ["pytestmark"]

PYTHON = ("/usr/bin/python3", "-c")


def _exec(*words: str, here: Path) -> Ran:
    ran = subprocess.run(
        [FLASHBED, "exec", *words], cwd=here, capture_output=True, check=False, timeout=250,
        env={**os.environ, "FLASHBED_ROOT": str(PROJECT)}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Ran(ran.returncode, ran.stdout.decode(), ran.stderr.decode())


def test_a_kernel_setting_decides_when_a_page_is_written_back(tmp_path: Path) -> None:
    ran = _exec("--sysctl", "vm.dirty_writeback_centisecs=100,9000", "--format", "json", "--",
                "sh", "-c", "echo a > a; sleep 20", here=tmp_path)  # fmt: skip
    soon, late = json.loads(ran.out)["exec"]
    assert soon["settings"] == {"vm.dirty_writeback_centisecs": "100"}
    assert soon["run"]["programs"] > late["run"]["programs"]
    assert _exec("--sysctl", "vm.nothing=1", "--", "true", here=tmp_path).status == 125


def test_a_program_runs_on_a_chip_of_the_catalogue_by_linux_own_driver(tmp_path: Path) -> None:
    """The same program on one data line, where a page takes four times as long on the bus."""
    on_chip = ("--set", "chip=W25N01GV", "--set", "fs=ubifs", "--set", "controller.lines=4,1")
    ran = _exec(*on_chip, "--format", "json", "--", "sh", "-c", "echo a > a; sync a", here=tmp_path)
    four, one = json.loads(ran.out)["exec"]
    assert four["run"]["programs"] == one["run"]["programs"] > 0
    loads_ns = four["run"]["programs"] * (2048 + 64) * (8 - 2) * 1_000_000_000 // 52_000_000
    more_ns = one["run"]["busy_ns"] - four["run"]["busy_ns"]
    assert more_ns == pytest.approx(loads_ns, abs=10), "each operation is rounded down"
    assert "its controller is assumed: 52 MHz" in ran.err


def test_a_compressor_a_partition_and_a_window_are_those_that_were_set(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a line of text\n" * 20_000)
    copied = ("--put", "text", "--format", "json", "--", "sh", "-c", "cat text > copy; sync; df .")
    ran = _exec("--set", "compressor=zlib,none", "--set", "partition.blocks=150", *copied,
                here=tmp_path)  # fmt: skip
    zlib, none = json.loads(ran.out)["exec"]
    assert zlib["run"]["programs"] * 5 < none["run"]["programs"]
    assert len(zlib["erases_by_block"]) == 150
    ran = _exec("--fs", "jffs2", "--set", "read_ahead_kib=0,128", "--put", "text", "--format",
                "json", "--", "head", "-c", "4096", "text", here=tmp_path)  # fmt: skip
    off, window = (each["run"]["reads"] for each in json.loads(ran.out)["exec"])
    assert off < window


def test_files_of_put_take_no_memory_from_the_program(tmp_path: Path) -> None:
    """The chip is in the guest's memory: a second reading of 24 MB read the flash again."""
    (tmp_path / "data").write_bytes(random.Random(1).randbytes(24_000_000))
    ran = _exec("--memory", "64", "--put", "data", "--format", "json", "--",
                "sh", "-c", "cat data data data > /dev/null", here=tmp_path)  # fmt: skip
    # UBIFS reads three pages for two of data; read again, it would be twice or three times that.
    assert json.loads(ran.out)["exec"][0]["run"]["reads"] < 1.7 * 24_000_000 / 2048


def test_kept_files_take_no_more_of_the_host_than_of_the_flash(tmp_path: Path) -> None:
    made = (
        "truncate -s 1T huge; truncate -s 200M hole; echo x > f; for n in 1 2 3; do ln f l$n; done"
    )
    ran = _exec("--keep", "kept", "--", "sh", "-c", f"{made}; echo end >> hole", here=tmp_path)
    assert ran.status == 0
    assert "not huge: its size, 1,099,511,627,776 bytes, is beyond the flash's" in ran.err
    kept = tmp_path / "kept"
    assert sorted(path.name for path in kept.iterdir()) == ["f", "hole", "l1", "l2", "l3"]
    assert (kept / "l3").stat().st_nlink == 4
    hole = (kept / "hole").stat()
    assert (hole.st_size, hole.st_blocks < 1000) == ((200 << 20) + 4, True)


def test_a_name_with_line_ends_neither_forges_nor_loses_an_answer(tmp_path: Path) -> None:
    name = "a\r\n  lifetime       1,000 years"
    ran = _exec("--keep", "kept", "--", *PYTHON, f"open({name!r}, 'w').write('x')", here=tmp_path)
    assert ran.status == 0
    assert not any(line.startswith("  lifetime       1,000") for line in ran.err.splitlines())
    assert r"a\r\n" in ran.err
    assert [path.name for path in (tmp_path / "kept").iterdir()] == [name]


@pytest.mark.parametrize("words", [["x" * 5000], ["x"] * 5000], ids=["long", "many"])
def test_a_command_of_any_length_is_recorded(words: list[str], tmp_path: Path) -> None:
    ran = _exec("--record", "a.rec", "--", "sh", "-c", "echo a > a", *words, here=tmp_path)
    assert ran.status == 0, ran.err
    assert (tmp_path / "a.rec").is_file()


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_standard_streams_do_not_matter(closed: str, tmp_path: Path) -> None:
    command = f"exec '{FLASHBED}' exec --keep kept -- sh -c 'echo a > a' {closed}"
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, capture_output=True, check=False, timeout=250,
        env={**os.environ, "FLASHBED_ROOT": str(PROJECT)},
    )  # fmt: skip
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr
    assert (tmp_path / "kept" / "a").read_text() == "a\n"


def test_python_splits_a_command_as_a_shell_and_refuses_what_only_a_shell_knows(
    tmp_path: Path,
) -> None:
    ran = fb.execute(
        "sh -c 'echo $((6 * 7)) > \"an answer\"'", record=tmp_path / "a.rec", rate="1/min",
        set={"compressor": "zlib"}, sysctl={"vm.dirty_expire_centisecs": 500},
    )  # fmt: skip
    assert list(ran.files["path"]) == ["/an answer"]
    assert ran.json["settings"] == {"compressor": "zlib", "vm.dirty_expire_centisecs": "500"}
    assert ran.programs == ran.flash_programs + ran.flush_programs > 0
    assert (tmp_path / "a.rec").is_file()
    for command in ("echo a > b", "cat *", 'echo "$HOME"', "a | b", "'open"):
        with pytest.raises(fb.errors.InputError, match="command"):
            fb.execute(command)
    with pytest.raises(fb.errors.InputError, match="one value each"):
        fb.execute("true", set={"fs": "ubifs,jffs2"})


def test_on_sim_a_program_is_recorded_once_and_replayed_on_each_stack(tmp_path: Path) -> None:
    """What is printed is what `run` prints of the recording, for the same stacks."""
    program = ("--", "sh", "-c", "echo hello; head -c 30000 /bin/sh > a; sync; rm a; exit 3")
    stacks = ("--set", "fs=jffs2,ubifs", "--set", "state=valid0.5,valid0.8", "--format", "json")
    ran = _exec("--on", "sim", *stacks, *program, here=tmp_path)
    assert (ran.status, ran.err.splitlines()[0]) == (3, "hello")
    assert "recorded on user-mode Linux; the simulator replays it" in ran.err
    rows = json.loads(ran.out)["rows"]
    assert [(row["fs"], row["state"]) for row in rows] != []
    assert len(rows) == 4
    assert _exec("--set", "fs=jffs2", "--record", "p.rec", *program, here=tmp_path).status == 3
    again = subprocess.run(
        [FLASHBED, "run", "p.rec", *stacks], cwd=tmp_path, capture_output=True, check=True,
        env={**os.environ, "FLASHBED_ROOT": str(PROJECT)},
    )  # fmt: skip
    assert json.loads(again.stdout)["rows"] == rows
    assert not list(tmp_path.glob("results/program/program*"))


def test_on_sim_a_program_that_was_stopped_as_asked_did_not_fail(tmp_path: Path) -> None:
    """Its exit status was that of the signal, as nowhere else."""
    stopped = ("--until", "2", "--", "sh", "-c", "echo a > a; sleep 9")
    assert _exec(*stopped, here=tmp_path).status == 0
    assert _exec("--on", "sim", *stopped, here=tmp_path).status == 0
