"""The board that the tests of ssh reach: it is a real one, and what is asked of it is there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.board import SshBoard, ssh_board

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
