"""Boards over ssh without one: what an address is, what a board's rows say, why ssh failed."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashbed.base.errors import InputError
from flashbed.cli.boards import allowed
from flashbed.plan.case import Case
from flashbed.plan.experiment import experiment_names, load_experiment
from flashbed.plan.narrowing import plan
from flashbed.running.programs import programs_of
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Cut, Program
from flashbed.targets.guest.boot import Boot, Machine
from flashbed.targets.guest.stream import Reader
from flashbed.targets.ssh.address import (
    Address,
    AllowedBoard,
    BoardPartition,
    ConfirmedPartition,
    parse_address,
    parse_partition,
)
from flashbed.targets.ssh.connection import explained
from flashbed.targets.ssh.facts import (
    FoundBoard,
    StrangeRowsError,
    read_facts,
    why_not,
)

ROWS = """flashbed-board 1
fact kernel 6.1.9-armmp
fact machine armv7l
fact endian little
fact word_bits 32
fact user root
fact ram_kib 760116
fact free_kib 700000
can kprobes yes
can drop_caches yes
can mount yes
fs jffs2 yes
fs yaffs2 no the kernel does not have it, and modprobe loads none
fs ubifs yes
mtd 0 2048 64 131072 52428800 0 nand data
use 0 yes
mtd 3 2048 64 131072 1048576 - nand u-boot
use 3 no by its name it is a boot loader's or the system's
dir jffs2 0 128
end
"""
HERE = AllowedBoard(Address("board"), ConfirmedPartition(0, "data"))
THERE = AllowedBoard(Address("board", directory="/data"))


def program(**changes: object) -> Program:
    base = Program(
        case_id="c",
        stack=Stack(
            board=load_board("emulated"), kernel=load_kernel("6.1"), fs="jffs2", read_ahead_kib=0
        ),
        prepare="flashbed-ops 1\nprepared\n",
        body="flashbed-ops 1\ndrop_caches\nmark\n",
    )
    below = {field.name for field in fields(Stack)} & changes.keys()
    changed: dict[str, Any] = {name: changes.pop(name) for name in below}
    stack = replace(base.stack, **changed)
    return replace(base, stack=stack, **changes)  # type: ignore[arg-type]


def board(**facts: str) -> FoundBoard:
    found = read_facts(ROWS)
    found.facts |= facts
    return found


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ssh://board", Address("board")),
        ("ssh://root@Board", Address("Board", user="root")),
        ("ssh://root@10.0.0.2:2222", Address("10.0.0.2", user="root", port=2222)),
        ("ssh://board/mnt/data/", Address("board", directory="/mnt/data")),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    "text",
    ["ssh://", "ssh://@", "ssh://-oProxyCommand=x", "ssh://-x@board", "ssh://b:x", "ssh://u:p@b",
     "ssh://b?x=1", "ssh://b\nc", "ssh://%2dx@b", "ssh://b/a%0ab", "ssh://b\x1b[2J"],
)  # fmt: skip
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(InputError, match=r"--on ssh"):
        parse_address(text)
    with pytest.raises(InputError) as why:
        parse_address("ssh://me:secret@board")
    assert "secret" not in str(why.value)


@pytest.mark.parametrize(
    "text", ["ssh://root@h#mtd5", "ssh://h#mtd5:data", "ssh://h/d#", "ssh://h#"]
)
def test_no_address_confirms_a_partition(text: str) -> None:
    with pytest.raises(InputError, match="an address has no #; --erase mtdN:NAME names a"):
        parse_address(text)
    with pytest.raises(InputError, match="an address has no #"):
        allowed(text, None)


def test_a_named_partition_is_confirmed_by_type() -> None:
    board = allowed("ssh://root@h", "mtd5:data")
    assert board == AllowedBoard(Address("h", "root"), ConfirmedPartition(5, "data"))
    assert str(board) == "ssh://root@h"
    with pytest.raises(InputError, match="no terminal to confirm it on"):
        allowed("ssh://root@h", "mtd5")


def test_a_partition_is_named() -> None:
    assert parse_partition("mtd12:my-data", "--erase") == BoardPartition(12, "my-data")
    for text in (
        "mtd",
        "mtdblock5",
        "5",
        "mtd5:",
        "mtd5:a b",
        "/dev/mtd5",
        "mtd5:a\x1b",
        "mtd" + "9" * 5000,
    ):
        with pytest.raises(InputError):
            parse_partition(text, "--erase")


def test_what_a_board_says() -> None:
    found = board()
    assert found.kernel == "6.1.9-armmp"
    assert found.partitions[0].refused is None
    assert found.partitions[3].offset_bytes is None
    assert found.partitions[3].refused == "by its name it is a boot loader's or the system's"
    assert found.mounted is not None
    assert (found.mounted.fs, found.mounted.mtd, found.mounted.read_ahead_kib) == ("jffs2", 0, 128)


@given(st.text(max_size=300), st.integers(0, len(ROWS)))
def test_anything_else_is_refused_and_nothing_breaks(text: str, cut: int) -> None:
    for given_text in (text, ROWS[:cut]):
        if given_text.rstrip("\n") == ROWS.rstrip("\n"):
            continue
        with pytest.raises(StrangeRowsError):
            read_facts(given_text)


@given(st.data())
def test_a_changed_row_is_read_or_refused(data: st.DataObject) -> None:
    lines = ROWS.splitlines()
    at = data.draw(st.integers(1, len(lines) - 2))
    words = lines[at].split(" ")
    words[data.draw(st.integers(0, len(words) - 1))] = data.draw(
        st.sampled_from(["", "-", "x", "1"])
    )
    lines[at] = " ".join(words[: data.draw(st.integers(0, len(words)))])
    with suppress(StrangeRowsError):
        read_facts("\n".join(lines))


@pytest.mark.parametrize(
    ("changes", "allowed_board", "why"),
    [
        ({}, HERE, None),
        ({"kernel": load_kernel("2.6.37")}, HERE, "kernel 2.6.37: the board has Linux 6.1.9"),
        ({"kernel": load_kernel("2.6.37")}, HERE, "--set kernel=6.1"),
        (
            {"board": load_board("emulated-4k")},
            HERE,
            "chip.page_bytes: 4096, mtd0 of the board has",
        ),
        ({"board": load_board("emulated-small")}, HERE, "partition.blocks: "),
        ({"fs": "yaffs2"}, HERE, "fs yaffs2: the kernel does not have it"),
        ({"fs": "mtd"}, HERE, None),
        ({"fs": "mtd-driver"}, HERE, "mtd-driver: "),
        ({"cuts": (Cut(1, 1),)}, HERE, "power cuts: "),
        ({"erases": (1,)}, HERE, "wear and faults: "),
        ({}, THERE, None),
        ({"read_ahead_kib": 128}, THERE, None),
        ({"fs": "ubifs"}, THERE, "fs ubifs: /data of the board is jffs2"),
        ({"fs": "mtd"}, THERE, "fs mtd: /data of the board is jffs2"),
        ({"filled": True}, THERE, "state: /data is used in the state that it has"),
        ({"body": "flashbed-ops 1\nmark\nremount\n"}, THERE, "remount: /data is never unmounted"),
    ],
)
def test_what_a_board_cannot_do(
    changes: dict[str, object], allowed_board: AllowedBoard, why: str | None
) -> None:
    found = why_not(program(**changes), board(), allowed_board)
    assert found is None if why is None else found is not None and why in found


def test_what_a_user_may_not_do() -> None:
    poor = board(user="1000")
    poor.can |= {"mount": "it needs root", "drop_caches": "it needs root"}
    plain = {"body": "flashbed-ops 1\nmark\nsync\n"}
    assert why_not(program(), poor, HERE) == "erasing and mounting: it needs root"
    assert why_not(program(), poor, THERE) == "drop_caches: it needs root"
    other = why_not(program(**plain), poor, THERE)
    assert other == "read_ahead_kib: it is 128 on the board, and changing it needs root"
    assert why_not(program(**plain, read_ahead_kib=128), poor, THERE) is None


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("root@b: Permission denied (publickey).\n", "the login is refused"),
        ("Host key verification failed.\n", "its host key is unknown"),
        ("Connection to b closed by remote host.\r\n", "the connection dropped"),
        ("client_loop: send disconnect: Broken pipe\n", "the connection dropped"),
        (
            "Timeout, server b not responding.\n",
            "the connection dropped: the board no longer answers",
        ),
        ("ssh: connect to host b port 22: Connection timed out\n", "it cannot be reached"),
        ("", "ssh failed"),
    ],
)
def test_why_ssh_failed(said: str, why: str) -> None:
    line = explained(Address("b", user="root"), said)
    assert line.startswith(f"root@b: {why}")
    assert "\n" not in line


@pytest.mark.parametrize(
    ("says", "said"),
    [
        (r"s390x\n\177ELF\2\2", "no agent for a board of s390x, big endian"),
        (r"mips\n\177ELF\1\2", "no agent for a board of mips, big endian"),
        (r"i686\n\177ELF\1\1", "no agent for a board of i686"),
    ],
)
def test_a_board_of_an_unknown_architecture(tmp_path: Path, says: str, said: str) -> None:
    client = tmp_path / "client"
    client.write_text(f"#!/bin/sh\nprintf '{says}'\n")
    client.chmod(0o755)
    done = subprocess.run(
        [str(Path(sys.executable).parent / "flashbed"), "doctor", "--on", "ssh://root@old"],
        env={**os.environ, "FLASHBED_SSH": str(client)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == f"flashbed: root@old: {said}\n"


def test_a_missing_client_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "flashbed"), "doctor", "--on", "ssh://board"],
        env={**os.environ, "FLASHBED_SSH": "no-such-client -v"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        1,
        "flashbed: no-such-client is not installed (on Debian: apt-get install openssh-client)\n",
    )


def test_counts_that_nobody_saw_are_unknown() -> None:
    text = "flashbed-stream 1\ncase c\nc - - - 0\nend c\n"
    *_, case = Reader().feed(text.encode())
    assert getattr(case, "counts", None) == (None, None, None, 0)


def test_a_job_by_pipes(tmp_path: Path) -> None:
    """The process gets the job on standard input; its messages are separate from the stream."""
    machine = Machine(
        name="the board",
        process="ssh",
        command=["sh", "-c", "echo said >&2; cat; exit 3"],
        patience_s=60,
        patience_variable="none",
        by_pipes=True,
        why_ended=lambda status, said: f"{status}: {said.strip()}",
    )
    with Boot(tmp_path / "boot", machine, "the job\n") as boot:
        assert b"".join(boot.stream()) == b"the job\n"
        assert boot.why_ended() == "3: said"


@pytest.mark.parametrize("name", experiment_names())
def test_every_experiment_can_be_asked_of_a_board(name: str) -> None:
    """Each case that differs in what a board may lack is measured, or there is a reason."""
    experiment = load_experiment(name)
    seen: dict[tuple[object, ...], Case] = {}
    for item in plan(experiment):
        case = item.case
        kinds = (
            case.board,
            case.kernel,
            case.fs,
            case.mount,
            str(case.faults),
            str(case.state),
        )
        seen.setdefault(kinds, case)
    chosen = list(seen.values())[:12]
    for one in programs_of(experiment, chosen):
        for address in (HERE, THERE):
            why = why_not(one, board(), address)
            assert why is None or (why and "\n" not in why)
