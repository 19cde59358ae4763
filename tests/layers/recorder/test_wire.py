"""The recorder's stream: cut off anywhere it is whole up to there, and damaged it is one line."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from flashbed.base.errors import InputError, RunError
from flashbed.program.recording.about import About
from flashbed.program.recording.file import RecordingWriter, open_recording
from flashbed.targets.recorder.recorded_run import RecordedRun
from flashbed.targets.recorder.session import _Sink, _take
from flashbed.targets.recorder.wire import Chunk, StreamAhead, chunks
from tests.support.recorded import AGENT, needs

SCRIPT = "import os; f = open('a', 'wb', buffering=0); [f.write(b'x' * n) for n in range(1, 600)]"


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    needs()
    folder = tmp_path_factory.mktemp("work")
    (folder / "old").write_bytes(b"before")
    reader, writer = os.pipe()
    command = [str(AGENT), "record", "--fd", str(writer), "--", sys.executable, "-I", "-c", SCRIPT]
    with subprocess.Popen(command, cwd=folder, pass_fds=(writer,)) as child:
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            made = pipe.read()
    assert child.returncode == 0
    return made


def taken(data: bytes, folder: Path) -> int:
    """How many rows a recording has of a stream. Its rows are all checked."""
    source = folder / "stream"
    source.write_bytes(data)
    out = folder / "x.rec"
    about = About(source="test")
    descriptor = os.open(source, os.O_RDONLY)
    writer = RecordingWriter(out, about)
    try:
        _take(
            StreamAhead(descriptor),
            _Sink(
                writer=writer, recorded=RecordedRun(path=out, about=about), contents=False, own=b"-"
            ),
        )
        writer.close()
        return len(list(open_recording(out).calls()))
    finally:
        writer.discard()
        out.unlink(missing_ok=True)


def test_a_stream_that_was_cut_off_is_whole_up_to_there(stream: bytes, tmp_path: Path) -> None:
    random_numbers = random.Random(1)
    whole = taken(stream, tmp_path)
    assert whole > 600
    counts = [
        taken(stream[:at], tmp_path) for at in sorted(random_numbers.sample(range(len(stream)), 20))
    ]
    assert counts == sorted(counts)
    assert counts[-1] <= whole


def said_of(data: bytes, folder: Path) -> list[str]:
    """What refuses a stream says, or what refuses a row of it when the recording is read."""
    try:
        taken(data, folder)
    except (RunError, InputError) as why:
        return str(why).splitlines()
    return []


def test_a_damaged_stream_is_one_line(stream: bytes, tmp_path: Path) -> None:
    random_numbers = random.Random(2)
    refused = 0
    for _ in range(60):
        damaged = bytearray(stream)
        for _ in range(random_numbers.choice([1, 5, 50])):
            damaged[random_numbers.randrange(len(damaged))] = random_numbers.randrange(256)
        lines = said_of(bytes(damaged), tmp_path)
        assert len(lines) <= 1
        refused += len(lines)
    assert refused > 10


def test_rows_come_with_a_mark_below_which_none_follow(stream: bytes, tmp_path: Path) -> None:
    source = tmp_path / "stream"
    source.write_bytes(stream)
    oldest = 0
    for chunk in chunks(StreamAhead(os.open(source, os.O_RDONLY))):
        if isinstance(chunk, Chunk):
            assert int(chunk.rows["order"].min()) >= oldest
            oldest = chunk.oldest
