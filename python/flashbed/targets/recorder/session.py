"""Records a program from its beginning to its end.

Rows are written to the file's parts every few seconds, so that a kill loses no more than that. A
signal that a user sends to this process is passed on to the recorder, which passes it on to the
program; a signal from the terminal has reached both already.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import polars as pl

from flashbed._sim import PieceSizer
from flashbed.base.errors import RunError
from flashbed.program.recording.about import About, shortened
from flashbed.program.recording.calls import EXISTED
from flashbed.program.recording.file import RecordingWriter
from flashbed.targets.recorder.assemble import CONTENTS_BYTES_MAX, Assembler, Folders
from flashbed.targets.recorder.places import Place, Recorder
from flashbed.targets.recorder.recorded_run import LACKS, RecordedRun
from flashbed.targets.recorder.wire import Chunk, StreamAhead, StreamFacts, chunks, unescaped

__all__ = ["NotRecordedError", "keep_stream", "record"]

SOURCE = "flashbed record"
_ROWS_AT_ONCE = 1 << 16
_BYTES_AT_ONCE = 32 << 20
_PART_EVERY_S = 2.0
_HANDED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FAILED = 126
"""The agent's exit status if it could not record."""
_CUT_OFF = 255
_MIB = 1 << 20


class NotRecordedError(RunError):
    """The program did not begin, or could not be recorded. The status is as a shell's."""

    def __init__(self, why: str, status: int) -> None:
        super().__init__(why)
        self.exit_status = status


def record(
    place: Place, command: Sequence[str], path: Path, *, below: Sequence[str], contents: bool
) -> RecordedRun:
    """Records a command into a file. Raises `InputError`, `NotRecordedError`, `Unavailable`."""
    about = About(
        source=SOURCE,
        command=shortened(command),
        machine=place.machine,
        think="cpu",
        step_ps=place.step_ps(),
        mapped="present",
        lacks=LACKS,
    )
    writer = RecordingWriter(path, about)
    recorded = RecordedRun(path=path, about=about)
    try:
        options = [word for folder in below for word in ("--below", folder)]
        recorder = place.start([*options, "--", *command])
        with _handing_on(recorder):
            own = os.fsencode(path.absolute())
            _take(
                StreamAhead(recorder.stream),
                _Sink(writer=writer, recorded=recorded, contents=contents, own=own),
            )
            status = recorder.process.wait()
    except BaseException:
        if not writer.calls:
            writer.discard()
        raise
    recorded.status = status if status >= 0 else 128 - status
    if failed := recorded.failed:
        writer.discard()
        raise NotRecordedError(f"not recorded: {failed}", recorded.status)
    if recorded.begin is None or (status == _FAILED and recorded.end is None):
        writer.discard()
        raise RunError(f"{place.name}: nothing was recorded (status {recorded.status})")
    recorded.about = _final(about, recorded)
    writer.close(recorded.about)
    return recorded


def keep_stream(
    stream: int, about: About, path: Path, *,
    there: Mapping[bytes, Path] = MappingProxyType({}), contents: bool = False,
) -> RecordedRun:  # fmt: skip
    """Turns a recorder's stream into a recording, as far as it goes.

    `there` maps files of the recorded folder to files of this machine with their initial contents.
    Raises `InputError`, `RunError`.
    """
    writer = RecordingWriter(path, about)
    recorded = RecordedRun(path=path, about=about)
    try:
        _take(
            StreamAhead(stream),
            _Sink(writer=writer, recorded=recorded, contents=contents, own=b"//", there=there),
        )
    except BaseException:
        writer.discard()
        raise
    if recorded.begin is None:
        writer.discard()
        raise RunError(f"{path}: nothing was recorded")
    recorded.about = _final(about, recorded)
    writer.close(recorded.about)
    return recorded


@contextmanager
def _handing_on(recorder: Recorder) -> Iterator[None]:
    """Passes signals to the recorder, which drops those that the terminal also sent to it."""

    def hand_on(number: int, _frame: object) -> None:
        if recorder.process.poll() is None:
            recorder.process.send_signal(number)

    def resume(_number: int, _frame: object) -> None:
        """Continues a recorder that the program, its child, has stopped: it would wait for ever."""
        with suppress(ChildProcessError):
            found = os.waitid(os.P_PID, recorder.process.pid, os.WSTOPPED | os.WNOHANG)
            if found is not None and found.si_status == signal.SIGSTOP:
                recorder.process.send_signal(signal.SIGCONT)

    before = {number: signal.signal(number, hand_on) for number in _HANDED_ON}
    before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, resume)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(kw_only=True)
class _Sink:
    """Collects frames until a part is worth writing."""

    writer: RecordingWriter
    recorded: RecordedRun
    contents: bool
    own: bytes
    """The path of the recording itself, which listings omit."""
    there: Mapping[bytes, Path] = field(default_factory=dict)
    assembler: Assembler | None = None
    _frames: list[pl.DataFrame] = field(default_factory=list)
    _rows: int = 0
    _bytes: int = 0
    _since: float = field(default_factory=time.monotonic)

    def facts(self, facts: StreamFacts) -> None:
        """Takes names, or the end."""
        if facts.last:
            self.recorded.end = facts
            return
        self.recorded.begin = facts
        numbered = dict(value.split(" ", 1) for value in facts.all("call"))
        names = ["", *(numbered[str(number)] for number in range(1, len(numbered) + 1))]
        folders = Folders(tuple(map(unescaped, facts.all("folder"))))
        threads = max(1, min(4, (os.cpu_count() or 1)))
        self.assembler = Assembler(
            names=names, folders=folders, contents=self.contents, threads=threads
        )
        self._own = folders.relative(self.own)
        self.add(self.assembler.existed_above())

    def add(self, frame: pl.DataFrame | None) -> None:
        """Takes complete rows."""
        if frame is None:
            return
        frame = frame.filter(
            ~(
                (pl.col("call") == EXISTED)
                & pl.col("path").bin.starts_with(self._own).fill_null(value=False)
            )
        )
        frame = _with_contents(frame, self.there, contents=self.contents)
        self._count(frame)
        self._frames.append(frame)
        self._rows += frame.height
        self._bytes += sum(int(frame[name].bin.size().sum() or 0) for name in ("data", "sizes"))
        if self._rows >= _ROWS_AT_ONCE or self._bytes >= _BYTES_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Writes the collected rows as a part."""
        if self._rows:
            self.writer.add_rows(pl.concat(self._frames))
        self._frames.clear()
        self._rows = self._bytes = 0
        self._since = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether rows have waited for long."""
        return self._rows > 0 and time.monotonic() - self._since > _PART_EVERY_S

    def _count(self, frame: pl.DataFrame) -> None:
        recorded = self.recorded
        for name, count in frame.group_by("call").len().iter_rows():
            if name == EXISTED:
                recorded.existed += count
            else:
                recorded.calls[name] += count
        if len(recorded.files) < _ROWS_AT_ONCE:
            recorded.files.update(
                frame.filter(
                    pl.col("path").is_not_null()
                    & ~pl.col("path").bin.starts_with(b"/")
                    & (pl.col("call").is_in(("open", "openat", "openat2", "creat")))
                    & (pl.col("result") >= 0)
                )["path"].unique()
            )
        done = frame.filter(pl.col("result") > 0)
        reads = done.filter(pl.col("call").is_in(("read", "readv", "pread64", "preadv", "preadv2")))
        recorded.read_bytes += int(reads["result"].sum() or 0)
        tasks = frame["task"].max()
        if isinstance(tasks, int):
            recorded.tasks = max(recorded.tasks, tasks + 1)


def _with_contents(
    frame: pl.DataFrame, there: Mapping[bytes, Path], *, contents: bool
) -> pl.DataFrame:
    """Adds files' initial contents, where those are known: their bytes, or compressed sizes."""
    if not there or not (frame["call"] == EXISTED).any():
        return frame
    found: dict[str, list[bytes | None]] = {"data": [], "sizes": []}
    for call, path, length, *before in frame.select("call", "path", "length", *found).iter_rows():
        values = dict(zip(found, before, strict=True))
        if call == EXISTED and path in there:
            keeps = contents and length <= CONTENTS_BYTES_MAX
            values["data" if keeps else "sizes"] = (_bytes_of if keeps else _sizes_of)(
                there[path], length
            )
        for column, value in values.items():
            found[column].append(value)
    return frame.with_columns(pl.Series(*column, pl.Binary) for column in found.items())


def _bytes_of(path: Path, length: int) -> bytes | None:
    """A file's bytes; None if it has changed since."""
    with path.open("rb") as file:
        data = file.read(length + 1)
    return data if len(data) == length else None


def _sizes_of(path: Path, length: int) -> bytes | None:
    """Compressed sizes of a file's pieces; None if the file has changed since."""
    sizer, found, done = PieceSizer(1), [], 0
    with path.open("rb") as file:
        while some := file.read(_MIB):
            found.append(sizer.sizes(some, [(0, done, len(some))]))
            done += len(some)
    return b"".join(found) if done == length else None


def _take(source: StreamAhead, sink: _Sink) -> None:
    """Takes the whole stream. Raises `RunError` if our recorder cannot have written it."""
    try:
        _take_chunks(source, sink)
    except (ValueError, OverflowError, LookupError, pl.exceptions.PolarsError) as why:
        first = (str(why).splitlines() or [""])[0]
        raise RunError(f"the recorder's stream is damaged: {first[:200]}") from None


def _take_chunks(source: StreamAhead, sink: _Sink) -> None:
    for each in chunks(source):
        if isinstance(each, Chunk):
            if sink.assembler is None:
                raise RunError("the recorder's stream has rows before its facts")
            sink.add(sink.assembler.chunk(each))
        else:
            sink.facts(each)
        if sink.is_due:
            sink.flush()
    if sink.assembler is not None:
        sink.add(sink.assembler.rest())
        sink.recorded.written_bytes = sink.assembler.written_bytes
        sink.recorded.without_contents = sink.assembler.without_contents
    sink.flush()


def _final(about: About, recorded: RecordedRun) -> About:
    end = recorded.end
    recorded.complete = end is not None
    not_followed = {}
    for value in end.all("not_followed") if end else ():
        count, _, name = value.partition(" ")
        not_followed[name] = int(count)
    lacks = about.lacks
    if recorded.without_contents:
        lacks += (f"The contents of {recorded.without_contents:,} writes of more than 64 MiB.",)
    found = {"complete": recorded.complete, "not_followed": not_followed, "lacks": lacks}
    return about.model_copy(update=found)
