"""Reads traces of strace as lines with absolute times; skips what strace did not print.

Without `-o` a trace stands between the program's own output, which may cut a call in two: the rest
follows in a later line. `strace -ff` writes a file for each task, merged here by their times.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from flashbed.base.paths import shown
from flashbed.program.imports.lines import ImportedError, lines_of
from flashbed.program.imports.strace_line import (
    Clock,
    Head,
    Line,
    NotALine,
    head_of,
    parse_call_text,
)

__all__ = ["StraceLines", "files_of"]

_ATTACHED = re.compile(rb"(?:strace: )?Process (\d{1,10}) attached(?: \([^)]*\))?\r?\Z")
_ABOUT_TASKS = re.compile(rb"(?:strace: )?(?:\[ )?Process \S+ | *<detached ")
_SUMMARY = re.compile(rb"% time +seconds +usecs/call")
_TOTAL = re.compile(rb"[\d.]+ +[\d.]+ .*\btotal\Z")
_FRAME = re.compile(rb" > \S")
_REST = re.compile(rb"(.*)(\)[ \t]+= .*|<unfinished \.\.\.>)\Z", re.DOTALL)
_BEGUN = re.compile(rb"[a-zA-Z_?][\w?]{0,63}\(")
_DAY_NS = 24 * 3600 * 10**9
_FILES_MAX = 1000


def files_of(path: Path) -> list[tuple[Path, int | None]]:
    """A trace's files, each with its task: FILE alone, or FILE.1, FILE.2, … of `strace -ff`."""
    if path.exists() or not path.name:
        return [(path, None)]
    try:
        numbered = [(one, one.name[len(path.name) + 1 :]) for one in path.parent.iterdir()
                    if one.name.startswith(path.name + ".")]  # fmt: skip
    except OSError:
        numbered = []
    found = sorted((int(number), one) for one, number in numbered if _is_task(number))
    if len(found) > _FILES_MAX:
        raise ImportedError(f"{shown(path)}: {len(found):,} files; {_FILES_MAX:,} at most")
    return [(one, task) for task, one in found] or [(path, None)]


def _is_task(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 10


@dataclass(kw_only=True)
class StraceLines:
    """The lines of a trace, read as a stream.

    Attributes:
        clock: what its times count from; `none` until a line with a time was seen.
        coarse: whether times are whole seconds.
        skipped: lines that strace did not print.
        attached: tasks that strace attached to, beside those that a call made.
    """

    path: Path
    clock: Clock = "none"
    coarse: bool = False
    skipped: int = 0
    attached: set[int] = field(default_factory=set)

    def lines(self) -> Iterator[Line]:
        """The lines about calls and ends of tasks. Raises `ImportedError`."""
        files = files_of(self.path)
        if len(files) == 1:
            yield from self._of(*files[0])
            return
        parts = [self._in_order(file, task) for file, task in files]
        yield from heapq.merge(*parts, key=lambda line: line.time_ns)

    def _in_order(self, path: Path, task: int | None) -> Iterator[Line]:
        """The lines of one task's file, which must have times that can be compared."""
        for line in self._of(path, task):
            if self.clock not in ("epoch", "day"):
                raise ImportedError(
                    f"{shown(path)}: the files of strace -ff have no order between them without"
                    " -t, -tt or -ttt; import one of them"
                )
            yield line

    def _of(self, path: Path, task: int | None) -> Iterator[Line]:
        times = _Times(self)
        begun: Head | None = None
        by_strace = summary = False
        for number, raw in lines_of(path):
            if summary:
                summary = not _TOTAL.match(raw)
                continue
            text = raw.rstrip(b" \t")
            if begun is not None:
                joined = _joined(begun, text, by_strace)
                if joined is not None:
                    begun = None
                    line = times.line(joined, number, again=True)
                    if line is not None:
                        yield _of_task(replace(line, joined=True), task)
                    continue
            attached = _ATTACHED.search(text)
            by_strace = attached is not None
            if attached is not None:
                self.attached.add(int(attached[1]))
                text = text[: attached.start()]
            elif _SUMMARY.match(text):
                summary = True
                continue
            if not text or text.isspace() or _FRAME.match(text) or _ABOUT_TASKS.match(text):
                continue
            head = head_of(text)
            try:
                line = times.line(head, number)
            except NotALine:
                if _BEGUN.match(head.rest):
                    self.skipped += begun is not None
                    times.begin(head)
                    begun = head
                else:
                    self.skipped += 1
                continue
            begun = None
            if line is not None:
                yield _of_task(line, task)
        self.skipped += begun is not None


def _of_task(line: Line, task: int | None) -> Line:
    return line if task is None else replace(line, task=task)


def _joined(begun: Head, text: bytes, by_strace: bool) -> Head | None:
    """A call that other output has cut, with the rest in this line; all of it `by_strace`."""
    found = _REST.match(text)
    if found is None or _BEGUN.match(head_of(text).rest) or b"resumed>" in found[1]:
        return None
    # Otherwise what stands before the rest is the program's.
    more = found[1] if by_strace else b""
    return replace(begun, rest=begun.rest + more + found[2])


@dataclass
class _Times:
    """Turns a file's times into nanoseconds since its first."""

    trace: StraceLines
    days: int = 0
    last_ns: int = 0
    now_ns: int = 0

    def begin(self, head: Head) -> int:
        """The time of a line."""
        trace = self.trace
        if head.clock == "none":
            return self.now_ns
        if trace.clock == "none":
            trace.clock, trace.coarse = head.clock, head.coarse
        if trace.clock == "relative":
            self.now_ns += head.time_ns
            return self.now_ns
        if trace.clock == "day":
            if head.time_ns < self.last_ns - _DAY_NS // 2:
                self.days += 1
            self.last_ns = head.time_ns
        self.now_ns = head.time_ns + self.days * _DAY_NS
        return self.now_ns

    def line(self, head: Head, number: int, *, again: bool = False) -> Line | None:
        """The parsed line; `again` if its time was taken already. Raises `NotALine`."""
        parsed = parse_call_text(head, 0, number)
        time_ns = self.now_ns if again else self.begin(head)
        return replace(parsed, time_ns=time_ns) if parsed is not None else None
