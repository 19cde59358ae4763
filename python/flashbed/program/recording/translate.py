"""Translates a recording into operations: makes what existed before, then does what it recorded.

The program begins on a file system that was just mounted, as it does in `flashbed exec`.
Descriptors become slots, positions offsets, gaps between calls `compute` and `pause`, compressed
sizes FILL. A task is spawned where it was created, because its own time begins there. Calls are in
the order in which they began, except a `flock` that locks: it stands where it ended, because calls
of operations do not overlap and one that waited would wait for ever.
Handlers for the calls are in data_calls.py, name_calls.py and mapped_calls.py.
"""

from __future__ import annotations

import heapq
import itertools
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from flashbed.base.paths import shown
from flashbed.program.operations import HEADER_2, text_of
from flashbed.program.recording import data_calls, mapped_calls, name_calls
from flashbed.program.recording.calls import FOLDER, FORKS, Call
from flashbed.program.recording.file import Recording, RecordingError
from flashbed.program.recording.fill import Compressor, Filler, Fillers
from flashbed.program.recording.known_names import Node
from flashbed.program.recording.needed_files import needed_by
from flashbed.program.recording.replay_state import ReplayState, Task, TranslationError

__all__ = [
    "HANDLERS",
    "PAUSE_LEAST_NS",
    "Storing",
    "Translation",
    "apart",
    "translate",
    "translate_for_each",
]

PAUSE_LEAST_NS = 1_000_000
"""Shorter gaps come from the recorder, the scheduler and the machine. Sleeps that the recorder saw
add up to pauses of at least this."""
COMPUTE_LEAST_NS = 10_000
"""Pieces of work passed on are at least this large."""
_PAUSE_NS_MAX = 10**15
_STEPS_MAX = 10**12
_TASKS = 1024
_TOLD_EACH = 500
_REQUEST_BYTES = 65_536
_THERE_BYTES_MAX = 1 << 33
_THERE_MAX = 1_000_000
_ROWS_MAX = 5_000_000
HANDLERS = {**data_calls.HANDLERS, **name_calls.HANDLERS, **mapped_calls.HANDLERS}
_LOCK_UN = 8


class Storing(NamedTuple):
    """How a file system stores data.

    FILL follows the sizes of `compressor`, None where data is stored as it is. `then` is tried on
    what that does not shrink. `by_pages`: only whole pages are compressed, as UBIFS does.
    """

    compressor: Compressor | None
    then: Compressor | None = None
    by_pages: bool = False


@dataclass(kw_only=True)
class Translation:
    """The lines of a program, generated lazily.

    Attributes:
        recording: the recording.
        filler: makes what makes FILL, for one file system or for several.
        think: whether the time between calls is kept.
        own: a folder that the file system makes itself.
        told: takes how many calls are translated, from time to time.
        left_out: calls without an operation, and how often; complete after the last line.
    """

    recording: Recording
    filler: Callable[[], Filler | Fillers]
    think: bool = True
    own: bytes | None = None
    told: Callable[[int], None] = lambda _: None
    state: ReplayState = field(init=False)
    _waiting: list[tuple[int, int, Call]] = field(default_factory=list)
    _locks: int = 0
    _numbers: dict[int, int] = field(default_factory=dict)
    """Task of the recording -> task of the operations."""
    _next: int = 1
    """The lowest number that no task has had."""
    _ended: list[int] = field(default_factory=list)
    """Tasks of the recording that have ended, and whose numbers can be used again."""
    _current: int = 0

    def __post_init__(self) -> None:
        self.state = ReplayState(filler=self.filler())

    @property
    def left_out(self) -> dict[str, int]:
        """Calls without an operation, and how often."""
        return dict(sorted(self.state.left_out.items()))

    def prepare(self) -> Iterator[str]:
        """Lines that make what existed before, up to but without `sync`; none on a dump."""
        itself, there = self._needed()
        total_bytes = 0
        if self.recording.about.dump is not None:
            for call in there:
                _put(self.state, call)
            return
        if itself is not None:
            # Only `flashbed exec` records this: it sets the folder's mode.
            yield f"chmod . {stat.S_IMODE(itself.number('mode'))}"
        for number, call in enumerate(there, start=1):
            total_bytes += call.number("length")
            if total_bytes > _THERE_BYTES_MAX:
                raise RecordingError(
                    f"{shown(self.recording.path)}: more than {_THERE_BYTES_MAX >> 30} GiB of files"
                    " existed before"
                )
            _put(self.state, call)
            for line in _prepared_lines(self.state, call, self._like_the_rest, number):
                if call.path() != self.own:
                    yield line

    def _needed(self) -> tuple[Call | None, list[Call]]:
        """The recorded folder itself, and what a replay needs of what existed, by path."""
        links: dict[bytes, bytes] = {}
        folders: set[bytes] = set()
        itself = None
        for call in self.recording.folders_and_links():
            path, kind = call.path() or b"", stat.S_IFMT(call.number("mode"))
            if kind == stat.S_IFLNK:
                links[path] = call.path("target") or b""
            elif kind == stat.S_IFDIR:
                folders.add(path)
                itself = itself or (call if path == FOLDER else None)
        needed = needed_by(self.recording.calls_with_paths(), links, folders)
        there = list(itertools.islice(self.recording.existed(needed), _THERE_MAX + 1))
        if len(there) > _THERE_MAX:
            raise RecordingError(
                f"{shown(self.recording.path)}: the program needs more than {_THERE_MAX:,} files"
                " that existed before"
            )
        return itself, sorted(there, key=lambda call: call.path() or b"")

    def _like_the_rest(self, offset: int, length: int) -> str:
        """FILL of a file from before whose sizes are not known: as the program's writes."""
        return self._filler_of_writes.like_the_rest(offset, length)

    @cached_property
    def _filler_of_writes(self) -> Filler | Fillers:
        filler = self.filler()
        for call in self.recording.calls_with_sizes():
            if isinstance(call.written, tuple) and call.name in _MOVES:
                filler.learn(call.number("offset"), call.written, call.result)
        return filler

    def body(self) -> Iterator[str]:
        """Lines of what the program did."""
        row = 0
        try:
            yield from self._roots()
            for row, call in enumerate(self.recording.calls(), start=1):
                if row % _TOLD_EACH == 0:
                    self.told(row)
                yield from self._waited_until(call.start_ns)
                yield from self._call(call)
            yield from self._waited_until(None)
            yield from self._last_wait()
        except TranslationError as why:
            raise RecordingError(f"{shown(self.recording.path)}: call {row}: {why}") from None

    def _waited_until(self, now_ns: int | None) -> Iterator[str]:
        """The locks that were acquired before this time, where they were acquired."""
        while self._waiting and (now_ns is None or self._waiting[0][0] <= now_ns):
            _, _, call = heapq.heappop(self._waiting)
            yield from self._lines_of(call)

    def _call(self, call: Call) -> Iterator[str]:
        if call.name == "flock" and not call.number("command") & _LOCK_UN:
            self._locks += 1
            heapq.heappush(self._waiting, (call.end_ns, self._locks, call))
            return
        yield from self._lines_of(call)

    def _roots(self) -> Iterator[str]:
        """Starts the tasks whose beginning was not recorded: they run from the beginning on."""
        for number, task in enumerate(self.recording.roots()[:_TASKS]):
            self._numbers[task] = number
            self._next = number + 1
            if number:
                yield f"spawn {number}"

    def _lines_of(self, call: Call) -> Iterator[str]:
        state = self.state
        task = state.task(call)
        if task.ended:
            if call.name not in ("exit", "exit_group"):
                state.skip("calls of a task after its process had ended")
            elif call.task in self._numbers and call.task not in self._ended:
                self._ended.append(call.task)
            return
        task.wait_ns += max(0, call.start_ns - task.end_ns - (call.cpu_ns or 0))
        task.cpu_ns += call.cpu_ns or 0
        task.end_ns = max(task.end_ns, call.end_ns)
        HANDLERS[call.name](state, call)
        forks = call.name in FORKS and call.result > 0
        if state.lines or forks:
            yield from self._turn(call.task)
            yield from self._think(task)
            yield from state.lines
            state.lines.clear()
        elif not self._knows_sleep:
            task.wait_ns += call.duration_ns or 0
            if task.wait_ns < PAUSE_LEAST_NS:
                task.wait_ns = 0
        if forks:
            state.tasks[call.result].wait_ns = task.wait_ns
            yield from self._spawn(call.result)
        if task.ended and call.task in self._numbers:
            self._ended.append(call.task)

    def _turn(self, task: int) -> Iterator[str]:
        """Switches to this task, starting it first if it could not be started at its beginning."""
        if task not in self._numbers:
            yield from self._spawn(task)
            if task not in self._numbers:
                raise TranslationError(f"more than {_TASKS:,} tasks at once")
        number = self._numbers[task]
        if number != self._current:
            yield f"task {number}"
            self._current = number

    def _spawn(self, task: int) -> Iterator[str]:
        """Starts a task, if a number is free; its own time begins with that of the current task."""
        number = self._next
        if number < _TASKS:
            self._next += 1
        else:
            used = (old for old in self._ended if self._numbers[old] != self._current)
            old = next(used, None)
            if old is None:
                return
            self._ended.remove(old)
            number = self._numbers.pop(old)
            yield f"wait {number}"
        self._numbers[task] = number
        yield f"spawn {number}"

    def _think(self, task: Task) -> Iterator[str]:
        """Work and waiting of the task before its line."""
        about = self.recording.about
        if not self._has_times:
            return
        if about.think == "slept":
            task.cpu_ns = 0
        elif about.step_ps is None:
            task.wait_ns, task.cpu_ns = task.wait_ns + task.cpu_ns, 0
        elif task.cpu_ns >= COMPUTE_LEAST_NS:
            steps = min(task.cpu_ns * 1000 // about.step_ps, _STEPS_MAX)
            task.cpu_ns = 0
            if steps:
                yield f"compute {steps}"
        if task.wait_ns >= PAUSE_LEAST_NS:
            yield f"pause {min(task.wait_ns, _PAUSE_NS_MAX)}"
            task.wait_ns = 0
        elif not self._knows_sleep:
            task.wait_ns = 0

    def _last_wait(self) -> Iterator[str]:
        """What the task that ended last waited after its last line."""
        last = max(self.state.tasks.items(), key=lambda item: item[1].end_ns, default=None)
        if last is None or not self._has_times:
            return
        number, task = last
        if task.wait_ns >= PAUSE_LEAST_NS and number in self._numbers:
            yield from self._turn(number)
            yield from self._think(task)

    @property
    def _has_times(self) -> bool:
        return self.think and self.recording.about.think != "none"

    @property
    def _knows_sleep(self) -> bool:
        return self.recording.about.think == "slept"


_MOVES = frozenset({"write", "writev", "pwrite64", "pwritev", "pwritev2"})


def _prepared_lines(
    state: ReplayState, call: Call, like_the_rest: Callable[[int, int], str], seed: int
) -> Iterator[str]:
    """Operations that make one file, folder or link that existed before."""
    path, name = call.path(), state.path(call)
    if path is None or path == FOLDER or name is None:
        return
    kind, length = stat.S_IFMT(call.number("mode")), call.number("length")
    if kind == stat.S_IFDIR:
        yield f"mkdir {name}"
    elif kind == stat.S_IFLNK:
        target = call.path("target")
        shown_target = state.target(target) if target else None
        if shown_target is not None:
            yield f"symlink {shown_target} {name}"
    elif kind == stat.S_IFREG:
        yield f"open 0 {name} wo,create"
        if call.written is not None:
            node = state.tree.find(path, follow=False)
            yield from data_calls.written_lines(
                state, "write 0", node=node, at=0, length=length, written=call.written
            )
        else:
            for at in range(0, length, _REQUEST_BYTES):
                some = min(_REQUEST_BYTES, length - at)
                yield f"write 0 {at} {some} {seed} {like_the_rest(at, some)}"
        yield "close 0"


def _put(state: ReplayState, call: Call) -> None:
    path = call.path()
    if path is not None and path != FOLDER:
        kind, target = stat.S_IFMT(call.number("mode")), call.path("target") or b""
        state.tree.put(path, Node(kind=kind, size=call.number("length"), target=target))


def translate(
    recording: Recording,
    compressor: Compressor | None,
    settle_ns: int,
    *,
    think: bool = True,
    then: Compressor | None = None,
    by_pages: bool = False,
    own: bytes | None = None,
) -> tuple[str, str, Translation]:
    """Preparation and body as flashbed-ops files, and a report of the translation.

    Raises `RecordingError`.
    """
    made = Translation(
        recording=recording, filler=lambda: Filler(compressor, then, by_pages), think=think, own=own
    )
    return (*_texts(made, settle_ns), made)


def translate_for_each(
    recording: Recording, ways: Sequence[Storing], *, settle_ns: int, own: bytes | None,
    told: Callable[[int], None],
) -> tuple[str, str]:  # fmt: skip
    """Preparation and body for several ways to store data; `apart` has those of each.

    The recording is read once. Raises `RecordingError`.
    """

    def filler() -> Fillers:
        return Fillers([Filler(*way) for way in ways])

    return _texts(Translation(recording=recording, filler=filler, own=own, told=told), settle_ns)


def _texts(made: Translation, settle_ns: int) -> tuple[str, str]:
    rows = made.recording.length()
    if rows > _ROWS_MAX:
        raise RecordingError(
            f"{shown(made.recording.path)}: {rows:,} calls and files; {_ROWS_MAX:,} are replayed"
            " at most: `flashbed ops cut` makes a part of it"
        )
    # As exec does: the mount itself leaves something to commit (agent/host/launch.c). A dump has
    # been mounted and nothing else.
    first = () if made.recording.about.dump is not None else ("sync",)
    rest = (*first, "remount", "sync", f"pause {settle_ns}", "prepared")
    prepare = text_of(itertools.chain(made.prepare(), rest), HEADER_2)
    return prepare, text_of(made.body(), HEADER_2)


def apart(text: str, count: int) -> list[str]:
    """The texts that `translate_for_each` made one of: they differ in the last field of lines."""
    texts: list[list[str]] = [[] for _ in range(count)]
    for line in text.splitlines():
        rest, _, last = line.rpartition(" ")
        fills = last.split(Fillers.BETWEEN)
        alike = [line] * count if len(fills) == 1 else [f"{rest} {fill}" for fill in fills]
        for one, own_line in zip(texts, alike, strict=True):
            one.append(own_line)
    return ["\n".join((*lines, "")) for lines in texts]
