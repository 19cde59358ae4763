"""The file of a recording gives back what was written, and refuses in one line what cannot be."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from flashbed.base.errors import InputError
from flashbed.program.recording.about import About
from flashbed.program.recording.calls import EXISTED, Call, Piece
from flashbed.program.recording.file import (
    SCHEMA,
    RecordingError,
    RecordingWriter,
    open_recording,
)
from flashbed.program.recording.order import InOrder
from flashbed.program.recording.recognised import KEY, is_recording
from flashbed.program.recording.recording_tools import merged

ABOUT = About(source="test", command=("sh", "-c", "echo"), machine="Linux", think="cpu")
PIECES = (Piece(10, 10, 9, 9, 8, 8), Piece(4096, 4096, 4096, 4096, 4096, 4096))


def _call(
    task: int, start_ns: int, duration_ns: int, cpu_ns: int | None, name: str, *what: object
) -> Call:
    arguments, *done = what
    rest = dict(zip(("result", "written"), done, strict=False))
    return Call(
        task=task, start_ns=start_ns, duration_ns=duration_ns, cpu_ns=cpu_ns, name=name,
        arguments=arguments, **rest,  # type: ignore[arg-type]
    )  # fmt: skip


CALLS = [
    _call(0, 5, 10, 3, "openat", {"path": b"a\xff/b", "flags": 0o101, "mode": 0o644}, 3),
    _call(0, 20, 10, None, "write", {"descriptor": 3, "length": 5000}, 4500, PIECES),
    _call(1, 30, 0, 0, "pwrite64", {"descriptor": 3, "offset": 7, "length": 3}, 3, b"abc"),
    _call(0, 40, 1, 0, "openat", {"path": b"/", "flags": 0}, -2),
]
THERE = _call(0, 0, 0, None, EXISTED, {"path": b"old", "length": 12, "mode": 0o100644})


def _write(path: Path, calls: list[Call], about: About = ABOUT) -> Path:
    with RecordingWriter(path, about) as writer:
        for call in calls:
            writer.add(call)
    return path


def _rows(path: Path, rows: list[dict[str, object]], about: str | None = None) -> Path:
    full = [{**dict.fromkeys(SCHEMA), **row} for row in rows]
    frame = pl.DataFrame(full, schema=SCHEMA)
    frame.write_parquet(path, metadata={KEY: about or ABOUT.model_dump_json()})
    return path


def test_a_recording_gives_back_its_calls_and_what_was_there(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.rec", [THERE, *CALLS])
    recording = open_recording(path)
    assert is_recording(path)
    assert recording.about == ABOUT
    assert list(recording.calls()) == CALLS
    assert list(recording.existed()) == [THERE]
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.rec"]


def test_a_recorder_that_was_killed_leaves_all_up_to_its_last_flush(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    writer = RecordingWriter(path, ABOUT)
    writer.add(CALLS[0])
    writer.flush()
    writer.add(CALLS[1])
    writer.flush()
    writer.add(CALLS[2])
    recording = open_recording(path)
    assert not path.exists()
    assert list(recording.calls()) == CALLS[:2]
    assert not recording.about.complete
    assert list(open_recording(tmp_path / "a.rec.parts").calls()) == CALLS[:2]
    with pytest.raises(InputError, match=r"a\.rec\.parts: exists already"):
        RecordingWriter(path, ABOUT)


def test_after_an_error_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="begins before"):
        _write(tmp_path / "a.rec", CALLS[::-1])
    assert list(tmp_path.iterdir()) == []


ROW = {"task": 0, "start_ns": 5, "duration_ns": 0, "result": 0}
DAMAGE: dict[str, dict[str, object]] = {
    "'reboot' is not a call": {"call": "reboot"},
    "close: descriptor is missing": {"call": "close"},
    "sync: has no path": {"call": "sync", "path": b"a"},
    "a value is missing": {"call": None},
    "path is not relative": {"call": "rmdir", "path": b"a/../b"},
    "path is empty": {"call": "rmdir", "path": b""},
    "below 0": {"call": "sync", "start_ns": -1},
    "sizes of no pieces": {"call": "write", "descriptor": 1, "length": 1, "sizes": b"123"},
    "3 bytes of data for 2": {
        "call": "write", "descriptor": 1, "length": 2, "result": 2, "data": b"123",
    },
    "0 sizes for 9000 bytes": {
        "call": "write", "descriptor": 1, "length": 9000, "result": 9000, "sizes": b"",
    },
    "a size of more than 4096": {
        "call": "write", "descriptor": 1, "length": 1, "result": 1, "sizes": b"\xff" * 12,
    },
    "writes nothing, and has data": {"call": "sync", "data": b"1"},
}  # fmt: skip


@pytest.mark.parametrize("why", DAMAGE)
def test_a_row_that_cannot_be_is_refused_by_its_number(tmp_path: Path, why: str) -> None:
    path = _rows(tmp_path / "a.rec", [{**ROW, "call": "sync"}, {**ROW, **DAMAGE[why]}])
    with pytest.raises(RecordingError, match=rf"a\.rec: row 2: .*{why}"):
        list(open_recording(path).calls())


@pytest.mark.parametrize("mode", [-1, 1 << 16])
def test_a_mode_that_no_file_has_is_refused(tmp_path: Path, mode: int) -> None:
    row = {**ROW, "call": "existed", "path": b".", "length": 0, "mode": mode}
    with pytest.raises(RecordingError, match="row 1: existed: mode is not a file's"):
        list(open_recording(_rows(tmp_path / "a.rec", [row])).existed())


def test_rows_out_of_order_are_refused(tmp_path: Path) -> None:
    path = _rows(
        tmp_path / "a.rec", [{**ROW, "call": "sync"}, {**ROW, "call": "sync", "start_ns": 1}]
    )
    with pytest.raises(RecordingError, match="row 2: begins before the call before it"):
        list(open_recording(path).calls())


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ('{"version": 2}', "version 2; this program reads 1"),
        ('{"version": 1}', "source: "),
        ("[", "Expecting value"),
    ],
)
def test_facts_that_cannot_be_are_refused(tmp_path: Path, about: str, why: str) -> None:
    path = _rows(tmp_path / "a.rec", [], about)
    with pytest.raises(RecordingError, match=why):
        open_recording(path)


def test_a_file_that_is_none_or_was_cut_short_is_refused(tmp_path: Path) -> None:
    whole = _write(tmp_path / "whole", CALLS).read_bytes()
    path = tmp_path / "a.rec"
    for data in (b"", b"PAR1", whole[:-1], whole[: len(whole) // 2], b"flashbed-ops 2\n"):
        path.write_bytes(data)
        with pytest.raises(RecordingError, match="not a recording"):
            open_recording(path)
    pl.DataFrame({"a": [1]}).write_parquet(path)
    with pytest.raises(RecordingError, match="not a recording: column"):
        open_recording(path)
    with pytest.raises(RecordingError, match="no such file"):
        open_recording(tmp_path / "none")


def test_calls_seen_at_their_end_come_in_the_order_of_their_beginning() -> None:
    came: list[Call] = []
    order = InOrder()
    first, second, third = (
        Call(task=task, start_ns=task, duration_ns=1, cpu_ns=None, name="sync") for task in range(3)
    )
    for call in (first, second, third):
        order.begin(call.task, call.start_ns)
    came += order.end(1, second)
    assert came == []
    came += order.end(0, first)
    assert came == [first, second]
    came += order.end(2, third)
    assert came == [first, second, third]


def test_recordings_with_too_many_tasks_are_not_merged(tmp_path: Path) -> None:
    row = {**ROW, "call": "fork", "result": 1 << 31}
    path = _rows(tmp_path / "a.rec", [row])
    with pytest.raises(InputError, match="fewer than 2\\^31"):
        merged([path, path], tmp_path / "b.rec", together=False)
    assert not (tmp_path / "b.rec").exists()
