"""A replay makes the files that a program met, not the whole folder that it ran in."""

from __future__ import annotations

import stat

from flashbed.program.recording.calls import Call
from flashbed.program.recording.needed_files import needed_by

THERE = {
    b"a": stat.S_IFREG, b"d": stat.S_IFDIR, b"d/one": stat.S_IFREG, b"d/deep": stat.S_IFDIR,
    b"d/deep/two": stat.S_IFREG, b"l": stat.S_IFLNK, b"other": stat.S_IFREG,
}  # fmt: skip


def needed(*calls: tuple[str, dict[str, int | bytes]]) -> set[bytes]:
    links = {path: b"d/one" for path, kind in THERE.items() if kind == stat.S_IFLNK}
    folders = {path for path, kind in THERE.items() if kind == stat.S_IFDIR}
    made = [
        Call(task=0, start_ns=0, duration_ns=0, cpu_ns=None, name=name, arguments=arguments)
        for name, arguments in calls
    ]
    wanted = needed_by(made, links, folders)
    return {path for path in THERE if wanted(path)}


def test_what_is_named_and_the_folders_above_it_are_made() -> None:
    assert needed(("openat", {"path": b"d/deep/two", "flags": 0})) == {
        b"d", b"d/deep", b"d/deep/two",
    }  # fmt: skip
    assert needed(("unlink", {"path": b"a"}), ("write", {"descriptor": 1, "length": 1})) == {b"a"}


def test_entries_of_an_opened_folder_are_made_and_no_deeper() -> None:
    assert needed(("openat", {"path": b"d", "flags": 0})) == {b"d", b"d/one", b"d/deep"}
    assert needed(("openat", {"path": b".", "flags": 0})) == {b"a", b"d", b"l", b"other"}


def test_all_below_a_renamed_folder_comes_along() -> None:
    renamed = needed(("rename", {"path": b"d", "to_path": b"e"}))
    assert renamed == {b"d", b"d/one", b"d/deep", b"d/deep/two"}


def test_a_link_is_made_with_what_it_leads_to() -> None:
    assert needed(("openat", {"path": b"l", "flags": 0})) == {b"l", b"d", b"d/one"}


def test_a_program_that_meets_nothing_begins_on_an_empty_flash() -> None:
    assert needed(("openat", {"path": b"new", "flags": 0})) == set()
