"""Recordings that others made, and the traces and jobs that are imported: one line at the worst."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hostile.calls import Call, Worker
from tests.hostile.drawn import bent_lines, damaged
from tests.hostile.good import check, few, lines_of

pytest.importorskip("flashbed._sim", reason="the simulator is not compiled; make build")

from flashbed.program.recording.file import SCHEMA
from flashbed.program.recording.recognised import KEY

pytestmark = pytest.mark.timeout(100_000)

CORPUS = Path(__file__).parents[1] / "corpus" / "imports"
ABOUT = '{"version": 1, "source": "test", "think": "cpu", "step_ps": 900}'
COMMANDS = (
    ("ops", "show", "x.rec"), ("ops", "check", "x.rec"), ("ops", "stat", "x.rec"),
    ("ops", "show", "x.rec", "--compressor", "zstd"), ("run", "x.rec", "--out", "o"),
    ("ops", "cut", "x.rec", "-o", "y.rec", "--first", "1"),
    ("ops", "merge", "x.rec", "x.rec", "-o", "y.rec"), ("ops", "anonymise", "x.rec", "-o", "y.rec"),
)  # fmt: skip
PROGRAM: tuple[dict[str, Any], ...] = (
    {"call": "existed", "path": b"old", "length": 9000, "mode": 0o100644},
    {"call": "openat", "path": b"a", "flags": 0o102, "result": 3},
    {"call": "write", "descriptor": 3, "length": 100, "result": 100, "sizes": bytes(12)},
    {"call": "pwrite64", "descriptor": 3, "offset": 7, "length": 3, "result": 3, "data": b"abc"},
    {"call": "mmap", "descriptor": 3, "offset": 0, "length": 4096, "mode": 3, "flags": 1,
     "result": 4096},
    {"call": "mapped_write", "address": 4096, "length": 4096},
    {"call": "fork", "result": 1},
    {"call": "rename", "task": 1, "path": b"a", "to_path": b"b"},
    {"call": "fsync", "descriptor": 3},
    {"call": "flock", "descriptor": 3, "command": 2},
    {"call": "symlink", "target": b"b", "path": b"l"},
    {"call": "exit_group"},
)  # fmt: skip
NUMBERS = (0, 1, -1, 4096, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))
BYTES = (b"", b".", b"..", b"/", b"a/../b", b"\0", b"\xff", b"x" * 5000, b"\x1b[2J", bytes(24))


def packed(rows: list[dict[str, Any]], about: str = ABOUT) -> bytes:
    usual = {"task": 0, "start_ns": 0, "duration_ns": 10, "cpu_ns": 5, "result": 0}
    columns = {
        name: [(usual | row).get(name, 0 if name == "start_ns" else None) for row in rows]
        for name in SCHEMA
    }
    columns["start_ns"] = [row.get("start_ns", 100 * at) for at, row in enumerate(rows)]
    written = io.BytesIO()
    pl.DataFrame(columns, schema=SCHEMA).write_parquet(written, metadata={KEY: about})
    return written.getvalue()


def test_the_recording_is_good(worker: Worker) -> None:
    assert worker.ends(Call(("ops", "check", "x.rec"), {"x.rec": packed(list(PROGRAM))})) == (0, "")


@few
@given(data=st.data(), command=st.sampled_from(COMMANDS))
def test_rows(worker: Worker, data: st.DataObject, command: tuple[str, ...]) -> None:
    rows = [dict(row) for row in PROGRAM]
    for _ in range(data.draw(st.integers(1, 3))):
        row = data.draw(st.sampled_from(rows))
        name = data.draw(st.sampled_from(sorted(row)))
        if name == "call":
            calls = st.sampled_from(sorted({str(one["call"]) for one in PROGRAM} | {"", "reboot"}))
            row[name] = data.draw(calls)
        elif isinstance(row[name], int):
            limit = 2**31 - 1 if name == "task" else 2**63 - 1
            row[name] = min(data.draw(st.sampled_from(NUMBERS)), limit)
            row[name] = max(row[name], -limit)
        else:
            row[name] = data.draw(st.sampled_from(BYTES))
    check(worker, Call(command, {"x.rec": packed(rows)}))


@few
@given(data=st.data(), command=st.sampled_from(COMMANDS))
def test_damage(worker: Worker, data: st.DataObject, command: tuple[str, ...]) -> None:
    check(worker, Call(command, {"x.rec": data.draw(damaged(packed(list(PROGRAM))))}))


@few
@given(data=st.data())
def test_facts(worker: Worker, data: st.DataObject) -> None:
    bent = data.draw(damaged(ABOUT.encode())).decode("utf-8", "replace")
    check(worker, Call(("ops", "stat", "x.rec"), {"x.rec": packed(list(PROGRAM), bent)}))


@few
@given(data=st.data())
def test_facts_of_parts(worker: Worker, data: st.DataObject) -> None:
    files = {
        "x.rec.parts/recording.json": data.draw(damaged(ABOUT.encode())),
        "x.rec.parts/00000000.parquet": data.draw(damaged(packed(list(PROGRAM)))),
    }
    check(worker, Call(("ops", "check", "x.rec"), files))


WORDS = (
    "AT_FDCWD</w>", "(", ")", "= -1 ENOENT (x)", "<unfinished ...>", "<... read resumed>", '"\\x',
    "{st_size=99999999999999999999}", "3</a<b>", "<0.1>", "+++ killed by SIGKILL +++", "O_NOT",
    "99999999999999999999", "-1", "[{iov_base=\"", "7 9.9 clone(", "flags=", ",", "0x", "\x1b[2J",
)  # fmt: skip
SOURCES = {
    "strace": "shell.strace", "fio-job": "two-jobs.fio", "fio-iolog": "write.iolog",
    "blktrace": "queue.blkparse",
}  # fmt: skip


@few
@given(data=st.data(), kind=st.sampled_from(sorted(SOURCES)), broken=st.booleans())
def test_imports(worker: Worker, data: st.DataObject, kind: str, broken: bool) -> None:
    lines = tuple((CORPUS / SOURCES[kind]).read_text().splitlines()[:60])
    text = data.draw(bent_lines(lines, WORDS))
    text = data.draw(damaged(text)) if broken else text
    check(worker, Call(("import", kind, "t", "-o", "x.rec"), {"t": text}))


@few
@given(data=st.data())
def test_operations_of_version_2(worker: Worker, data: st.DataObject) -> None:
    lines = (
        "flashbed-ops 2",
        "open 0 a rw,create",
        "write 0 0 5000 1 3+4x1,5+6",
        "task 0",
        "stat a",
    )
    words = (
        "1+2",
        "x3",
        "4096+0",
        "%2F",
        "SLOT:0",
        "data",
        "AAAA",
        "spawn 1",
        "task 1",
        "mmap 0 0",
    )
    text = data.draw(bent_lines(lines, words))
    for command in ("check", "show", "stat"):
        check(worker, Call(("ops", command, "x.ops"), {"x.ops": text}))
    check(worker, Call(("ops", "cut", "x.ops", "-o", "y", "--first", "2"), {"x.ops": text}))


def test_a_recording_of_nothing_is_good(worker: Worker) -> None:
    files = {"x.rec": packed([])}
    assert worker.ends(Call(("ops", "check", "x.rec"), files)) == (0, "")
    assert lines_of(("a",)) == b"a\n"
