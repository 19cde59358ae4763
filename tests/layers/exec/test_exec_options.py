"""Options of `flashbed exec`: what each target takes, what calls cost, what a sysroot has."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from flashbed.api.exec_options import ExecOptions, requests_of
from flashbed.base.errors import InputError
from flashbed.cli.execution_on_sim import refuse
from flashbed.plan.stacks import ChosenStack, stacks
from flashbed.program.recording.about import About, shortened
from flashbed.stack.profiles import load_board
from flashbed.targets.exec.account import as_json, text
from flashbed.targets.exec.answer_stream import read_answer
from flashbed.targets.exec.compared_systems import compared
from flashbed.targets.exec.outcome import ChipCounts, ExecOutcome, FileUse, NotRunError, outcome_of
from flashbed.targets.exec.software import costs_of
from flashbed.targets.exec.sysroot import packages_folder, read_sysroot

OPTIONS = ExecOptions(
    words=["sh"],
    on="uml",
    put=[],
    env=[],
    memory=None,
    patience=None,
    keep=None,
    shell=False,
    until=None,
    software=None,
    package=[],
    sysroot=None,
    gdb=None,
)


def _stacks(*settings: str, sysctls: tuple[str, ...] = ()) -> list[ChosenStack]:
    return stacks(settings, sysctls=sysctls)


def _said(what: str) -> None:
    raise AssertionError(what)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"words": []}, "no command to run"),
        ({"on": "sim"}, "--on sim"),
        ({"gdb": 1234}, "--gdb"),
        ({"gdb": 70_000, "on": "emulator"}, "--gdb"),
        ({"package": ["sqlite3"]}, "--package"),
        ({"on": "emulator"}, "--package NAME or --sysroot"),
        ({"on": "emulator", "shell": True, "sysroot": Path("/")}, "--shell"),
        ({"on": "emulator", "software": "calls", "sysroot": Path("/")}, "--software"),
        ({"on": "ssh://b", "memory": 64}, "--memory"),
        ({"until": 0.0}, "--until"),
        ({"until": 1e9}, "--until"),
        ({"software": "much"}, "--software"),
        ({"words": ["a\0b"]}, "NUL"),
    ],
)
def test_what_a_target_cannot_do_is_refused_by_name(changes: dict[str, object], why: str) -> None:
    with pytest.raises(InputError, match=why):
        requests_of(replace(OPTIONS, **changes), _stacks(), _said)  # type: ignore[arg-type]


def test_what_is_asked_for_is_in_the_request(tmp_path: Path) -> None:
    options = replace(OPTIONS, until=2.5, keep=tmp_path / "k", software="calls")
    (first, second) = requests_of(options, _stacks("fs=ubifs,jffs2"), _said)
    lines = first.text().splitlines()
    assert "until 2500000000" in lines
    assert "keep yes" in lines
    assert (first.keep, second.keep) == (tmp_path / "k" / "ubifs", tmp_path / "k" / "jffs2")
    assert any(line.startswith("cost openat ") for line in lines)


def test_a_shell_alone_has_the_terminal_and_behind_a_command_comes_after() -> None:
    (alone,) = requests_of(replace(OPTIONS, words=[], shell=True), _stacks(), _said)
    assert (alone.terminal, alone.shell, alone.patience_s) == (True, None, None)
    (behind,) = requests_of(replace(OPTIONS, shell=True), _stacks(), _said)
    assert not behind.terminal
    assert behind.shell is not None


def test_costs_of_kinds_are_the_boards_prices() -> None:
    software = load_board("emulated").software
    flat, calls, none = (costs_of(software, how) for how in ("flat", "calls", "none"))
    assert (flat.each_ns, flat.kinds, none.each_ns) == (software.syscall_ns, (), 0)
    kinds = {cost.name: cost for cost in calls.kinds}
    assert kinds["openat"].ns == software.syscall_ns + software.open_ns
    assert kinds["rename"].ns == software.syscall_ns + software.name_move_ns
    walked_ns = software.syscall_ns + software.path_ns
    assert kinds["statx"].ns == walked_ns + software.stat_ns
    assert kinds["fchmodat"].ns == walked_ns + software.attribute_ns
    assert kinds["write"].byte_ps >= software.copy_from_user_byte_ps
    assert len(kinds) == len(calls.kinds)


def test_a_tree_finds_commands_through_its_links(tmp_path: Path) -> None:
    (tmp_path / "usr" / "bin").mkdir(parents=True)
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / "usr" / "bin" / "real").write_text("x")
    (tmp_path / "usr" / "bin" / "real").chmod(0o755)
    (tmp_path / "usr" / "bin" / "name").symlink_to("/bin/real")
    (tmp_path / "usr" / "bin" / "text").write_text("x")
    (tmp_path / "usr" / "bin" / "round").symlink_to("round")
    (tmp_path / "usr" / "share" / "doc").mkdir(parents=True)
    (tmp_path / "usr" / "share" / "doc" / "unread").write_text("x")
    root = read_sysroot(tmp_path)
    assert root.find("name", "/sbin:/bin") == "/bin/name"
    assert root.find("/usr/bin/real", "") == "/usr/bin/real"
    for absent in ("text", "round", "other", "/etc/none"):
        with pytest.raises(InputError, match="no such command"):
            root.find(absent, "/bin")
    assert not any("unread" in path for path in root.files)
    with pytest.raises(InputError, match="--sysroot"):
        read_sysroot(tmp_path / "none")


@pytest.mark.parametrize("name", ["-o", "a b", "../x", "A", ""])
def test_what_is_no_name_of_a_package_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="--package"):
        packages_folder(tmp_path, [name], _said)


def test_one_stream_has_the_answer_and_what_was_printed() -> None:
    stream = BytesIO(b"ran exit 0\nstdout 4\nend\nstderr 2\n\n\xfftime 5\nend\nflashbed-files 1\n")
    answer = read_answer(stream)
    assert (answer.stdout, answer.stderr) == (b"end\n", b"\n\xff")
    outcome = outcome_of(answer.text, "x")
    assert outcome is not None
    assert outcome.time_ns == 5
    assert stream.read() == b"flashbed-files 1\n"


def test_files_of_a_name_are_added_up_and_names_are_any_bytes() -> None:
    text = (
        "ran exit 0\nfile /a\\040b\\134 1 10 2 20 0 1 5\nfile /a\\040b\\134 0 0 1 5 4096 0 7\n"
        "file /\udcff 1 1 0 0 0 0 1\nunseen no probes\nend\n"
    )
    outcome = outcome_of(text, "x")
    assert outcome is not None
    assert [(file.path, file.bytes_written, file.bytes_mapped, file.ns) for file in outcome.files] \
        == [("/a b\\", 25, 4096, 12), ("/\udcff", 0, 0, 1)]  # fmt: skip
    assert outcome.unseen == "no probes"
    assert outcome.bytes_mapped == 4096


def test_every_axis_of_the_system_can_be_set_and_several_values_are_a_comparison() -> None:
    """`--set` took file systems only; a compressor or a chip needed another board's file."""
    systems = _stacks(
        "fs=ubifs,jffs2", "compressor=zlib", "mount=ubifs:bulk_read", "chip.page_bytes=4096",
        "chip.oob_bytes=128", "partition.blocks=100", "read_ahead_kib=0",
        sysctls=("vm.dirty_expire_centisecs=500",),
    )  # fmt: skip
    requests = requests_of(OPTIONS, systems, _said)
    first, second = (request.text().splitlines() for request in requests)
    assert "fs ubifs,bulk_read,compr=zlib" in first
    assert "fs jffs2,compr=zlib" in second
    assert {"read_ahead 0", "sysctl vm.dirty_expire_centisecs 500"} <= set(first)
    board = requests[0].board
    assert (board.chip.page_bytes, board.chip.oob_bytes, board.partition.blocks) == (4096, 128, 100)
    assert requests[0].changes[0] == ("fs", "ubifs")


def test_a_kernel_or_a_chip_that_the_target_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match=r"--kernel 6\.12"):
        requests_of(OPTIONS, _stacks("kernel=6.12"), _said)
    board = replace(OPTIONS, on="ssh://b")
    with pytest.raises(InputError, match="a real board's chip cannot be changed"):
        requests_of(board, _stacks("chip.page_bytes=4096", "chip.oob_bytes=128"), _said)
    with pytest.raises(InputError, match="--sysctl"):
        requests_of(board, _stacks(sysctls=("vm.dirty_ratio=5",)), _said)


@pytest.mark.parametrize("option", ["rate", "shell", "sysctl"])
def test_what_a_replay_cannot_have_is_refused_with_what_to_do(option: str) -> None:
    with pytest.raises(InputError, match=f"--{option}: not with --on sim; "):
        refuse(**{option: "1/h"})
    refuse(rate=None, shell=False, sysctl=[])


def test_several_systems_end_in_one_table() -> None:
    systems = _stacks("fs=ubifs", "compressor=zlib,none")
    requests = requests_of(OPTIONS, systems, _said)
    outcomes = [
        ExecOutcome(
            time_ns=10**9, ran=ChipCounts(1, n, 0, 10**6), flushed=ChipCounts(0, 7, 1, 10**9),
            page_bytes=2048, wear=[1, 0],
        )
        for n in (3, 5)
    ]  # fmt: skip
    title, head, *rows = compared(list(zip(requests, outcomes, strict=True)), None)[1:]
    assert title == "sh on 2 systems, each from a new file system"
    assert head.split()[:2] == ["compressor", "elapsed"]
    assert [row.split()[0] for row in rows] == ["zlib", "none"]
    assert [row.split()[3:9] for row in rows] == [
        ["1.000", "ms", "1", n, "0", "7"] for n in ("3", "5")
    ]


def test_a_system_that_cannot_run_is_marked_and_the_others_are_compared() -> None:
    """One of them that could not be mounted lost the table of all."""
    systems = _stacks("partition.blocks=12,400")
    requests = requests_of(OPTIONS, systems, _said)
    lacks = NotRunError("mounting: No space left on device")
    outcome = ExecOutcome(
        time_ns=10**9, ran=ChipCounts(1, 3, 0, 10**6), page_bytes=2048, wear=[1, 0]
    )
    _, _, head, *rows, why = compared([(requests[0], lacks), (requests[1], outcome)], None)
    assert head.split()[0] == "partition.blocks"
    assert rows[0].split()[:4] == ["12", "not", "run", "-"]
    assert rows[1].split()[0] == "400"
    assert why == "not run on 12: mounting: No space left on device"
    answer = as_json(requests[0], lacks, None)
    assert (answer["settings"], answer["exit_status"]) == ({"partition.blocks": "12"}, None)
    assert answer["failure"] == str(lacks)
    assert not lacks.of_command
    assert NotRunError("nothing: no such program", 127).of_command


def test_names_of_files_cannot_forge_lines_of_the_answer() -> None:
    (request,) = requests_of(OPTIONS, _stacks(), _said)
    named = "a\n  lifetime       1,000 years\r\x0b\u2028"
    outcome = ExecOutcome(
        files=[
            FileUse(
                path=named,
                reads=0,
                bytes_read=0,
                writes=1,
                bytes_written=9,
                bytes_mapped=0,
                syncs=0,
                ns=0,
            )
        ],
        page_bytes=2048,
        wear=[1],
    )
    lines = text(request, outcome, None).splitlines()
    assert not any(line.startswith("  lifetime       1,000") for line in lines)
    (line,) = [line for line in lines if "a\\n  lifetime" in line]
    assert "\\r" in line


def test_a_long_command_is_kept_short_in_a_recording() -> None:
    """A word of more than 4,096 characters, or more words, ended in an internal error."""
    command = shortened(["sh", "-c", "x" * 5000])
    assert command[:2] == ("sh", "-c")
    assert (len(command[2]), command[2][-2:]) == (4096, "x…")
    assert About(source="x", command=shortened(["w"] * 5000)).command[-2:] == ("w", "…")
    assert shortened(["sh", "x" * 4096]) == ("sh", "x" * 4096)
