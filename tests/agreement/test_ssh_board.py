"""The board that the ssh tests reach is a real one and has everything they need."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.board import SshBoard, ssh_board

pytestmark = [pytest.mark.emulator, pytest.mark.timeout(600)]


def test_it_is_the_kernel_that_was_booted(shared_board: SshBoard) -> None:
    assert shared_board.run("uname -r; uname -m").stdout.split() == [shared_board.release, "armv7l"]


def test_root_is_root_and_the_guest_is_not(shared_board: SshBoard) -> None:
    assert shared_board.run("id -u").stdout == "0\n"
    assert shared_board.run("id -u", name="guest").stdout == "1000\n"
    refused = shared_board.run("head -c 1 /dev/mtd0", name="guest", check=False)
    assert refused.returncode == 1
    assert "Permission denied" in refused.stderr


def test_partitions_have_their_names(shared_board: SshBoard) -> None:
    found = re.findall(r'^mtd(\d): \w+ \w+ "(.*)"$', shared_board.run("cat /proc/mtd").stdout, re.M)
    names = ["flashbed", "u-boot", "rootfs", "data", "spare"]
    assert found == [(str(number), name) for number, name in enumerate(names)]


def test_kprobes_can_be_used(shared_board: SshBoard) -> None:
    tracing = "/sys/kernel/tracing"
    shared_board.run(f"echo p:seen ksys_read >{tracing}/kprobe_events")
    assert "ksys_read" in shared_board.run(f"cat {tracing}/kprobe_events").stdout
    shared_board.run(f"echo >{tracing}/kprobe_events")


def test_a_client_knows_when_the_plug_is_pulled(ssh_parts: None, tmp_path: Path) -> None:
    with ssh_board(tmp_path / "board") as board:
        client = subprocess.Popen(
            [*board.ssh(), "echo begun; sleep 1000"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert client.stdout is not None
            assert client.stdout.readline() == "begun\n"
            board.pull_the_plug()
            assert client.wait(timeout=60) == 255
        finally:
            client.kill()
            client.communicate()


def test_a_silent_board_is_waited_for_as_long_as_the_client_was_told(
    shared_board: SshBoard,
) -> None:
    command = shared_board.ssh()
    shared_board.freeze()
    try:
        lost = subprocess.run(
            [*command[:-1], "-o", "ConnectTimeout=2", command[-1], "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
    finally:
        shared_board.thaw()
    assert lost.returncode == 255
    assert shared_board.run("echo back").stdout == "back\n"


@pytest.fixture(scope="module")
def odd_board(ssh_parts: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshBoard]:
    """A board with everything that flashbed can use."""
    with ssh_board(
        tmp_path_factory.mktemp("odd") / "board",
        tracefs=False,
        tmp_kib=64,
        jffs2_on="data",
        ubi_on="spare",
        arguments=("root=/dev/mtdblock2",),
        extra_init=("echo by hand >/run/note",),
    ) as board:
        yield board


def test_a_board_can_be_without_tracefs(odd_board: SshBoard) -> None:
    refused = odd_board.run("mount -t tracefs trace /mnt", check=False)
    assert refused.returncode != 0
    assert "No such device" in refused.stderr
    assert odd_board.run("ls /sys/kernel/debug").stdout.split().count("tracing") == 0


def test_tmp_can_be_small(odd_board: SshBoard) -> None:
    refused = odd_board.run("dd if=/dev/zero of=/tmp/big bs=1k count=100", check=False)
    assert refused.returncode != 0
    assert "No space left on device" in refused.stderr


def test_partitions_can_be_in_use(odd_board: SshBoard) -> None:
    assert "/dev/mtdblock3 /data jffs2 rw" in odd_board.run("cat /proc/mounts").stdout
    odd_board.run("echo kept >/data/file; sync; umount /data")
    odd_board.run("mount -t jffs2 mtd:data /data")
    assert odd_board.run("cat /data/file").stdout == "kept\n"
    assert odd_board.run("cat /sys/class/ubi/ubi0/mtd_num").stdout == "4\n"


def test_the_kernel_can_be_told_of_another_root(odd_board: SshBoard) -> None:
    assert "root=/dev/mtdblock2" in odd_board.run("cat /proc/cmdline").stdout.split()
    assert odd_board.run("cat /run/note").stdout == "by hand\n"
