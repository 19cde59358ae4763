"""What may be left of a program of version 2, by cases made by hand, one call at a time."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import pytest

from flashbed.base.errors import InputError
from flashbed.bench.powercut.cutting import with_data
from flashbed.bench.powercut.judge import CORRUPT, LOST, RECOVERED, DoneOperation, judge
from flashbed.bench.powercut.symlinks import Symlink, resolved
from flashbed.program.content import generated, generated_pieces
from flashbed.program.operations import HEADER_2, parse
from flashbed.targets.base import Run, Survey, SurveyedFile

Found = Mapping[str, bytes | str]
"""Path -> a file's bytes, or what a symbolic link leads to."""


def bytes_of(length: int, seed: int, offset: int = 0) -> bytes:
    return generated(offset, length, seed, 0).tobytes()


OLD, NEW = bytes_of(100, 1), bytes_of(100, 2)


def done(text: str) -> list[DoneOperation]:
    """Operations that each make one change; `= RESULT` behind one is what it returned."""
    lines = [line.partition(" = ") for line in text.strip().splitlines()]
    operations = parse("\n".join((HEADER_2, *(words for words, _, _ in lines), "")))
    results = iter([after for words, _, after in lines if not words.startswith(("data", "task"))])
    steps = []
    for change, (operation, data) in enumerate(with_data(operations), start=1):
        fields, said = operation.fields, next(results)
        length = {"write": 2, "copy": 4}.get(operation.name)
        result = int(fields[length]) if length else 0
        steps.append(
            DoneOperation(
                operation=operation, result=int(said) if said else result, changes=change, data=data
            )
        )
    return steps


def verdict(text: str, found: Found, after: int | None = None) -> tuple[str, str | None]:
    """Of a cut after so many operations, by default after all."""
    steps = done(text)
    files = tuple(
        SurveyedFile(path, 0, (), what)
        if isinstance(what, str)
        else SurveyedFile(path, len(what), (Run(0, len(what), what),) if what else ())
        for path, what in found.items()
    )
    change = (len(steps) if after is None else after) + 1
    (one,) = judge(
        steps,
        [
            Survey(
                case_id="case",
                change=change,
                mount_result=0,
                mount_time_ns=1,
                files=files,
                probe_result=0,
            )
        ],
    )
    return one.verdict, one.reason


WRITTEN = "open 0 a rw,create\nwrite 0 0 100 1 0\n"
SYNCED = WRITTEN + "fsync 0\n"


@pytest.mark.parametrize("sync", ["fsync 0", "fdatasync 0", "sync", "syncfs 0"])
def test_pieces_and_recorded_bytes_are_acknowledged_byte_by_byte(sync: str) -> None:
    recorded = base64.b64encode(b"recorded").decode()
    text = f"open 0 a rw,create\nwrite 0 0 100 7 30+50\n{sync}\n"
    pieces = generated_pieces(0, 100, 7, "30+50").tobytes()
    assert verdict(text, {"a": pieces})[0] == RECOVERED
    assert verdict(text, {"a": pieces[:30] + bytes(70)}) == (
        LOST,
        "a: offset 30: acknowledged bytes are zero",
    )
    text = f"open 0 a rw,create\ndata {recorded}\nwrite 0 0 8 0 data\n{sync}\n"
    assert verdict(text, {"a": b"recorded"})[0] == RECOVERED
    assert verdict(text, {"a": b"recordeD"}) == (
        LOST,
        "a: offset 7: acknowledged bytes are bytes that it may not hold",
    )


def test_a_copy_has_the_bytes_of_its_source_then() -> None:
    text = SYNCED + "open 1 b rw,create\ncopy 0 10 1 0 50\nwrite 0 0 100 2 0\nfsync 1\n"
    assert verdict(text, {"a": NEW, "b": OLD[10:60]})[0] == RECOVERED
    assert verdict(text, {"a": OLD, "b": OLD[10:60]})[0] == RECOVERED
    assert verdict(text, {"a": NEW, "b": NEW[10:60]})[0] == LOST
    synchronous = text.replace("b rw,create", "b rw,create,dsync").replace("fsync 1\n", "")
    assert verdict(synchronous, {"a": NEW, "b": b""})[0] == LOST


def test_each_name_of_a_file_is_acknowledged_by_itself() -> None:
    text = SYNCED + "link a b\nwrite 0 0 100 2 0\nfsync 0\n"
    assert verdict(text, {"a": NEW})[0] == RECOVERED
    assert verdict(text, {"a": NEW, "b": NEW})[0] == RECOVERED
    assert verdict(text, {"a": NEW, "b": OLD})[0] == CORRUPT
    assert verdict(text + "sync\n", {"a": NEW})[0] == LOST
    moved = text + "unlink a\n"
    assert verdict(moved, {"b": NEW})[0] == RECOVERED
    assert verdict(moved, {}) == (LOST, "a: was being renamed to b, and neither name exists")


def test_renaming_one_of_two_names_onto_the_other_does_nothing() -> None:
    text = SYNCED + "link a b\nsync\nrename a b\nsync\n"
    assert verdict(text, {"a": OLD, "b": OLD})[0] == RECOVERED
    assert verdict(text, {"b": OLD})[0] == LOST


def test_a_file_without_a_name_gets_one_when_its_folder_is_synced() -> None:
    text = "open 0 . rw,tmpfile\nwrite 0 0 100 1 0\nfsync 0\nlink SLOT:0 a\nopen 1 . ro,directory\n"
    for left in ({}, {"a": OLD}):
        assert verdict(text, left)[0] == RECOVERED
    assert verdict(text, {"a": b""})[0] == CORRUPT
    assert verdict(text + "fsync 1\n", {})[0] == LOST


def test_a_symbolic_link_leads_where_it_was_made_to() -> None:
    text = "symlink x/y s\nopen 0 . ro,directory\nfsync 0\n"
    assert verdict(text, {"s": "x/y"})[0] == RECOVERED
    assert verdict(text, {"s": "x"}) == (LOST, "s: leads to x, and had been made to lead to x/y")
    assert verdict(text, {"s": b""}) == (LOST, "s: is a file, and had been a symbolic link")
    assert verdict(text, {}, after=2)[0] == RECOVERED
    assert verdict(text, {})[0] == LOST


def test_files_are_opened_through_links() -> None:
    text = "mkdir d\nsymlink d s\nsync\nopen 0 s/a rw,create\nwrite 0 0 100 1 0\nfsync 0\n"
    assert verdict(text, {"s": "d", "d/a": OLD})[0] == RECOVERED
    assert verdict(text, {"s": "d"}) == (LOST, "d/a: is missing, and had been acknowledged")


@pytest.mark.parametrize(
    ("path", "follow", "leads"),
    [
        ("s", True, "d"),
        ("s", False, "s"),
        ("s/x", False, "d/x"),
        ("d/up", True, "a"),
        ("two/x", False, "d/x"),
        ("d/out", True, None),
        ("root", True, None),
        ("loop", True, None),
        (".", True, "."),
    ],
)
def test_paths_are_walked_as_the_kernel_walks_them(
    path: str, follow: bool, leads: str | None
) -> None:
    links = {
        "s": "d",
        "d/up": "../a",
        "two": "./s",
        "d/out": "../../a",
        "root": "/",
        "loop": "loop",
    }
    tree = {name: Symlink(target) for name, target in links.items()}
    assert resolved(path, tree.get, follow=follow) == leads


def test_msync_acknowledges_its_pages_and_no_others() -> None:
    text = (
        "open 0 a rw,create\nwrite 0 0 12288 1 0\nfsync 0\nmmap 0 0 4096 8192 rw\n"
        "store 0 10 20 2 0\nstore 0 5000 20 2 0\nmsync 0 0 30 sync\n"
    )
    old = bytearray(bytes_of(12_288, 1))
    first, both = bytearray(old), bytearray(old)
    for content in (first, both):
        content[4106:4126] = bytes_of(20, 2, 4106)
    both[9096:9116] = bytes_of(20, 2, 9096)
    assert verdict(text, {"a": bytes(first)})[0] == verdict(text, {"a": bytes(both)})[0]
    assert verdict(text, {"a": bytes(first)})[0] == RECOVERED
    assert verdict(text, {"a": bytes(old)})[0] == LOST
    assert verdict(text, {"a": bytes(old)}, after=6)[0] == RECOVERED
    asynchronous = text.replace("30 sync", "30 async")
    assert verdict(asynchronous, {"a": bytes(old)})[0] == RECOVERED
    assert verdict(text + "fsync 0\n", {"a": bytes(first)})[0] == LOST


def test_tasks_share_what_is_acknowledged() -> None:
    text = WRITTEN + "spawn 1\ntask 1\nfsync 0\ntask 0\nwait 1\n"
    assert verdict(text, {})[0] == LOST
    assert verdict(text, {"a": OLD})[0] == RECOVERED
    assert verdict(text, {}, after=3)[0] == RECOVERED


def test_names_in_a_folder_that_was_renamed_are_acknowledged_with_it() -> None:
    text = "mkdir d\n" + SYNCED.replace(" a ", " d/a ") + "rename d e\nwrite 0 0 100 2 0\nfsync 0\n"
    for left in ({"d/a": NEW}, {"e/a": NEW}):
        assert verdict(text, left)[0] == RECOVERED
    assert verdict(text, {"e/a": OLD})[0] != RECOVERED
    assert verdict(text, {})[0] == LOST
    assert verdict(text + "sync\n", {"d/a": NEW})[0] == LOST


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("fallocate 0 0 10 punch", "line 5: fallocate: a fallocate that succeeds"),
        ("mmap 0 0 0 4096 rw\nstore 0 90 20 2 0", "line 6: store: a store behind the end"),
        ("mmap 0 0 0 4096 rw\nstore 0 90 20 2 0 = -14", "line 6: store: a store that failed half"),
        ("symlink /etc s\nopen 1 s/x ro", "line 6: open: a symbolic link that leaves"),
    ],
)
def test_what_cannot_be_judged_is_refused_with_its_line(line: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        verdict(SYNCED + line, {"a": OLD})


def test_a_call_that_failed_left_nothing() -> None:
    text = (
        SYNCED + "fallocate 0 0 10 punch = -95\nmmap 0 0 0 4096 rw = -19\nstore 0 0 20 2 0 = -14\n"
    )
    assert verdict(text + "fsync 0\n", {"a": OLD})[0] == RECOVERED
