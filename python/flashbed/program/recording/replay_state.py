"""The state of a translation: tasks, descriptors, slots, mappings, names, and the lines so far."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

from flashbed.program.recording.calls import Call, is_outside
from flashbed.program.recording.fill import Filler, Fillers
from flashbed.program.recording.known_names import NameTree, Node

__all__ = [
    "AddressSpace",
    "Description",
    "Files",
    "Mapped",
    "Numbers",
    "ReplayState",
    "Task",
    "TranslationError",
    "name_word",
    "word",
]

SLOTS = 1024
MAPPINGS = 1024
DESCRIPTORS = 1 << 20
"""fs.nr_open of Linux, which is for one process; here for all of them."""
_PATH_BYTES_MAX, _NAME_BYTES_MAX = 1023, 255
_WORD_BYTES_MAX = 2000
"""Longest path as written, so that two fit into a line."""
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


class TranslationError(ValueError):
    """A call that cannot be translated; the message says why."""


@dataclass(eq=False, slots=True, kw_only=True)
class Description:
    """An open file, which descriptors may share. Outside the folder it has no slot."""

    slot: int | None
    node: Node | None
    access: str = "ro"
    append: bool = False
    position: int = 0
    uses: int = 0


@dataclass(eq=False, slots=True, kw_only=True)
class Mapped:
    """A mapping of a file: its number in the operations, None if the file is outside."""

    number: int | None
    address: int
    length: int
    offset: int
    file: Description
    how: str
    uses: int = 1


@dataclass(eq=False, slots=True)
class Files:
    """Descriptors by number, shared by some tasks.

    A fork's copy is made when either side changes it: most children execute at once. Until then
    `copies` counts the others that have the same tables.
    """

    by_number: dict[int, Description] = field(default_factory=dict)
    closed_by_exec: set[int] = field(default_factory=set)
    users: int = 1
    copies: list[int] = field(default_factory=lambda: [0])

    def fork(self) -> Files:
        """A copy, made when one of the two changes."""
        self.copies[0] += 1
        return Files(self.by_number, self.closed_by_exec, 1, self.copies)

    def separate(self) -> int:
        """Copies what is still another's, before a change; returns how many descriptors."""
        if not self.copies[0]:
            return 0
        self.copies[0] -= 1
        self.copies = [0]
        self.by_number = dict(self.by_number)
        self.closed_by_exec = set(self.closed_by_exec)
        for description in self.by_number.values():
            description.uses += 1
        return len(self.by_number)

    def leave(self) -> bool:
        """Leaves its tables to another that has them; False if there is none."""
        if not self.copies[0]:
            return False
        self.copies[0] -= 1
        return True


@dataclass(eq=False, slots=True)
class AddressSpace:
    """The mappings of an address space, shared by some tasks."""

    mapped: list[Mapped] = field(default_factory=list)
    users: int = 1


@dataclass(eq=False, slots=True, kw_only=True)
class Task:
    """A task. Threads share files and memory; `group` has all threads of the process."""

    files: Files = field(default_factory=Files)
    memory: AddressSpace = field(default_factory=AddressSpace)
    group: list[Task] = field(default_factory=list)
    ended: bool = False
    end_ns: int = 0
    """When its last call returned."""
    cpu_ns: int = 0
    wait_ns: int = 0
    """Processor time and waiting since its last line."""


class Numbers:
    """Allocates the lowest free number."""

    def __init__(self, limit: int, what: str) -> None:
        self._free: list[int] = []
        self._next = 0
        self._limit = limit
        self._what = what

    def take(self) -> int:
        """Raises `TranslationError` if none is free."""
        if self._free:
            return heapq.heappop(self._free)
        if self._next == self._limit:
            raise TranslationError(f"more than {self._limit:,} {self._what} at once")
        self._next += 1
        return self._next - 1

    def give_back(self, number: int) -> None:
        """Frees a number."""
        heapq.heappush(self._free, number)


@dataclass(kw_only=True)
class ReplayState:
    """The whole state. Handlers of calls (data_calls.py and others) change it, add to `lines`."""

    filler: Filler | Fillers
    tree: NameTree = field(default_factory=NameTree)
    slots: Numbers = field(default_factory=lambda: Numbers(SLOTS, "open files"))
    mappings: Numbers = field(default_factory=lambda: Numbers(MAPPINGS, "mappings of files"))
    tasks: dict[int, Task] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    writes: int = 0
    written_bytes: int = 0
    descriptors: int = 0
    """Of all tasks."""
    opened: dict[int, Description] = field(default_factory=dict)
    """By slot."""

    def skip(self, why: str) -> None:
        """Counts a call that has no operation."""
        self.left_out[why] += 1

    def task(self, call: Call) -> Task:
        """The calling task.

        One whose beginning was not recorded shares the first task's files, and has run since the
        recording began.
        """
        task = self.tasks.get(call.task)
        if task is None:
            first = next(iter(self.tasks.values()), None)
            task = self.fork(first, 0) if first else Task()
            task.group.append(task)
            task.end_ns = 0
            self.tasks[call.task] = task
        return task

    def fork(self, task: Task, flags: int) -> Task:
        """A child of a task, which shares what the flags of `clone` say."""
        files, memory = task.files, task.memory
        if flags & _CLONE_FILES:
            files.users += 1
        else:
            files = files.fork()
        if flags & _CLONE_VM:
            memory.users += 1
        else:
            memory = AddressSpace(list(memory.mapped))
            for mapped in memory.mapped:
                mapped.uses += 1
        new = Task(files=files, memory=memory, group=task.group if flags & _CLONE_THREAD else [])
        new.end_ns = task.end_ns
        return new

    def execute(self, task: Task) -> None:
        """A task executes another program: its descriptors are its own, its memory is empty."""
        if task.files.users > 1:
            task.files.users -= 1
            task.files = task.files.fork()
        for number in sorted(task.files.closed_by_exec):
            self.uninstall(task, number)
        self._leave(task)
        task.memory = AddressSpace()

    def _leave(self, task: Task) -> None:
        task.memory.users -= 1
        if not task.memory.users:
            for mapped in list(task.memory.mapped):
                self.unmap(task, mapped)

    def descriptor(self, call: Call, name: str = "descriptor") -> Description | None:
        """What a descriptor refers to, if it is open."""
        return self.task(call).files.by_number.get(call.number(name, -1))

    def slot(self, call: Call, name: str = "descriptor") -> Description | None:
        """What a descriptor refers to, if it has a slot."""
        found = self.descriptor(call, name)
        return found if found is not None and found.slot is not None else None

    def install(self, task: Task, number: int, description: Description, by_exec: bool) -> None:
        """Lets a descriptor refer to this; closes what it referred to before."""
        description.uses += 1
        self.uninstall(task, number)
        task.files.by_number[number] = description
        if description.slot is not None:
            self.opened[description.slot] = description
        if by_exec:
            task.files.closed_by_exec.add(number)
        self._count(1)

    def _count(self, more: int) -> None:
        self.descriptors += more
        if self.descriptors > DESCRIPTORS:
            raise TranslationError(f"more than {DESCRIPTORS:,} descriptors at once")

    def close_by_exec(self, task: Task, number: int, by_exec: bool) -> None:
        """Sets or clears FD_CLOEXEC."""
        self._count(task.files.separate())
        (task.files.closed_by_exec.add if by_exec else task.files.closed_by_exec.discard)(number)

    def uninstall(self, task: Task, number: int) -> None:
        """Closes a descriptor."""
        self._count(task.files.separate())
        description = task.files.by_number.pop(number, None)
        task.files.closed_by_exec.discard(number)
        if description is not None:
            self._count(-1)
            self._release(description)

    def _release(self, description: Description) -> None:
        description.uses -= 1
        if description.slot is None:
            return
        if not description.uses:
            del self.opened[description.slot]
            self.lines.append(f"close {description.slot}")
            self.slots.give_back(description.slot)
        elif description.node is not None and description.node.unflushed:
            self._flush(description.node)
        if description.node is not None:
            description.node.unflushed = False

    def _flush(self, node: Node) -> None:
        """Closes another descriptor of a file, which YAFFS2 flushes at each close.

        So it is where a process ends that inherited the descriptor. A file without a name stays
        as it is.
        """
        path = self.path_of(node)
        if path is not None:
            slot = self.slots.take()
            self.lines += [f"open {slot} {path} ro", f"close {slot}"]
            self.slots.give_back(slot)

    def unmap(self, task: Task, mapped: Mapped) -> None:
        """Removes a mapping from one address space."""
        task.memory.mapped.remove(mapped)
        mapped.uses -= 1
        if not mapped.uses and mapped.number is not None:
            self.lines.append(f"munmap {mapped.number}")
            self.mappings.give_back(mapped.number)

    def end(self, task: Task) -> None:
        """Ends a task and closes what no other task shares."""
        if task.ended:
            return
        task.ended = True
        self._leave(task)
        task.files.users -= 1
        if task.files.users:
            return
        if task.files.leave():
            self._flush_inherited(task.files)
            return
        for number in sorted(task.files.by_number):
            self.uninstall(task, number)

    def _flush_inherited(self, files: Files) -> None:
        """Flushes what a task wrote that ends and leaves its tables to another."""
        changed = [one for one in self.opened.values() if one.node and one.node.unflushed]
        for description in changed:
            there = any(one is description for one in files.by_number.values())
            if there and description.node is not None:
                self._flush(description.node)
                description.node.unflushed = False

    def path(self, call: Call, name: str = "path") -> str | None:
        """A path as operations write it; None outside the folder, or if it is too long."""
        path = call.path(name)
        return None if path is None or is_outside(path) else self.shown(path)

    def shown(self, path: bytes) -> str | None:
        """A path as operations write it; None, and counted, if it is too long."""
        too_long = len(path) > _PATH_BYTES_MAX or len(word(path)) > _WORD_BYTES_MAX
        if too_long or any(len(name) > _NAME_BYTES_MAX for name in path.split(b"/")):
            self.skip("calls on a path that is too long")
            return None
        return word(path)

    def target(self, target: bytes) -> str | None:
        """A link's target as operations write it; None, and counted, if it is too long."""
        if not 0 < len(target) <= _PATH_BYTES_MAX or len(word(target)) > _WORD_BYTES_MAX:
            self.skip("symlink with a target that is empty or too long")
            return None
        return word(target)

    def path_of(self, node: Node | None) -> str | None:
        """A current path of an open file, as operations write it."""
        path = self.tree.path_of(node) if node is not None else None
        return self.shown(path) if path is not None else None

    def seed(self) -> int:
        """A new seed for each write."""
        self.writes += 1
        return self.writes


_CLONE_VM, _CLONE_FILES, _CLONE_THREAD = 0x100, 0x400, 0x10000


@lru_cache(maxsize=1 << 12)
def word(path: bytes) -> str:
    """A path, or a link's target, as version 2 writes it."""
    return "/".join(name_word(name) for name in path.split(b"/"))


def name_word(name: bytes) -> str:
    """A name as version 2 writes it."""
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in name)
