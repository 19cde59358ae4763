"""Imports a trace of strace. docs/guide/other-tools.md says how to run strace.

Calls are paired (`unfinished`, `resumed`), sorted by their beginning, and kept if they concern the
folder. What the trace has not (times, durations, names of descriptors) is unknown in the recording,
and listed. Left out: accesses to mapped pages, which strace does not see; io_uring.
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
from flashbed.base.errors import InputError
from flashbed.base.paths import shown
from flashbed.program.imports.constants import number_of
from flashbed.program.imports.lines import ImportedError, check_name, refuse
from flashbed.program.imports.looks import refuse_foreign
from flashbed.program.imports.strace_calls import ALIASES, ROWS, Parsed, parse_call
from flashbed.program.imports.strace_folder import Folder, folder_of
from flashbed.program.imports.strace_line import Ended, Line, arguments_of, strip_place, text_of
from flashbed.program.imports.strace_lines import StraceLines, files_of
from flashbed.program.imports.writing import recorded
from flashbed.program.recording.about import About, Think
from flashbed.program.recording.calls import FOLDER, WRITES, Call, unpack_pieces
from flashbed.program.recording.discover import Discovery
from flashbed.program.recording.file import check
from flashbed.program.recording.order import InOrder
from flashbed.program.recording.replay_state import TranslationError

__all__ = ["import_strace"]

_CLONES = ("clone", "clone2", "clone3", "fork", "vfork")
_TASKS = {*_CLONES, "exit", "exit_group", "execve", "execveat", "wait4", "waitid"}
_UNKNOWN = (
    "io_uring_setup", "io_uring_enter", "io_submit", "io_setup", "process_madvise",
    "name_to_handle_at", "open_by_handle_at", "mknod", "mknodat",
)  # fmt: skip
_OTHERS = frozenset(
    ("socket", "accept", "accept4", "eventfd", "eventfd2", "epoll_create", "epoll_create1",
     "inotify_init", "inotify_init1", "timerfd_create", "signalfd", "signalfd4", "memfd_create",
     "perf_event_open", "pidfd_open", "fanotify_init", "userfaultfd", "mq_open", "fsopen")
)  # fmt: skip
"""Calls whose result is a descriptor that is no file's."""
_PAIRS = frozenset(("pipe", "pipe2", "socketpair"))
_PAIR = re.compile(rb"\[(\d{1,9})(?:<[^\]]*>)?, (\d{1,9})(?:<[^\]]*>)?\]")
_DESCRIPTORS = frozenset(
    ("open", "openat", "openat2", "creat", "close", "close_range", "dup", "dup2", "dup3", "fcntl")
)  # fmt: skip
_SPAN_NS_MAX = 10**17
_WORD = re.compile(rb'"(?:[^"\\]|\\.)*"(?:\.\.\.)?', re.DOTALL)
_ANONYMOUS = 0x20
LACKS = (
    "accesses to mapped pages: a mapping counts as read whole when it is made, and as written"
    " where msync was called",
    "files that existed before and were never looked at",
)


_GAPS = (
    "the program's processor time: gaps between calls count as waiting, and include the time that"
    " strace itself takes"
)


@dataclass(kw_only=True)
class _Traced:
    """A task of the trace."""

    number: int
    working: bytes | None
    begun: Line | None = None
    """Its unfinished call."""
    known: bool = False
    """Whether the call that made it has returned; the first task has none."""
    ended: bool = False


@dataclass(slots=True, kw_only=True)
class _HeldCall:
    """A parsed call, held back until it is the next in order."""

    line: int
    parsed: Parsed
    task: _Traced
    result_place: bytes | None
    others: tuple[int, ...] = ()
    """Descriptors that it opened and that are no files'."""


@dataclass(kw_only=True)
class _Import:
    path: Path
    trace: StraceLines
    folder: Folder
    discovery: Discovery = field(default_factory=Discovery)
    sizer: PieceSizer = field(default_factory=lambda: PieceSizer(1))
    order: InOrder = field(default_factory=InOrder)
    events: dict[int, _HeldCall] = field(default_factory=dict)
    tasks: dict[int | None, _Traced] = field(default_factory=dict)
    made: set[int] = field(default_factory=set)
    """Numbers of tasks that a call made."""
    alive: set[int | None] = field(default_factory=set)
    count: int = 0
    first: _Traced | None = None
    unknown: Counter[str] = field(default_factory=Counter)
    command: tuple[str, ...] = ()
    first_ns: int | None = None
    now_ns: int = 0
    backwards: int = 0
    """Lines earlier than those above them, or years later: the machine's clock was set."""
    cut_texts: int = 0
    written: int = 0
    calls: int = 0
    timed: int = 0
    untimed: int = 0
    """Calls with and without a duration."""
    unread: int = 0
    unread_why: str = ""
    unnamed: Counter[int] = field(default_factory=Counter)
    """Uses of descriptors that were open before, by number."""

    def all(self) -> Iterator[Call]:
        """The calls of the recording."""
        for line in self.trace.lines():
            for ready in self._line(line):
                yield from self._turn(ready)
        for ready in self.order.rest():
            yield from self._turn(ready)
        if not self.calls:
            raise self._nothing()
        yield from self.discovery.existed()

    def _nothing(self) -> ImportedError:
        if self.unread:
            number, _, why = self.unread_why.strip().partition(": ")
            return refuse(self.path, int(number), why)
        if not self.count:
            refuse_foreign(files_of(self.path)[0][0], "strace")
            return ImportedError(f"{shown(self.path)}: no line of strace")
        return ImportedError(f"{shown(self.path)}: no call in the folder; {self.folder.others}")

    def _not_read(self, number: int, why: str) -> None:
        """Counts a call that cannot be understood."""
        if not self.unread:
            self.unread_why = f" {number}: {why}"
        self.unread += 1

    def _line(self, line: Line) -> Iterator[Call]:
        """Takes a line; yields the calls that are now next in order."""
        if self.first_ns is None:
            self.first_ns = self.now_ns = line.time_ns
        if not self.now_ns <= line.time_ns <= self.first_ns + _SPAN_NS_MAX:
            line = replace(line, time_ns=self.now_ns)
            self.backwards += 1
        self.now_ns = line.time_ns
        task = self._task(line.task)
        if line.name == "":
            name = "exit" if line.text.startswith(b"+++ exited") else "exit_group"
            ended = replace(line, name=name, text=b"0", ended=Ended(b"0", 0))
            yield from self._begin(task, ended)
            yield from self._end(task, ended)
            self._gone(task)
            return
        if not line.resumed:
            yield from self._begin(task, line)
        if line.ended is None:
            if line.resumed and task.begun is not None:  # interrupted again
                task.begun = replace(task.begun, text=task.begun.text + line.text)
            return
        yield from self._end(task, line)

    def _task(self, pid: int | None) -> _Traced:
        """The task of a line; a number that is used again is another task.

        strace prints no number while it follows one task only.
        """
        found = self.tasks.get(pid)
        if found is not None and not found.ended:
            return found
        if pid is None and len(self.alive) == 1:
            return self.tasks[next(iter(self.alive))]
        unnumbered = self.tasks.get(None)
        known = pid in self.made or pid in self.trace.attached
        if pid is not None and not known and None in self.alive and unnumbered is not None:
            self.alive.remove(None)
            self.alive.add(pid)
            self.tasks[pid] = unnumbered
            return unnumbered
        return self._new_task(pid)

    def _made(self, pid: int) -> _Traced:
        """The task that a call has made, which may have ended already."""
        self.made.add(pid)
        found = self.tasks.get(pid)
        made = self._new_task(pid) if found is None or found.known else found
        made.known = True
        return made

    def _new_task(self, pid: int | None) -> _Traced:
        working = None if self.first is None else self.first.working
        new = _Traced(number=self.count, working=working, known=self.first is None)
        self.first = self.first or new
        self.count += 1
        self.tasks[pid] = new
        self.alive.add(pid)
        return new

    def _gone(self, task: _Traced) -> None:
        task.ended = True
        self.alive -= {pid for pid in self.alive if self.tasks[pid] is task}

    def _time(self, line: Line) -> int:
        assert self.first_ns is not None
        return max(0, line.time_ns - self.first_ns)

    def _begin(self, task: _Traced, line: Line) -> Iterator[Call]:
        if task.begun is not None:
            yield from self.order.forget(task.number)
        task.begun = line
        self.order.begin(task.number, self._time(line))

    def _end(self, task: _Traced, line: Line) -> Iterator[Call]:
        begun, task.begun = task.begun, None
        if begun is None:
            return  # its beginning is not in the trace
        assert line.ended is not None
        whole = line
        if begun is not line:
            took = line.ended.duration_ns
            if took is None and self.trace.clock != "none":
                took = line.time_ns - begun.time_ns
            whole = replace(
                begun, text=begun.text + line.text, ended=Ended(line.ended.result, took)
            )
        call = self._parsed(task, whole, line.number)
        if call is None:
            yield from self.order.forget(task.number)
        else:
            yield from self.order.end(task.number, call)

    def _parsed(self, task: _Traced, line: Line, number: int) -> Call | None:
        name, ended = line.name, line.ended
        assert ended is not None
        if name in _UNKNOWN:
            self.unknown[name] += 1
        try:
            if name in _OTHERS or name in _PAIRS:
                return self._other(task, line, number)
            if ALIASES.get(name, name) not in ROWS and name not in _CLONES:
                return None
            texts = arguments_of(line.text)
            cloned = name in _CLONES
            parsed = _clone(name, line.text) if cloned else _arguments(line, texts)
            result, place = _result(ended.result, parsed)
        except ValueError as why:
            self._not_read(number, str(why))
            return None
        if not parsed.name or result is None:
            return None
        if name == "execve" and not self.command and result == 0 and len(texts) > 1:
            self.command = tuple(_shown(word) for word in _WORD.findall(texts[1]))
        if parsed.name == "write" and result > 0 and not texts[-1].isdigit():
            parsed.arguments["length"] = result
        if parsed.name == "wait4" and result > 0:
            result = (self.tasks.get(result) or self._new_task(result)).number
        if cloned and result > 0:
            made = self._made(result)
            made.working = task.working
            result = made.number
        took = None if self.trace.clock == "none" else ended.duration_ns
        call = Call(
            task=task.number,
            start_ns=self._time(line),
            duration_ns=took,
            cpu_ns=None,
            name=parsed.name,
            arguments=parsed.arguments,
            result=result,
        )
        self.events[id(call)] = _HeldCall(line=number, parsed=parsed, task=task, result_place=place)
        return call

    def _other(self, task: _Traced, line: Line, number: int) -> Call | None:
        """A call that opens descriptors that are no files'; those of -y have names."""
        assert line.ended is not None
        pair = _PAIR.search(line.text) if line.name in _PAIRS else None
        result, _ = _result(line.ended.result, Parsed(name=""))
        if self.folder.named or result is None or result < 0 or (pair is None and not result):
            return None
        others = (int(pair[1]), int(pair[2])) if pair else (result,)
        parsed = Parsed(name="openat", arguments={"path": b"/", "flags": 0})
        call = Call(
            task=task.number,
            start_ns=self._time(line),
            duration_ns=None,
            cpu_ns=None,
            name=parsed.name,
            arguments=parsed.arguments,
            result=result,
        )
        self.events[id(call)] = _HeldCall(
            line=number, parsed=parsed, task=task, result_place=None, others=others
        )
        return call

    def _turn(self, call: Call) -> Iterator[Call]:
        """The call that is next in order, as it is recorded, if it concerns the folder."""
        event = self.events.pop(id(call))
        for number in event.others:
            self.discovery.see(replace(call, result=number))
        if event.others:
            return
        try:
            yield from self._recorded(call, event)
        except TranslationError as why:
            raise refuse(self.path, event.line, str(why)) from None
        except ValueError as why:
            self._not_read(event.line, f"{why}")

    def _recorded(self, call: Call, event: _HeldCall) -> Iterator[Call]:
        parsed, task = event.parsed, event.task
        if task.working is None:
            task.working = parsed.working or self.folder.path
        self._resolve(call, event)
        if call.name in ("chdir", "fchdir"):
            return
        yield from self._inherited(call, event)
        inside = self.discovery.is_inside(call)
        if not inside and call.name not in _TASKS and call.name != "sync":
            if call.name in _DESCRIPTORS and call.result >= 0:
                check(call)
                self.discovery.see(call)  # a number that is not free
            return
        check(call)
        call = self._with_data(call, parsed) if inside else call
        self.discovery.see(call, kind=parsed.kind, size=parsed.size, target=parsed.target)
        self.calls += call.name not in _TASKS
        if "exit" not in call.name:
            self.timed += call.duration_ns is not None
            self.untimed += call.duration_ns is None
        yield call
        yield from self._mapped(call)

    def _resolve(self, call: Call, event: _HeldCall) -> None:
        """Makes paths relative to the folder; tracks the working folder."""
        parsed, task = event.parsed, event.task
        for name, given in list(parsed.arguments.items()):
            if name not in ("path", "to_path") or not isinstance(given, bytes):
                continue
            begin = task.working
            descriptor = parsed.at.get(name)
            if descriptor is not None and not given.startswith(b"/"):
                begin = self._place(call, event, descriptor)
            whole = posixpath.normpath(posixpath.join(begin or b"/", given))
            check_name(whole)
            if call.name == "chdir" and call.result == 0:
                task.working = whole
            parsed.arguments[name] = self._relative(whole)
        if call.name == "fchdir" and call.result == 0:
            task.working = self._place(call, event, call.number("descriptor"))

    def _place(self, call: Call, event: _HeldCall, descriptor: int) -> bytes:
        """The path of a folder by its descriptor. Raises `ValueError` if it is not known."""
        named = event.parsed.places.get(descriptor)
        if named is not None:
            return named
        looked = replace(call, arguments={"descriptor": descriptor})
        found = self.discovery.state.descriptor(looked)
        if found is None:
            raise ValueError(
                f"{call.name}: a path below descriptor {descriptor}, whose opening is not in the"
                " trace; run strace with -y"
            )
        path = self.discovery.state.tree.path_of(found.node) if found.node is not None else None
        return posixpath.join(self.folder.path, path) if path is not None else b"/"

    def _relative(self, path: bytes) -> bytes:
        if path == self.folder.path:
            return FOLDER
        inside = self.folder.path.rstrip(b"/") + b"/"
        return path[len(inside) :] if path.startswith(inside) else b"/"

    def _inherited(self, call: Call, event: _HeldCall) -> Iterator[Call]:
        """Opens a file of the folder that was open before strace began."""
        if call.name == "mmap" and call.number("flags") & _ANONYMOUS:
            return
        for name in ("descriptor", "to_descriptor"):
            number = call.arguments.get(name)
            if not isinstance(number, int) or call.result < 0 or call.name == "close":
                continue
            if name == "to_descriptor" and call.name.startswith(("dup", "close")):
                continue
            path = self._opened_before(call, event, name, number)
            if path is None or path == b"/" or self.discovery.descriptor_known(call, name):
                continue
            opened = Call(
                task=call.task, start_ns=call.start_ns, duration_ns=0, cpu_ns=None, name="openat",
                arguments={"path": path, "flags": 0o200000 if path == FOLDER else 2}, result=number,
            )  # fmt: skip
            check(opened)
            self.discovery.see(opened)
            yield opened

    def _opened_before(self, call: Call, event: _HeldCall, name: str, number: int) -> bytes | None:
        """The path of a descriptor, or a name for it if only its number is known."""
        place = event.parsed.places.get(number)
        if place is not None:
            return self._relative(place)
        if self.folder.named or number < 0 or self.discovery.descriptor_known(call, name):
            return None
        if number in self.folder.files:
            self.unnamed[number] += 1
            return b"descriptor-%d" % number
        if number > 2:  # not the program's input and output
            self.unnamed[number] += 1
        return None

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
        return replace(call, written=sizes)

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
            mapped = Call(
                task=call.task,
                start_ns=call.start_ns,
                duration_ns=0,
                cpu_ns=None,
                name=name,
                arguments=arguments,
            )
            check(mapped)
            yield mapped

    def about(self) -> About:
        """The facts at the end."""
        clock = self.trace.clock
        think: Think = "none" if clock == "none" else "gaps"
        return About(
            source="strace", command=self.command, think=think, mapped="whole",
            not_followed=dict(sorted(self.unknown.items())), lacks=tuple(self._lacks()),
        )  # fmt: skip

    def _lacks(self) -> Iterator[str]:
        clock = self.trace.clock
        yield from LACKS
        if clock == "none":
            yield "times: calls follow one another at once (strace -ttt -T)"
        else:
            yield _GAPS
        if self.trace.coarse:
            yield "parts of a second: a pause is whole seconds (strace -ttt)"
        if clock != "none" and self.untimed:
            yield (
                f"how long {self.untimed:,} of {self.timed + self.untimed:,} calls took: it is in"
                " the pauses after them (strace -T)"
            )
        if self.folder.lacks:
            yield self.folder.lacks
        yield from self._left_out()

    def _left_out(self) -> Iterator[str]:
        named = [number for number in self.unnamed if number in self.folder.files]
        others = sum(self.unnamed.values()) - sum(self.unnamed[number] for number in named)
        if named:
            yield (
                f"names of {len(named):,} files that were open before: they are descriptor-NUMBER,"
                " read and written from their beginning (strace -y)"
            )
        if others:
            yield (
                f"{others:,} calls on descriptors that were open before, which no call shows to be"
                " files (strace -y)"
            )
        if self.cut_texts:
            yield (
                f"the bytes of {self.cut_texts:,} of {self.written:,} writes, which were cut short"
                " (strace -s): they count as incompressible, or as those that are known"
            )
        if self.backwards:
            yield (
                f"the times of {self.backwards:,} lines, which are earlier than those above them,"
                " or years later: they count as at once"
            )
        if self.unread:
            yield f"calls that cannot be read: {self.unread:,}, the first in line{self.unread_why}"
        if self.trace.skipped:
            yield f"lines that strace did not print: {self.trace.skipped:,}"


def _clone(name: str, text: bytes) -> Parsed:
    parsed = Parsed(name="clone" if name == "clone2" else name)
    if b"flags=" in text:
        flags = text.split(b"flags=", 1)[1]
        parsed.arguments["flags"] = number_of(flags.split(b",")[0].split(b"}")[0].strip())
    return parsed


def _shown(word: bytes) -> str:
    found = text_of(word)
    assert found is not None
    return found[0].decode("utf-8", "replace")[:1000] + ("" if found[1] else "...")


def _arguments(line: Line, texts: list[bytes]) -> Parsed:
    return parse_call(line.name, texts, joined=line.joined)


def _result(text: bytes, parsed: Parsed) -> tuple[int | None, bytes | None]:
    """The number after `=`, and the path that -y prints for it; None if it did not return."""
    if text.startswith(b"?"):
        return (0 if parsed.name in ("exit", "exit_group") else None), None
    word, place = strip_place(text) if b"<" in text else (text, None)
    first = word.split(None, 1)
    if first[0] == b"-1" and len(first) > 1:
        return -_errno(first[1]), None
    number = number_of(first[0].split(b"<")[0])
    if parsed.result is not None and number >= 0:
        number = parsed.result
    return number, place


_NUMBER = re.compile(rb"\(errno (\d{1,4})\)|E?(\d{1,4})\b")
_ERRNO_MAX = 4095


def _errno(text: bytes) -> int:
    name = text.split(b" ")[0].decode("ascii", "replace")
    found = getattr(errno, name, None) if name.startswith("E") else None
    if isinstance(found, int):
        return found
    if name.startswith("ERESTART"):
        return errno.EINTR
    number = _NUMBER.match(text)
    if number is not None and 0 < int(number[1] or number[2]) <= _ERRNO_MAX:
        return int(number[1] or number[2])
    if name == "ENOTSUPP":
        return errno.EOPNOTSUPP
    raise ValueError(f"{name[:40]!r} is not a known error")


def import_strace(path: Path, out: Path, folder: str | None = None) -> About:
    """Makes a recording of a trace. Raises `ImportedError` with FILE:LINE."""
    if folder is not None and not folder.startswith("/"):
        raise InputError(f"--folder {folder}: must be an absolute path, as in the trace")
    refuse_foreign(files_of(path)[0][0], "strace", sure=True)
    state = _Import(path=path, trace=StraceLines(path=path), folder=folder_of(path, folder))
    first = About(source="strace", think="gaps", mapped="whole")
    return recorded(path, out, first=first, calls=state.all(), last=state.about)
