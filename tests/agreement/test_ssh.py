"""A board over ssh, end to end: the program, the system's ssh, a real server, a real kernel.

What is measured is held against the simulator, which agrees with this kernel in every flash read of
these cases (test_validation.py). After everything, good or bad, the board is as it was.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pytest

from tests.support import PROJECT
from tests.support import SMALL as SMALL_FILE
from tests.support.board import SshBoard, ssh_board

pytestmark = [pytest.mark.emulator, pytest.mark.timeout(900)]

USED = ("--erase", "mtd0:flashbed")
SMALL = str(SMALL_FILE)
NARROW = ("--set", "board=emulated", "--set", "kernel=6.1", "--set", "seed=1")
STATE = (
    "cat /proc/mounts; ls -A /tmp /run /data; ls /sys/class/ubi; ls /sys/kernel/tracing/instances;"
    " cat /sys/kernel/tracing/kprobe_events; cat /sys/class/bdi/mtd-0/read_ahead_kb; cat /proc/mtd"
)
WAIT_S = 60.0
FLASHBED = str(Path(sys.executable).parent / "flashbed")


def flashbed(
    board: SshBoard, *words: str, text: str = "", check: bool = True, config: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """The program, with the board's configuration of ssh."""
    done = subprocess.run(
        [FLASHBED, *words],
        env={**os.environ, "FLASHBED_SSH": f"ssh -F {config or board.config}"},
        input=text,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def state_of(board: SshBoard) -> str:
    return board.run(STATE, check=False).stdout


def settled(board: SshBoard, before: str) -> str:
    """What the board is like when its agent has had time to notice."""
    since = time.monotonic()
    while (now := state_of(board)) != before and time.monotonic() - since < WAIT_S:
        time.sleep(0.5)
    return now


def cases(directory: Path) -> pl.DataFrame:
    return pl.read_parquet(directory / "cases.parquet").sort("case_id")


def simulated(directory: Path, *words: str) -> pl.DataFrame:
    command = [FLASHBED, "run", SMALL, "--out", str(directory), *words]
    subprocess.run(command, check=True, capture_output=True)
    return cases(directory)


@pytest.fixture
def unchanged(shared_board: SshBoard) -> Iterator[SshBoard]:
    """The shared board, which is afterwards as it was."""
    before = state_of(shared_board)
    yield shared_board
    assert settled(shared_board, before) == before


def test_a_partition_is_measured_as_the_simulator_says(unchanged: SshBoard, tmp_path: Path) -> None:
    out = tmp_path / "board"
    few = (*NARROW, "--set", "requests=8", "--set", "read_ahead_kib=128,0,default")
    words = ("run", SMALL, "--on", "ssh://board", *USED, *few, "--out", str(out))
    done = flashbed(unchanged, *words)
    assert "12 cases measured" in done.stderr
    there, here = cases(out), simulated(tmp_path / "sim", *few)
    assert there["target"].unique().to_list() == ["board"]
    assert there["kernel_release"].unique().to_list() == [unchanged.release]
    assert there["case_id"].to_list() == here["case_id"].to_list()
    for column in ("flash_reads", "flash_programs", "flash_erases", "bytes", "read_ahead_kib"):
        assert there[column].to_list() == here[column].to_list()
    assert set(there.filter(window="default")["read_ahead_kib"]) == {0}
    assert (there["time_ns"] > there["flash_time_ns"]).all()
    assert "0 cases measured, 12 were there" in flashbed(unchanged, *words).stderr


@pytest.mark.long
def test_what_the_board_lacks_is_not_measured(unchanged: SshBoard, tmp_path: Path) -> None:
    out = tmp_path / "board"
    few = ("--set", "requests=8", "--set", "seed=1", "--set", "pattern=random")
    done = flashbed(unchanged, "run", SMALL, "--on", "ssh://board", *USED, *few, "--out", str(out))
    assert "4 cases measured" in done.stderr
    assert "8 more" not in done.stderr
    assert f"kernel 2.6.37: the board has Linux {unchanged.release}" in done.stderr
    table = flashbed(unchanged, "table", str(out), "not_measured", "--format", "json").stdout
    reasons = {row["reason"] for row in json.loads(table)}
    assert len(reasons) == 2
    assert all(reason.startswith("kernel 2.6.37") for reason in reasons)
    page = out / "report.html"
    flashbed(unchanged, "report", str(out), "--out", str(page))
    assert f"kernel 2.6.37: the board has Linux {unchanged.release}" in page.read_text()


def test_nothing_is_erased_without_being_named(unchanged: SshBoard, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "out"))
    run = ("run", SMALL, "--on", "ssh://board", *NARROW, *out)
    for words, status, said in (
        ((), 2, "which part of the board to use? --erase mtdN:NAME"),
        (("--erase", "mtd0"), 2, "there is no terminal to confirm it on; --erase mtd0:NAME"),
        (("--erase", "data"), 2, "--erase data: not a partition, such as mtd5"),
        (("--erase", "mtd0:data"), 1, "mtd0 is called flashbed, not data"),
        (("--erase", "mtd9:data"), 1, "no case could be measured there"),
        (("--erase", "mtd1:u-boot"), 1, "no case could be measured there"),
        (("--on", "ssh://board#mtd0"), 2, "an address has no #"),
        (("--on", "ssh://board#mtd0:flashbed"), 2, "an address has no #"),
    ):
        done = flashbed(unchanged, *run, *words, check=False)
        assert done.returncode == status, done.stderr
        assert said in done.stderr
    refused = unchanged.run("true")
    assert refused.returncode == 0


def test_doctor_says_what_there_is(unchanged: SshBoard) -> None:
    found = json.loads(
        flashbed(unchanged, "doctor", "--on", "ssh://board", "--format", "json").stdout
    )
    assert found["facts"]["kernel"] == unchanged.release
    assert found["facts"]["user"] == "root"
    assert found["kernel_profile"] == "6.1"
    assert set(found["can"].values()) == {None}
    assert found["partitions"]["0"]["refused"] is None
    assert "boot loader" in found["partitions"]["1"]["refused"]
    text = flashbed(unchanged, "doctor", "--on", "ssh://board").stdout
    assert "mtd1" in text
    assert "by its name it is a boot loader's or the system's" in text


def test_without_root_there_are_reasons(unchanged: SshBoard, tmp_path: Path) -> None:
    found = json.loads(
        flashbed(unchanged, "doctor", "--on", "ssh://guest", "--format", "json").stdout
    )
    assert found["can"]["kprobes"] == "tracing needs root"
    assert found["can"]["drop_caches"] == "it needs root"
    out = ("--out", str(tmp_path / "out"))
    done = flashbed(
        unchanged, "run", SMALL, "--on", "ssh://guest", *USED, *NARROW, *out, check=False
    )
    assert done.returncode == 1
    assert "not measured: case" in done.stderr
    assert "erasing and mounting: it needs root" in done.stderr


def test_a_command_is_traced(unchanged: SshBoard, tmp_path: Path) -> None:
    words = ("trace", "--on", "ssh://board", "--vfs", "--out", str(tmp_path / "trace"))
    done = flashbed(unchanged, *words, "--", "sh", "-c", "head -n 1 /etc/passwd; exit 3")
    assert "root:x:0:0" in done.stderr
    vfs = pl.read_parquet(tmp_path / "trace" / "vfs.parquet")
    read = vfs.filter((pl.col("kind") == "read") & (pl.col("file") == "passwd"))
    assert read["task"].to_list() == ["head"]
    facts = json.loads((tmp_path / "trace" / "trace.json").read_text())
    assert facts["status"] == 3
    assert facts["lost"] == 0


@pytest.mark.long
def test_a_case_is_traced(unchanged: SshBoard, tmp_path: Path) -> None:
    out = tmp_path / "trace"
    narrow = ("--set", "fs=jffs2", "--set", "requests=8", "--set", "pattern=random")
    flashbed(
        unchanged, "trace", "--on", "ssh://board", *USED, "--flash", "--vfs", *NARROW, *narrow,
        "--set", "read_ahead_kib=0", "--out", str(out), SMALL,
    )  # fmt: skip
    flash, vfs = (pl.read_parquet(out / f"{name}.parquet") for name in ("flash", "vfs"))
    here = simulated(tmp_path / "sim", *NARROW, *narrow, "--set", "read_ahead_kib=0")
    assert flash.height == here["flash_reads"].sum()
    # Every reading process is in the trace: now and then the board's ssh server, from its socket.
    assert vfs.filter(kind="read", file="file.bin").height == 8


@pytest.mark.parametrize(
    ("change", "address", "said"),
    [
        ("key", "ssh://board", "the login is refused"),
        ("known_hosts", "ssh://board", "its host key is unknown or has changed"),
        (None, "ssh://127.0.0.1:1", "it cannot be reached: no ssh server answers there"),
        (None, "ssh://nowhere.invalid", "there is no host of that name"),
    ],
)
def test_a_board_that_cannot_be_had(
    unchanged: SshBoard, tmp_path: Path, change: str | None, address: str, said: str
) -> None:
    config = tmp_path / "config"
    text = unchanged.config.read_text()
    if change:
        text = text.replace(str(unchanged.folder / change), str(tmp_path / change))
    config.write_text(text)
    if change == "key":
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")]
        subprocess.run(make, check=True)
    for words in (("doctor", "--on", address), ("run", SMALL, "--on", address, *USED, *NARROW)):
        out = () if words[0] == "doctor" else ("--out", str(tmp_path / "out"))
        done = flashbed(unchanged, *words, *out, config=config, check=False)
        assert done.returncode == 1
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def begun(board: SshBoard, out: Path, seeds: Sequence[int] = range(1, 40)) -> subprocess.Popen[str]:
    """A run that has measured something and continues."""
    numbers = ",".join(map(str, seeds))
    words = ("--set", "board=emulated", "--set", "kernel=6.1", "--set", f"seed={numbers}")
    child = subprocess.Popen(
        [FLASHBED, "run", SMALL, "--on", "ssh://board", *USED, *words,
         "--out", str(out)],
        env={**os.environ, "FLASHBED_SSH": f"ssh -F {board.config}"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    since = time.monotonic()
    while not any((out / "parts").glob("0*")):
        assert child.poll() is None, child.communicate()
        assert time.monotonic() - since < 2 * WAIT_S
        time.sleep(0.2)
    return child


def test_a_client_that_is_killed_leaves_nothing_on_the_board(
    unchanged: SshBoard, tmp_path: Path
) -> None:
    child = begun(unchanged, tmp_path / "out")
    os.killpg(child.pid, 9)
    child.communicate()


@pytest.mark.long
def test_an_agent_that_is_killed_is_tidied_up_after(unchanged: SshBoard, tmp_path: Path) -> None:
    before = state_of(unchanged)
    child = begun(unchanged, tmp_path / "out", range(1, 4))
    unchanged.run("kill -9 $(pidof flashbed-agent)")
    _, said = child.communicate(timeout=300)
    assert child.returncode == 1
    assert "cases failed" in said
    assert settled(unchanged, before) == before


def test_only_what_is_its_own_is_tidied_up(unchanged: SshBoard, tmp_path: Path) -> None:
    """Every user may write to /tmp: a folder there that is another user's is not believed."""
    says = r"pid 999999\nmtd -1\nfolder /run/kept\nwindow \nkib \n"
    lies = f"printf '{says}' >/tmp/flashbed-bad/state"
    unchanged.run("mkdir -p /run/kept; touch /run/kept/file")
    unchanged.run(f"mkdir /tmp/flashbed-bad; {lies}", name="guest")
    few = (*NARROW, "--set", "requests=8", "--set", "fs=jffs2", "--set", "pattern=random")
    out = ("--out", str(tmp_path / "out"))
    flashbed(unchanged, "run", SMALL, "--on", "ssh://board", *USED, *few, *out)
    unchanged.run("rm /run/kept/file /tmp/flashbed-bad/state; rmdir /run/kept /tmp/flashbed-bad")


@pytest.mark.long
def test_an_abandoned_home_is_tidied_up(unchanged: SshBoard, tmp_path: Path) -> None:
    """What an agent has left that was killed with its guard: the next one takes it back."""
    child = begun(unchanged, tmp_path / "out", range(1, 4))
    homes = "/tmp/flashbed-*"
    unchanged.run(f"kill -9 $(sed -n 's/^pid //p' {homes}/state)")
    child.communicate(timeout=300)
    left = unchanged.run(f"ls -d {homes}", check=False).stdout
    few = (*NARROW, "--set", "requests=8", "--set", "fs=jffs2", "--set", "pattern=random")
    out = ("--out", str(tmp_path / "again"))
    flashbed(unchanged, "run", SMALL, "--on", "ssh://board", *USED, *few, *out)
    assert "flashbed-" not in unchanged.run("ls /tmp; cat /proc/mounts").stdout, left


def test_interrupted_it_keeps_what_is_whole(unchanged: SshBoard, tmp_path: Path) -> None:
    out = tmp_path / "out"
    child = begun(unchanged, out)
    child.send_signal(2)
    _, said = child.communicate(timeout=120)
    assert child.returncode == 130, said
    assert cases(out).height > 0


@pytest.mark.long
def test_a_connection_that_drops(ssh_parts: None, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with ssh_board(tmp_path / "board") as board:
        child = begun(board, out)
        board.pull_the_plug()
        _, said = child.communicate(timeout=300)
        assert child.returncode == 1
        assert "the connection dropped" in said
        assert re.search(r"\d+ cases failed; the others are kept", said)
        assert cases(out).height > 0


@pytest.fixture(scope="module")
def busy_board(ssh_parts: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshBoard]:
    """One whose flash is in use: mounted, attached, the root's, under other names than usual."""
    with ssh_board(
        tmp_path_factory.mktemp("busy") / "board",
        jffs2_on="data",
        ubi_on="spare",
        arguments=("root=/dev/mtdblock0",),
    ) as board:
        yield board


def test_partitions_in_use_are_refused(busy_board: SshBoard, tmp_path: Path) -> None:
    before = state_of(busy_board)
    found = json.loads(
        flashbed(busy_board, "doctor", "--on", "ssh://board", "--format", "json").stdout
    )
    refused = {there["name"]: there["refused"] for there in found["partitions"].values()}
    assert refused["data"] == "it is mounted"
    assert refused["spare"].startswith("it is attached to UBI as ubi0")
    assert refused["flashbed"] == "the kernel's command line has the root file system on it"
    assert "boot loader" in refused["u-boot"]
    out = ("--out", str(tmp_path / "out"))
    done = flashbed(
        busy_board, "run", SMALL, "--on", "ssh://board", *USED, *NARROW, *out, check=False
    )
    assert done.returncode == 1
    assert "mtd0 (flashbed) is not erased: the kernel's command line has the root" in done.stderr
    assert settled(busy_board, before) == before


@pytest.fixture(scope="module")
def plain_board(ssh_parts: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshBoard]:
    """Nothing to trace with, little room, and the emulated board's partition mounted on /data."""
    with ssh_board(
        tmp_path_factory.mktemp("plain") / "board",
        tracefs=False,
        tmp_kib=32,
        jffs2_on="flashbed",
        extra_init=("umount /sys/kernel/debug", "echo kept >/data/note"),
    ) as board:
        yield board


def test_a_directory_is_measured_and_left_as_it_was(plain_board: SshBoard, tmp_path: Path) -> None:
    before = state_of(plain_board)
    done = flashbed(
        plain_board, "run", SMALL, "--on", "ssh://board/data", *NARROW, "--out",
        str(tmp_path / "out"),
    )  # fmt: skip
    assert "8 cases measured" in done.stderr
    assert "fs ubifs: /data of the board is jffs2" in done.stderr
    table = cases(tmp_path / "out")
    assert table["fs"].unique().to_list() == ["jffs2"]
    assert table["flash_reads"].null_count() == table.height
    assert (table["time_ns"] > 0).all()
    assert settled(plain_board, before) == before
    assert plain_board.run("cat /data/note").stdout == "kept\n"


@pytest.mark.long
def test_a_file_system_that_becomes_full_costs_the_case(
    plain_board: SshBoard, tmp_path: Path
) -> None:
    before = state_of(plain_board)
    text = Path(SMALL).read_text().split("[measures]")[0]
    text = text.replace("524_288", "67_108_864").replace("4096", "131_072")
    path = tmp_path / "full.toml"
    path.write_text(text)
    words = ("--set", "requests=8", "--set", "pattern=random", "--out", str(tmp_path / "out"))
    done = flashbed(
        plain_board, "run", str(path), "--on", "ssh://board/data", *NARROW, *words, check=False
    )
    assert done.returncode == 1
    assert "ENOSPC" in done.stderr
    assert "file system is full" in done.stderr
    assert settled(plain_board, before) == before


def test_an_agent_that_fits_nowhere(plain_board: SshBoard, tmp_path: Path) -> None:
    tiny = "mount -t tmpfs -o size=8k tiny"
    folders = ("/run", "/dev/shm", "/var/tmp")
    plain_board.run("; ".join(f"mkdir -p {folder}; {tiny} {folder}" for folder in folders))
    try:
        done = flashbed(plain_board, "doctor", "--on", "ssh://board", check=False)
    finally:
        plain_board.run("umount " + " ".join(folders))
    assert done.returncode == 1
    assert "the agent cannot be put there: /tmp: " in done.stderr
    assert "No space left on device" in done.stderr


@pytest.mark.long
def test_the_worked_example(
    plain_board: SshBoard, unchanged: SshBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guide's commands in their order: this board's partition, and a smaller experiment.

    But calibrating and validating, which take hours.
    """
    project = PROJECT
    root = tmp_path / "root"
    root.mkdir()
    for there in project.iterdir():
        if there.name not in ("boards", "results"):
            (root / there.name).symlink_to(there)
    shutil.copytree(project / "boards", root / "boards")
    monkeypatch.setenv("FLASHBED_ROOT", str(root))
    monkeypatch.chdir(tmp_path)
    text = (project / "docs" / "guide" / "my-board.md").read_text()
    commands = [
        line
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
        for line in block.replace("\\\n", " ").split("\n")
        if line and not line.startswith(("flashbed calibrate", "flashbed validate"))
    ]
    assert len(commands) == 7
    unchanged.run("head -c 200000 /dev/zero >/data/big")
    for command in commands:
        board = plain_board if "board/data" in command else unchanged
        words = shlex.split(command.replace("root@board", "board"))
        words = [
            word.replace("mtd5:data", "mtd0:flashbed").replace("mtd5", "mtd0") for word in words[1:]
        ]
        words = [SMALL if word == "figure3" else word for word in words]
        done = flashbed(board, *words)
        if "--blank" in words:
            blank = flashbed(board, "run", SMALL, "--set", "board=mine", check=False)
            assert blank.returncode == 2
            assert "boards/mine.toml: board" not in blank.stderr
            assert "boards/mine.toml: chip" in blank.stderr
            fill_in(root / "boards" / "mine.toml", root / "boards" / "emulated.toml")
        assert done.stdout
    page = (tmp_path / "results" / "mine" / "report.html").read_text()
    assert "the board over ssh" in page
    assert "Simulator against kernel" in page
    unchanged.run("rm /data/big")


def fill_in(mine: Path, known: Path) -> None:
    """Stands in for a data sheet: the known profile's value of each key that is `?`."""
    table, lines = "", []
    values = tomllib.loads(known.read_text())
    for line in mine.read_text().splitlines():
        if line.startswith("["):
            table = line.strip("[]")
        key, equals, value = line.partition(" = ")
        if equals and value.startswith('"?"'):
            value = json.dumps(values[table][key])
        lines.append(f"{key}{equals}{value}")
    mine.write_text("\n".join(lines) + "\n")
