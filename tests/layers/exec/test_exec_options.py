"""Options of `flashbed exec`: what each target takes, what calls cost, what a sysroot has."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from flashbed.errors import InputError
from flashbed.exec.answer_stream import read_answer
from flashbed.exec.exec_options import ExecOptions, requests_of
from flashbed.exec.outcome import outcome_of
from flashbed.exec.software import costs_of
from flashbed.exec.sysroot import packages_folder, read_sysroot
from flashbed.formats.profiles import load_board

OPTIONS = ExecOptions(
    ["sh"], "uml", "emulated", "6.1", [], [], None, None, None, False, None, None, [], None, None,
)  # fmt: skip


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
        ({"kernel": "6.12"}, "--kernel"),
        ({"words": ["a\0b"]}, "NUL"),
    ],
)
def test_what_a_target_cannot_do_is_refused_by_name(changes: dict[str, object], why: str) -> None:
    with pytest.raises(InputError, match=why):
        requests_of(replace(OPTIONS, **changes), ["ubifs"], _said)  # type: ignore[arg-type]


def test_what_is_asked_for_is_in_the_request(tmp_path: Path) -> None:
    options = replace(OPTIONS, until=2.5, keep=tmp_path / "k", software="calls")
    (first, second), _ = requests_of(options, ["ubifs", "jffs2"], _said)
    lines = first.text().splitlines()
    assert "until 2500000000" in lines
    assert "keep yes" in lines
    assert (first.keep, second.keep) == (tmp_path / "k" / "ubifs", tmp_path / "k" / "jffs2")
    assert any(line.startswith("cost openat ") for line in lines)


def test_a_shell_alone_has_the_terminal_and_behind_a_command_comes_after() -> None:
    (alone,), _ = requests_of(replace(OPTIONS, words=[], shell=True), ["ubifs"], _said)
    assert (alone.terminal, alone.shell, alone.patience_s) == (True, None, None)
    (behind,), _ = requests_of(replace(OPTIONS, shell=True), ["ubifs"], _said)
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
