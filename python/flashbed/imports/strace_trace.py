"""Imports a trace of strace. docs/imports.md says how to run strace.

Calls are paired (`unfinished`, `resumed`), sorted by their beginning, and kept if they concern the
folder. Left out: accesses to mapped pages, which strace does not see; io_uring.
"""

from __future__ import annotations

import errno
import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from flashbed._sim import PieceSizer
from flashbed.errors import InputError
from flashbed.imports.constants import number_of
from flashbed.imports.lines import ImportedError, lines_of, refuse
from flashbed.imports.strace_calls import ALIASES, ROWS, Parsed, parse_call
from flashbed.imports.strace_line import (
    Ended,
    Line,
    NotALine,
    arguments_of,
    parse_line,
    strip_place,
    text_of,
)
from flashbed.paths import shown
from flashbed.recording.about import About
from flashbed.recording.calls import FOLDER, WRITES, Call, unpack_pieces
from flashbed.recording.discover import Discovery
from flashbed.recording.file import RecordingWriter, check
from flashbed.recording.order import InOrder
from flashbed.recording.replay_state import TranslationError

__all__ = ["import_strace"]

_CLONES = ("clone", "clone2", "clone3", "fork", "vfork")
_TASKS = {*_CLONES, "exit", "exit_group", "execve", "execveat", "wait4", "waitid"}
_UNKNOWN = (
    "io_uring_setup", "io_uring_enter", "io_submit", "io_setup", "process_madvise",
    "name_to_handle_at", "open_by_handle_at", "mknod", "mknodat",
)  # fmt: skip
_WORD = re.compile(rb'"(?:[^"\\]|\\.)*"(?:\.\.\.)?', re.DOTALL)
_ANONYMOUS = 0x20
LACKS = (
    "accesses to mapped pages: a mapping counts as read whole when it is made, and as written"
    " where msync was called",
    "the program's processor time: gaps between calls count as waiting, and include the time that"
    " strace itself takes",
    "files that existed before and were never looked at",
)


@dataclass
class _Traced:
    """A task of the trace."""

    number: int
    working: bytes | None
    begun: Line | None = None
    """Its unfinished call."""
    known: bool = False
    """Whether the call that made it has returned; the first task has none."""
    ended: bool = False


@dataclass(slots=True)
class _Event:
    """A parsed call, held back until it is the next in order."""

    line: int
    parsed: Parsed
    task: _Traced
    places: dict[int, bytes]
    result_place: bytes | None


@dataclass
class _Import:
    path: Path
    below: bytes
    writer: RecordingWriter
    discovery: Discovery = field(default_factory=Discovery)
    sizer: PieceSizer = field(default_factory=lambda: PieceSizer(1))
    order: InOrder = field(default_factory=InOrder)
    events: dict[int, _Event] = field(default_factory=dict)
    tasks: dict[int | None, _Traced] = field(default_factory=dict)
    count: int = 0
    first: _Traced | None = None
    unknown: Counter[str] = field(default_factory=Counter)
    command: tuple[str, ...] = ()
    first_ns: int | None = None
    now_ns: int = 0
    backwards: int = 0
    """Lines earlier than those above them: the machine's clock was set."""
    cut_texts: int = 0
    written: int = 0

    def line(self, number: int, line: Line) -> Iterator[Call]:
        """Takes a line; yields the calls that are now next in order."""
        if self.first_ns is None:
            self.first_ns = self.now_ns = line.time_ns
        if line.time_ns < self.now_ns:
            line = replace(line, time_ns=self.now_ns)
            self.backwards += 1
        self.now_ns = line.time_ns
        task = self._task(line.task)
        if line.name == "":
            name = "exit" if line.text.startswith(b"+++ exited") else "exit_group"
            ended = Line(line.task, line.time_ns, name, b"0", Ended(b"0", 0))
            yield from self._begin(task, ended)
            yield from self._end(number, task, ended)
            task.ended = True
            return
        if not line.resumed:
            yield from self._begin(task, line)
        if line.ended is None:
            if line.resumed:  # interrupted again
                task.begun = line
            return
        yield from self._end(number, task, line)

    def _task(self, pid: int | None) -> _Traced:
        """The task of a line; a number that is used again is another task."""
        found = self.tasks.get(pid)
        return self._new_task(pid) if found is None or found.ended else found

    def _made(self, pid: int) -> _Traced:
        """The task that a call has made, which may have ended already."""
        found = self.tasks.get(pid)
        made = self._new_task(pid) if found is None or found.known else found
        made.known = True
        return made

    def _new_task(self, pid: int | None) -> _Traced:
        working = None if self.first is None else self.first.working
        new = _Traced(self.count, working, known=self.first is None)
        self.first = self.first or new
        self.count += 1
        self.tasks[pid] = new
        return new

    def _time(self, line: Line) -> int:
        assert self.first_ns is not None
        return max(0, line.time_ns - self.first_ns)

    def _begin(self, task: _Traced, line: Line) -> Iterator[Call]:
        if task.begun is not None:
            yield from self.order.forget(task.number)
        task.begun = line
        self.order.begin(task.number, self._time(line))

    def _end(self, number: int, task: _Traced, line: Line) -> Iterator[Call]:
        begun, task.begun = task.begun, None
        if begun is None:
            return  # its beginning is not in the trace
        assert line.ended is not None
        text = begun.text if begun is line else begun.text + line.text
        call = self._parsed(number, task, begun, text, line.ended)
        if call is None:
            yield from self.order.forget(task.number)
        else:
            yield from self.order.end(task.number, call)

    def _parsed(
        self, number: int, task: _Traced, begun: Line, text: bytes, ended: Ended
    ) -> Call | None:
        name = begun.name
        if name in _UNKNOWN:
            self.unknown[name] += 1
        known = ALIASES.get(name, name)
        if known not in ROWS and name not in _CLONES:
            return None
        try:
            parsed = self._clone(name, text) if name in _CLONES else _arguments(name, text)
            result, place = _result(ended.result, parsed)
        except (ValueError, NotALine) as why:
            raise refuse(self.path, number, str(why)) from None
        if not parsed.name or result is None:
            return None
        if name == "execve" and not self.command and result == 0:
            words = _WORD.findall(arguments_of(text)[1])
            self.command = tuple(_shown(word) for word in words)
        if parsed.name == "wait4" and result > 0:
            result = (self.tasks.get(result) or self._new_task(result)).number
        if name in _CLONES and result > 0:
            made = self._made(result)
            made.working = task.working
            result = made.number
        if ended.duration_ns is None and parsed.name not in ("exit", "exit_group"):
            raise refuse(self.path, number, f"{name}: no duration; run strace with -T")
        call = Call(
            task.number, self._time(begun), ended.duration_ns or 0, None, parsed.name,
            parsed.arguments, result,
        )  # fmt: skip
        self.events[id(call)] = _Event(number, parsed, task, parsed.places, place)
        return call

    def _clone(self, name: str, text: bytes) -> Parsed:
        parsed = Parsed("clone" if name == "clone2" else name)
        if b"flags=" in text:
            flags = text.split(b"flags=", 1)[1]
            parsed.arguments["flags"] = number_of(flags.split(b",")[0].split(b"}")[0].strip())
        return parsed

    def turn(self, call: Call) -> Iterator[Call]:
        """The call that is next in order, as it is recorded, if it concerns the folder."""
        event = self.events.pop(id(call))
        parsed, task = event.parsed, event.task
        if task.working is None:
            task.working = parsed.working or self.below
        try:
            self._resolve(call, event)
        except ValueError as why:
            raise refuse(self.path, event.line, str(why)) from None
        if call.name in ("chdir", "fchdir"):
            return
        yield from self._inherited(call, event)
        call = self._with_data(call, parsed)
        inside = self.discovery.is_inside(call)
        if not inside and call.name not in _TASKS and call.name != "sync":
            return
        try:
            check(call)
        except ValueError as why:
            raise refuse(self.path, event.line, str(why)) from None
        try:
            self.discovery.see(call, kind=parsed.kind, size=parsed.size, target=parsed.target)
        except TranslationError as why:
            raise refuse(self.path, event.line, str(why)) from None
        yield call
        yield from self._mapped(call)

    def _resolve(self, call: Call, event: _Event) -> None:
        """Makes paths relative to the folder; tracks the working folder."""
        parsed, task = event.parsed, event.task
        for name, given in list(parsed.arguments.items()):
            if name not in ("path", "to_path") or not isinstance(given, bytes):
                continue
            begin = task.working
            descriptor = parsed.at.get(name)
            if descriptor is not None:
                begin = event.places.get(descriptor)
            if not given.startswith(b"/") and begin is None:
                raise ValueError(
                    f"{call.name}: a relative path without a folder: run strace with -y, or use"
                    " --folder"
                )
            whole = posixpath.normpath(posixpath.join(begin or b"/", given))
            if call.name == "chdir" and call.result == 0:
                task.working = whole
            parsed.arguments[name] = self._relative(whole)
        if call.name == "fchdir" and call.result == 0:
            task.working = event.places.get(call.number("descriptor"), task.working)

    def _relative(self, path: bytes) -> bytes:
        if path == self.below:
            return FOLDER
        inside = self.below.rstrip(b"/") + b"/"
        return path[len(inside) :] if path.startswith(inside) else b"/"

    def _inherited(self, call: Call, event: _Event) -> Iterator[Call]:
        """Opens a file of the folder that was open before strace began."""
        if call.name == "mmap" and call.number("flags") & _ANONYMOUS:
            return
        for name in ("descriptor", "to_descriptor"):
            number = call.arguments.get(name)
            place = event.places.get(number) if isinstance(number, int) else None
            if place is None or not isinstance(number, int) or call.result < 0:
                continue
            if name == "to_descriptor" and call.name.startswith("dup"):
                continue
            path = self._relative(place)
            if path == b"/" or self.discovery.descriptor_known(call, name):
                continue
            opened = Call(
                call.task, call.start_ns, 0, None, "openat",
                {"path": path, "flags": 0o200000 if path == FOLDER else 2}, number,
            )  # fmt: skip
            self.discovery.see(opened)
            yield opened

    def _with_data(self, call: Call, parsed: Parsed) -> Call:
        """Adds what was written, as sizes, if strace printed all of it."""
        if call.name not in WRITES or call.result < 0:
            return call
        self.written += 1
        wanted = call.number("length") if "xattr" in call.name else call.result
        data = parsed.data[:wanted] if parsed.data is not None else None
        if data is None or len(data) != wanted or not wanted:
            self.cut_texts += 1
            return call
        node, at = self.discovery.place_of(call)
        sizes = unpack_pieces(self.sizer.sizes(data, [(node, at, len(data))]))
        return Call(call.task, call.start_ns, call.duration_ns, None, call.name, call.arguments,
                    call.result, sizes)  # fmt: skip

    def _mapped(self, call: Call) -> Iterator[Call]:
        """Approximates mapped accesses: reads when mapped, writes where msync is called."""
        name, address, length = "mapped_read", call.result, 0
        if call.name == "mmap" and call.result > 0 and not call.number("flags") & _ANONYMOUS:
            file = self.discovery.state.slot(call)
            size = file.node.size if file and file.node else 0
            length = min(call.number("length"), size - call.number("offset"))
        elif call.name == "msync" and call.result >= 0:
            name, address, length = "mapped_write", call.number("address"), call.number("length")
        if length > 0:
            arguments = {"address": address, "length": length}
            yield Call(call.task, call.start_ns, 0, None, name, arguments)

    def about(self) -> About:
        """The facts at the end."""
        lacks = list(LACKS)
        if self.cut_texts:
            lacks.append(
                f"the bytes of {self.cut_texts:,} of {self.written:,} writes, which were cut short"
                " (strace -s): they count as incompressible, or as those that are known"
            )
        if self.backwards:
            lacks.append(
                f"the times of {self.backwards:,} lines, which are earlier than those above them:"
                " they count as at once"
            )
        return About(
            source="strace", command=self.command, think="gaps", mapped="whole",
            not_followed=dict(sorted(self.unknown.items())), lacks=tuple(lacks),
        )  # fmt: skip


def _shown(word: bytes) -> str:
    found = text_of(word)
    assert found is not None
    return found[0].decode("utf-8", "replace")[:1000] + ("" if found[1] else "...")


def _arguments(name: str, text: bytes) -> Parsed:
    return parse_call(name, arguments_of(text))


def _result(text: bytes, parsed: Parsed) -> tuple[int | None, bytes | None]:
    """The number after `=`, and the path that -y prints for it; None if it did not return."""
    if text.startswith(b"?"):
        return (0 if parsed.name in ("exit", "exit_group") else None), None
    word = text
    if b"<" in text:
        word, place = strip_place(text)
    else:
        place = None
    first = word.split(b" ", 1)
    if first[0] == b"-1" and len(first) > 1:
        return -_errno(first[1].split(b" ")[0]), None
    number = number_of(first[0].split(b"<")[0])
    if parsed.result is not None and number >= 0:
        number = parsed.result
    return number, place


def _errno(name: bytes) -> int:
    found = getattr(errno, name.decode("ascii", "replace"), None)
    if not isinstance(found, int):
        if name.startswith(b"ERESTART"):
            return errno.EINTR
        raise ValueError(f"{name.decode('ascii', 'replace')[:40]!r} is not a known error")
    return found


_WORKING = re.compile(rb"AT_FDCWD<(/[^>]*)>")


def _folder_of(path: Path) -> bytes:
    """The working folder of the first call that has one."""
    for _, text in lines_of(path):
        found = _WORKING.search(text)
        if found is not None:
            return strip_place(b"AT_FDCWD<" + found[1] + b">")[1] or found[1]
    raise ImportedError(f"{shown(path)}: no working folder; run strace with -y, or use --folder")


def import_strace(path: Path, out: Path, folder: str | None = None) -> About:
    """Makes a recording of a trace. Raises `ImportedError` with FILE:LINE."""
    below = posixpath.normpath(folder).encode() if folder else None
    if below is not None and not below.startswith(b"/"):
        raise InputError(f"--folder {folder}: must be an absolute path, as in the trace")
    below = _folder_of(path) if below is None else below
    first = About(source="strace", think="gaps", mapped="whole")
    with RecordingWriter(out, first) as writer:
        state = _Import(path, below, writer)
        calls = 0
        for number, text in lines_of(path):
            try:
                line = parse_line(text)
            except NotALine as why:
                raise refuse(path, number, f"{why}; strace -f -ttt -T -y is needed") from None
            if line is not None:
                for ready in state.line(number, line):
                    for call in state.turn(ready):
                        writer.add(call)
                        calls += 1
        for ready in state.order.rest():
            for call in state.turn(ready):
                writer.add(call)
                calls += 1
        if not calls:
            raise ImportedError(f"{shown(path)}: no call in the folder; is --folder right?")
        for call in state.discovery.existed():
            writer.add(call)
        about = state.about()
        writer.set_about(about)
    return about
