"""What a cut left of the program's own data, whatever the file system had promised.

A file system that keeps every promise may still leave a program without its configuration: what a
program has not synced carries no promise. So each file that the measured operations changed is
compared with the contents that the program has finished (finished.py):

- `new`: the last one, or something later;
- `old`: an earlier one, or a file that only grows without its end;
- `empty`: a file without data: it has no bytes, or its bytes are zeros;
- `missing`: the file does not exist;
- `mixed`: none of them: cut short, bytes of several moments, or unreadable.

Only names that exist at the end of the run count, and each from its first finished content on.
Files of SQLite are `not judged` here: it repairs them itself (database_judge.py judges it).
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from flashbed.bench.powercut.contents import ContentPlace, Contents
from flashbed.bench.powercut.finished import DoneOperation, finished
from flashbed.bench.powercut.tree import Entry, FileTree, TreeFile
from flashbed.program.content import Bytes
from flashbed.program.operations import Operation
from flashbed.targets.base import SurveyedFile

__all__ = ["DAMAGED", "NEW", "NOT_JUDGED", "OLD", "STATES", "FileState", "ProgramFiles"]

NEW, OLD, EMPTY, MIXED, MISSING = STATES = ("new", "old", "empty", "mixed", "missing")
DAMAGED = (EMPTY, MIXED, MISSING)
NOT_JUDGED = "not judged"
_DATABASE_ENDS = ("-journal", "-wal", "-shm")
_NAMINGS = 256
"""Kept of a name: a store that is replaced every second and written back after 35 s."""


ContentOf = Callable[[SurveyedFile], Bytes | None]
"""The bytes of a file that was found; None if not all could be read."""


@dataclass(frozen=True, kw_only=True)
class FileState:
    """A file after a cut."""

    change: int
    path: str
    state: str
    lost_ns: int | None
    """At most so much time of the program's work on it is gone; None where that is no time."""
    kept_by: str | None
    """The call with which the program would have kept it."""


@dataclass(frozen=True, kw_only=True)
class _Naming:
    """A name that was given to something."""

    entry: Entry
    start_ns: int | None
    finish: int
    """The operation at whose begin the program takes it for done."""
    old_name: str | None = None
    """Of a rename."""
    was_durable: bool = False
    """Whether the content was, when it was renamed."""


@dataclass
class ProgramFiles:
    """The files of the program, by operation; `judge` has a cut's."""

    steps: Sequence[DoneOperation]
    measured_from: int
    """The first of the steps that are measured."""
    counts: Counter[tuple[int, str]] = field(default_factory=Counter)
    """(change, state) -> files."""

    def __post_init__(self) -> None:
        self._finished = finished(self.steps)
        kept = self._finished.kept
        opens = (step.operation for step in self.steps if step.operation.name == "open")
        opened = {str(operation.fields[1]) for operation in opens}
        self._databases = {
            name.removesuffix(end)
            for name in opened
            for end in _DATABASE_ENDS
            if name.endswith(end)
        }
        self._kept = {name for name in kept if not self._is_database(name)}
        self._databases &= kept
        self._contents: dict[TreeFile, Contents] = {}
        self._namings: dict[str, list[_Naming]] = {}
        self._paths: dict[TreeFile, set[str]] = {}
        self._changed: set[str] = set()
        self._was_new: dict[str, array[int]] = {}
        self._others: dict[str, list[FileState]] = {}

    def _is_database(self, name: str) -> bool:
        return any(name.removesuffix(end) in self._databases for end in ("", *_DATABASE_ENDS))

    def begun(self, number: int, tree: FileTree) -> None:
        """Notes what the tree has become by an operation, which it has begun."""
        step = self.steps[number]
        if step.result < 0:
            return
        for path in tree.named:
            self._name(path, tree.names[path][-1], number)
        file = _written(step.operation, tree)
        if file is not None:
            contents = self._contents.setdefault(file, Contents())
            contents.note(file.now, step.start_ns, self._finished.contents.get(number))
            if number >= self.measured_from:
                self._changed |= self._paths.get(file, set())

    def _name(self, path: str, entry: Entry, number: int) -> None:
        step = self.steps[number]
        old_name = None
        if step.operation.name == "rename" and entry is not None:
            old_name = str(step.operation.fields[0])
        durable = isinstance(entry, TreeFile) and entry.untouched
        finish = self._finished.names.get(number, len(self.steps))
        namings = self._namings.setdefault(path, [])
        namings.append(
            _Naming(
                entry=entry,
                start_ns=step.start_ns,
                finish=finish,
                old_name=old_name,
                was_durable=durable,
            )
        )
        del namings[:-_NAMINGS]
        if isinstance(entry, TreeFile):
            self._paths.setdefault(entry, set()).add(path)
        if number >= self.measured_from and entry is not None:
            self._changed.add(path)

    def judge(
        self, change: int, begun: int, found: dict[str, SurveyedFile], contents: ContentOf
    ) -> None:
        """Judges each file after a cut, when so many operations had begun."""
        cut_ns = self.steps[begun].start_ns if begun < len(self.steps) else self._end_ns()
        for path in sorted(self._changed & self._kept):
            at = self._at(path, begun)
            if at is None:
                continue
            state, since_ns = self._state(path, at, found.get(path), contents)
            lost_ns = None
            if since_ns is not None and cut_ns is not None and state != NEW:
                lost_ns = max(0, cut_ns - since_ns)
            self.counts[change, state] += 1
            if state == NEW:
                self._was_new.setdefault(path, array("q")).append(change)
            else:
                kept_by = self._kept_by(path, at, state)
                states = self._others.setdefault(path, [])
                states.append(
                    FileState(
                        change=change, path=path, state=state, lost_ns=lost_ns, kept_by=kept_by
                    )
                )

    def rows(self) -> Iterator[FileState]:
        """The states of all files that were not new after every cut, by name and change.

        A database has one row, with the first cut.
        """
        first = min((change for change, _ in self.counts), default=1)
        for path in sorted(self._databases & self._changed):
            yield FileState(change=first, path=path, state=NOT_JUDGED, lost_ns=None, kept_by=None)
        for path, states in sorted(self._others.items()):
            new = (FileState(change=change, path=path, state=NEW, lost_ns=None, kept_by=None)
                   for change in self._was_new.get(path, ()))  # fmt: skip
            yield from sorted([*states, *new], key=lambda state: state.change)

    def _end_ns(self) -> int | None:
        return max((step.start_ns for step in self.steps if step.start_ns is not None), default=0)

    def _at(self, path: str, begun: int) -> tuple[int, ContentPlace] | None:
        """The naming and content that the program had finished; None if it has no such file."""
        namings = self._namings[path]
        if namings[-1].entry is None:
            return None
        for number in range(len(namings) - 1, -1, -1):
            naming = namings[number]
            if naming.finish >= begun:
                continue
            if not isinstance(naming.entry, TreeFile):
                return None
            place = self._contents.get(naming.entry, Contents()).last_finished(begun)
            if place is not None:
                return number, place
        return None

    def _state(
        self,
        path: str,
        at: tuple[int, ContentPlace],
        found: SurveyedFile | None,
        contents: ContentOf,
    ) -> tuple[str, int | None]:
        """The state, and when the first operation began whose work is gone."""
        namings = self._namings[path]
        if found is None:
            gone = any(naming.entry is None for naming in namings[at[0] + 1 :])
            return (NEW, None) if gone else (MISSING, self._since_growth(path, None))
        data = None if found.target is not None else contents(found)
        if data is None:
            return MIXED, None
        for number in range(len(namings) - 1, -1, -1):
            entry = namings[number].entry
            if not isinstance(entry, TreeFile) or entry not in self._contents:
                continue
            for place in self._contents[entry].places(data):
                state = self._placed(entry, (number, place), at, len(data))
                if state == OLD:
                    return OLD, self._since(namings, number, place)
                if state is not None:
                    return state, None
        if self._begins_with_finished(namings, at, data):
            return NEW, None
        return EMPTY if not data.any() else MIXED, self._since_growth(path, data)

    def _begins_with_finished(
        self, namings: Sequence[_Naming], at: tuple[int, ContentPlace], data: Bytes
    ) -> bool:
        """Whether all that is finished is there, and behind it something that is not."""
        entry = namings[at[0]].entry
        assert isinstance(entry, TreeFile)
        growth = self._contents[entry].growths[at[1].growth]
        return growth.agrees_to(data) >= growth.sizes[at[1].content] > 0

    def _placed(
        self,
        file: TreeFile,
        place: tuple[int, ContentPlace],
        at: tuple[int, ContentPlace],
        size: int,
    ) -> str | None:
        """The state of a file with a known content; None if it cannot be taken for that."""
        growth = self._contents[file].growths[place[1].growth]
        number = place[1].content
        if (place[0], place[1].growth) == (at[0], at[1].growth):
            if number >= at[1].content:
                return NEW
        elif _order(place) > _order(at):
            whole = growth.finishes[number] is not None and not place[1].cut_short
            return NEW if whole else None
        earlier = zip(growth.sizes[: number + 1], growth.finishes, strict=False)
        has_whole = any(grown and finish is not None for grown, finish in earlier)
        return OLD if size and has_whole else None

    def _since(self, namings: Sequence[_Naming], number: int, place: ContentPlace) -> int | None:
        entry = namings[number].entry
        assert isinstance(entry, TreeFile)
        since = self._contents[entry].next_start_ns(place)
        if since is None and number + 1 < len(namings):
            since = namings[number + 1].start_ns
        return since

    def _since_growth(self, path: str, data: Bytes | None) -> int | None:
        """When a file that has only ever grown got the first bytes that are not there."""
        namings = [naming for naming in self._namings[path] if naming.entry is not None]
        entry = namings[0].entry
        growths = self._contents[entry].growths if isinstance(entry, TreeFile) else []
        if len(namings) > 1 or len(growths) != 1:
            return None
        return growths[0].start_ns_of(0 if data is None else growths[0].agrees_to(data))

    def _kept_by(self, path: str, at: tuple[int, ContentPlace], state: str) -> str:
        """The call that was left out."""
        naming = self._namings[path][at[0]]
        assert isinstance(naming.entry, TreeFile)
        contents = self._contents[naming.entry]
        folder = path.rpartition("/")[0] or "."
        growth = contents.growths[at[1].growth]
        written_ns = growth.starts_ns[at[1].content]
        if naming.old_name is not None and (written_ns or 0) <= (naming.start_ns or 0):
            before = f"fsync({naming.old_name}) before rename"
            after = f"fsync({folder}) after rename"
            if state == OLD:
                return after if naming.was_durable else f"{before}, {after}"
            return after if naming.was_durable else before
        if state in DAMAGED and len(contents.growths) > 1:
            return f"write {path}.new, fsync it, rename it to {path}"
        if state == MISSING and naming.entry.untouched:
            return f"fsync({folder}) after the file is made"
        finished_contents = sum(finish is not None for finish in growth.finishes)
        return f"fsync({path}) after {'each write' if finished_contents > 1 else 'writing it'}"


def _order(place: tuple[int, ContentPlace]) -> tuple[int, int, int]:
    return place[0], place[1].growth, place[1].content


def _written(operation: Operation, tree: FileTree) -> TreeFile | None:
    """The file whose content an operation sets."""
    if operation.name in ("write", "store", "truncate", "copy"):
        return tree.file_of(operation)
    if operation.name == "open":
        flags = str(operation.fields[2]).split(",")
        if "create" in flags or "trunc" in flags:
            return tree.file_of(operation)
    return None
