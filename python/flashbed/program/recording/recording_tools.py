"""Implements `flashbed ops`: shows, checks, counts, cuts and merges operations and recordings.

A file's first bytes tell its kind: a recording is Parquet, operations begin with their header.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from flashbed.base.errors import InputError
from flashbed.base.files import OPERATIONS_BYTES_MAX, read_characters
from flashbed.base.files import output as written_to
from flashbed.base.paths import shown
from flashbed.program.operations import OperationError, canonical, each, header_of
from flashbed.program.recording.about import About
from flashbed.program.recording.calls import FOLDER, FORKS, Call, is_outside
from flashbed.program.recording.file import Recording, RecordingWriter, open_recording
from flashbed.program.recording.fill import as_compressor
from flashbed.program.recording.recognised import is_recording
from flashbed.program.recording.translate import translate
from flashbed.stack.names import escaped

__all__ = ["anonymised", "checked", "cut", "lines_of", "merged", "statistics"]

_SETTLE_NS = 10_000_000_000
_SECOND_NS = 10**9
_MOST_FILES = 12


def lines_of(path: Path, compressor: str = "none") -> Iterator[str]:
    """The operations of a file; for a recording its preparation, `prepared`, its body."""
    if not is_recording(path):
        text = read_characters(path, OPERATIONS_BYTES_MAX)
        with _named(path):
            yield header_of(text)
            yield from map(str, each(text))
        return
    if compressor not in ("none", "lzo", "zlib", "zstd"):
        raise InputError(f"--compressor {compressor}: must be none, lzo, zlib or zstd")
    recording = open_recording(path)
    prepare, body, _ = translate(recording, as_compressor(compressor), _SETTLE_NS)
    yield from prepare.splitlines()
    yield from body.splitlines()[1:]


class _named:  # noqa: N801
    """Adds the file's name to errors of operations."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OperationError):
            raise InputError(f"{shown(self._path)}:{error}") from None


def checked(path: Path) -> str:
    """The size of a file, if all of it is right."""
    if is_recording(path):
        recording = open_recording(path)
        translate(recording, None, _SETTLE_NS)  # reads and checks each call
        there = sum(1 for _ in recording.existed())
        calls = recording.length() - there
        return f"{calls:,} calls, {there:,} files and folders that were there before"
    text = read_characters(path, OPERATIONS_BYTES_MAX)
    with _named(path):
        return f"{sum(1 for _ in each(text)):,} operations"


def statistics(path: Path) -> Iterator[str]:
    """Lines that say what a file does."""
    if is_recording(path):
        yield from _of_recording(open_recording(path))
        return
    text = read_characters(path, OPERATIONS_BYTES_MAX)
    with _named(path):
        counts: Counter[str] = Counter()
        moved: Counter[str] = Counter()
        for operation in each(text):
            counts[operation.name] += 1
            if operation.name in ("read", "write"):
                moved[operation.name] += int(operation.fields[2])
    yield from _table(counts)
    yield f"read {moved['read']:,} bytes, wrote {moved['write']:,}"


def _table(counts: Counter[str]) -> Iterator[str]:
    width = max(map(len, counts), default=0)
    for name, times in counts.most_common():
        yield f"{name:<{width}}  {times:>12,}"


def _of_recording(recording: Recording) -> Iterator[str]:
    about = recording.about
    counts: Counter[str] = Counter()
    files: Counter[str] = Counter()
    read = wrote = duration_ns = calls_ns = cpu_ns = 0
    tasks = set()
    for call in recording.calls():
        counts[call.name] += 1
        tasks.add(call.task)
        duration_ns = max(duration_ns, call.end_ns)
        calls_ns += call.duration_ns or 0
        cpu_ns += call.cpu_ns or 0
        if (
            call.result > 0
            and call.name.startswith(("read", "pread"))
            and "length" in call.arguments
        ):
            read += call.result
        if call.result > 0 and call.name.startswith(("write", "pwrite")):
            wrote += call.result
        path = call.path()
        if path is not None and not is_outside(path):
            files[path.decode("utf-8", "backslashreplace")] += 1
    there = there_bytes = 0
    for call in recording.existed():
        there += 1
        there_bytes += call.number("length")
    yield f"made by {escaped(about.source)}: {escaped(' '.join(about.command)[:200]) or '-'}"
    seconds, in_calls, of_cpu = (ns / _SECOND_NS for ns in (duration_ns, calls_ns, cpu_ns))
    between = "awake" if about.think == "slept" else "of processor"
    yield f"{sum(counts.values()):,} calls of {len(tasks):,} tasks in {seconds:.3f} s"
    yield f"{in_calls:.3f} s in calls, {of_cpu:.3f} s {between} between"
    yield (
        f"read {read:,} bytes, wrote {wrote:,}; {len(files):,} paths; {there:,} were there"
        + (f" with {there_bytes:,} bytes")
    )
    yield from _table(counts)
    yield "the paths that most calls name:"
    for name, times in files.most_common(_MOST_FILES):
        yield f"  {times:>10,}  {escaped(name)}"
    _, _, made = translate(recording, None, _SETTLE_NS)
    for why, times in made.left_out.items():
        yield f"has no operation: {escaped(why)}, {times:,} times"
    for sentence in about.lacks:
        yield f"not in it: {escaped(sentence)}"
    for name, times in about.not_followed.items():
        yield f"not followed: {escaped(name)}, {times:,} times"


def cut(path: Path, output: Path, first: int | None, until_ns: int | None) -> str:
    """Writes the beginning of a file, and returns a summary."""
    if not is_recording(path):
        if until_ns is not None:
            raise InputError("--until: needs a recording; operations have no times")
        text = read_characters(path, OPERATIONS_BYTES_MAX)
        with _named(path):
            kept = list(itertools.islice(each(text), first))
            written = canonical(kept, header_of(text))
        with written_to(output) as new:
            new.write_text(written, encoding="ascii")
        return f"{shown(output)}: {len(kept):,} operations"
    recording = open_recording(path)
    with RecordingWriter(output, recording.about) as writer:
        for call in recording.existed():
            writer.add(call)
        there = writer.calls
        for call in itertools.islice(recording.calls(), first):
            if until_ns is not None and call.start_ns > until_ns:
                break
            writer.add(call)
        return f"{shown(output)}: {writer.calls - there:,} calls"


def merged(paths: Sequence[Path], output: Path, *, together: bool) -> str:
    """Writes several recordings as one, with separate tasks."""
    if len(paths) < 2:
        raise InputError("ops merge: needs at least two recordings")
    recordings = [open_recording(path) for path in paths]
    about = _about_of_all([recording.about for recording in recordings])
    with RecordingWriter(output, about) as writer:
        seen: set[bytes] = set()
        for recording in recordings:
            for call in recording.existed():
                path = call.path()
                if path is not None and path not in seen:
                    seen.add(path)
                    writer.add(call)
        there = writer.calls
        streams: list[Iterator[Call]] = []
        task = start_ns = 0
        for recording in recordings:
            tasks, end_ns = _extent(recording)
            streams.append(_shifted(recording, task, 0 if together else start_ns))
            task += tasks
            start_ns += end_ns
        if task >= _TASKS_END or start_ns >= _NS_END:
            raise InputError(
                f"ops merge: {task:,} tasks in {start_ns / 1e9:,.0f} s; fewer than 2^31 in less"
                " than 292 years fit into one recording"
            )
        for call in _in_order(streams) if together else itertools.chain(*streams):
            writer.add(call)
        return f"{shown(output)}: {writer.calls - there:,} calls"


def _in_order(streams: Sequence[Iterator[Call]]) -> Iterator[Call]:
    return heapq.merge(*streams, key=lambda call: call.start_ns)


def _extent(recording: Recording) -> tuple[int, int]:
    """One more than the largest task, and when the last call returned."""
    tasks = end_ns = 0
    for call in recording.calls():
        tasks = max(tasks, call.task + 1)
        end_ns = max(end_ns, call.end_ns)
        if call.name in _NAME_TASKS:
            tasks = max(tasks, call.result + 1)
    return tasks, end_ns


_NAME_TASKS = (*FORKS, "wait4", "waitid")
"""Calls whose result is a task's number."""
_TASKS_END = 1 << 31
_NS_END = 1 << 63


def _shifted(recording: Recording, task: int, start_ns: int) -> Iterator[Call]:
    for call in recording.calls():
        moved = replace(call, task=call.task + task, start_ns=call.start_ns + start_ns)
        if call.name in _NAME_TASKS and call.result > 0:
            moved = replace(moved, result=call.result + task)
        yield moved


def _about_of_all(abouts: Sequence[About]) -> About:
    first = abouts[0]
    same_step = all(about.step_ps == first.step_ps for about in abouts)
    same_think = all(about.think == first.think for about in abouts)
    if not same_think or not same_step:
        raise InputError("ops merge: recorded in different ways, or on machines of different speed")
    followed: Counter[str] = Counter()
    for about in abouts:
        followed.update(about.not_followed)
    return first.model_copy(
        update={
            "not_followed": dict(followed),
            "lacks": tuple(dict.fromkeys(text for about in abouts for text in about.lacks)),
            "complete": all(about.complete for about in abouts),
        }
    )


def anonymised(path: Path, output: Path) -> str:
    """Writes a recording without names and contents; a name becomes another of its length."""
    recording = open_recording(path)
    about = recording.about
    hidden = about.model_copy(update={"command": (), "machine": ""})
    names = _Replacements()
    everything = itertools.chain(recording.existed(), recording.calls())
    if any(isinstance(call.written, bytes) for call in everything):
        raise InputError(
            f"{shown(path)}: holds the bytes that were written; record it without --contents"
        )
    with RecordingWriter(output, hidden) as writer:
        for call in itertools.chain(recording.existed(), recording.calls()):
            arguments = dict(call.arguments)
            for key in ("path", "to_path", "target", "name"):
                value = call.path(key)
                if value is not None:
                    arguments[key] = names.attribute(value) if key == "name" else names.path(value)
            writer.add(replace(call, arguments=arguments))
        return f"{shown(output)}: {writer.calls:,} rows, {len(names.known):,} names"


class _Replacements:
    """Names and their replacements, which have the same length, so that folders keep their size."""

    def __init__(self) -> None:
        self.known: dict[bytes, bytes] = {}
        self._taken: set[bytes] = set()

    def path(self, path: bytes) -> bytes:
        """A path below the folder with its names replaced; a path outside becomes `/`."""
        if is_outside(path):
            return b"/"
        return b"/".join(
            name if name in (FOLDER, b"..", b"") else self.name(name) for name in path.split(b"/")
        )

    def attribute(self, name: bytes) -> bytes:
        """The replacement of an extended attribute's name, in the same class."""
        kind, dot, own = name.partition(b".")
        return kind + dot + (self.name(own) if own else b"")

    def name(self, name: bytes) -> bytes:
        """The replacement of a name."""
        found = self.known.get(name)
        for number in itertools.count(len(self.known)):
            if found is not None:
                break
            digits = b""
            while number or not digits:
                number, digit = divmod(number, len(_LETTERS))
                digits = _LETTERS[digit : digit + 1] + digits
            candidate = digits.rjust(len(name), b"_")
            if candidate not in self._taken:
                found = candidate
        assert found is not None
        self.known[name] = found
        self._taken.add(found)
        return found


_LETTERS = b"abcdefghijklmnopqrstuvwxyz0123456789"
