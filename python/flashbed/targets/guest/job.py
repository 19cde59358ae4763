"""Makes the agent's input from programs: `flashbed-job 1` (agent/PROTOCOL.md).

Cases with the same file system and preparation share a group: a fresh file system, prepared once.
Some cases change more than their group allows:

- A case that writes is the last of its group; the next one would not find the state it starts from.
- So is a case on YAFFS2 with tags in the pages: what it reads stays in the core's short-op cache.
  One whose files are in a read-only root leaves blocks in squashfs' caches.
- A case that remounts JFFS2, in its preparation or later, is the last of its boot. The kernel sums
  up the nodes it finds (`pseudo_random` of fs/jffs2/scan.c), rotates its lists of blocks by that,
  and keeps the sum.
- A case that writes and removes at least an eighth of JFFS2's partition, or may, has a boot of its
  own. The blocks it empties advance a counter in jffs2_refile_wbuf_blocks (fs/jffs2/wbuf.c), and so
  do those of the cases before it. How much an SQL statement writes is not known.
- A case that writes on a kernel since 6.6 has a boot of its own. The kernel's threads keep the lag
  that they had when they last slept (kernel/sched/fair.c), over all cases.

Identifiers in the job are flashbed's numbers, so a case_id may hold anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from flashbed.program.operations import canonical, each, header_of, writes
from flashbed.program.sql import statement_kind
from flashbed.stack.names import DEFAULT_WINDOW
from flashbed.targets.base import Cut, Program
from flashbed.targets.guest.nand import begin_commands, setup_commands

__all__ = [
    "Described",
    "Group",
    "JobItem",
    "described",
    "for_one_boot",
    "groups_of",
    "items_of",
    "text_of",
]

_TAGS_BYTES = 28
"""Of YAFFS2; with less free space in the OOB they are in the pages."""


@dataclass(frozen=True, kw_only=True)
class JobItem:
    """A program and its operations; `name` is its identifier in the job."""

    name: str
    program: Program
    prepare: str
    body: str
    """Canonical operations, so the agent's line numbers match."""
    cuts: tuple[Cut, ...] = ()
    """The cuts still to be made."""

    @property
    def writes(self) -> bool:
        """Whether the case changes the file system or its chip."""
        faults = self.program.stack.faults.while_measuring
        return faults or writes(self.body)

    @property
    def leaves_in_memory(self) -> bool:
        """Whether the next case would find what this one has read in memory."""
        stack = self.program.stack
        if stack.root_volume is not None:
            return True
        spare = stack.board.spi.oob_free_bytes if stack.board.spi is not None else _TAGS_BYTES
        inband = "inband-tags" in stack.mount_options.split(",") or spare < _TAGS_BYTES
        return stack.fs == "yaffs2" and inband

    @cached_property
    def marks_the_kernel(self) -> bool:
        """Whether the case changes the kernel's state, which the next case would notice."""
        if self.program.stack.kernel.kernel.scheduler != "cfs":
            return self.writes
        if self.program.stack.fs != "jffs2":
            return False
        if _MARKING.search(self.body) or _REMOUNT.search(self.prepare):
            return True
        sizes, slots = _files_after(self.prepare)
        return (
            8 * _renewed(self.body, dict(sizes), dict(slots))
            >= self.program.stack.board.partition_bytes
        )


@dataclass
class Group:
    """Cases that start from one prepared state."""

    name: str
    items: list[JobItem] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Described:
    """What the host knows about an operation; None for what it does not have."""

    op: str
    file: str | None
    offset_bytes: int | None
    length_bytes: int | None
    statement_kind: str | None = None


@lru_cache(maxsize=16)
def _files_after(prepare: str) -> tuple[dict[str, int], dict[str, str]]:
    """The files' sizes after a preparation, which many cases share, and its open slots."""
    sizes: dict[str, int] = {}
    slots: dict[str, str] = {}
    _renewed(prepare, sizes, slots)
    return sizes, slots


def _renewed(text: str, sizes: dict[str, int], slots: dict[str, str]) -> int:
    """Bytes that canonical operations write, plus those of the files they remove or truncate.

    `sizes` and `slots` describe the files before the operations, and after them on return.
    """
    renewed = 0
    for _, name, fields in _lines(text):
        written = removed = 0
        match name:
            case "open":
                slots[fields[0]] = fields[1]
                if "trunc" in fields[2].split(","):
                    removed = sizes.pop(fields[1], 0)
            case "write":
                file, written = slots.get(fields[0], ""), int(fields[2])
                sizes[file] = max(sizes.get(file, 0), int(fields[1]) + written)
            case "copy":
                file, written = slots.get(fields[2], ""), int(fields[4])
                sizes[file] = max(sizes.get(file, 0), int(fields[3]) + written)
            case "store":
                written = int(fields[2])
            case "truncate":
                file, size = slots.get(fields[0], ""), int(fields[1])
                removed = max(0, sizes.get(file, 0) - size)
                sizes[file] = size
            case "unlink":
                removed = sizes.pop(fields[0], 0)
            case "rename":
                removed = sizes.pop(fields[1], 0)
                sizes[fields[1]] = sizes.pop(fields[0], 0)
            case _:
                pass
        renewed += written + removed
    return renewed


def items_of(programs: Sequence[Program], numbers: Mapping[str, int]) -> list[JobItem]:
    """The programs with their operations parsed. Raises `OperationError` for a broken line."""
    prepared: dict[str, str] = {}
    items = []
    for program in programs:
        if program.prepare not in prepared:
            prepared[program.prepare] = _canonical(program.prepare)
        number, body = numbers[program.case_id], _canonical(program.body)
        items.append(
            JobItem(
                name=f"c{number}",
                program=program,
                prepare=prepared[program.prepare],
                body=body,
                cuts=program.cuts,
            )
        )
    return items


def _canonical(text: str) -> str:
    """The canonical text; the original is dropped, as long ones do not fit into memory twice."""
    found = canonical(each(text), header_of(text))
    return text if found == text else found


def groups_of(items: Iterable[JobItem]) -> list[Group]:
    """Groups of items by file system, preparation and chip; more if cases write."""
    sorted_out: dict[tuple[object, ...], list[JobItem]] = {}
    for item in items:
        chip = tuple(setup_commands(item.program))
        sorted_out.setdefault((item.program.stack.mounted, item.prepare, chip), []).append(item)
    groups: list[Group] = []
    for same in sorted_out.values():
        fresh = True
        for item in same:
            if fresh:
                groups.append(Group(f"g{len(groups)}"))
            groups[-1].items.append(item)
            fresh = item.writes or item.leaves_in_memory or bool(item.cuts)
    return groups


def for_one_boot(groups: Sequence[Group]) -> list[Group]:
    """The groups that one boot can run: all that leave the kernel unchanged, or one other."""
    unmarked = [group for group in groups if not group.items[-1].marks_the_kernel]
    return unmarked or list(groups[:1])


def _section(text: str) -> str:
    return f"ops {text.count(chr(10))}\n{text}"


def _trace(item: JobItem, *, trace_flash: bool) -> str:
    program = item.program
    words = ["flash" if trace_flash else "counts"]
    if program.check_contents:
        words.append("contents")
    if _is_cut(program):
        words.append("changes")
    if program.record_wear:
        words.append("wear")
    if program.record_calls:
        words.append("calls")
    if program.record_flush and writes(item.body):
        words.append("flush")
    return ",".join(words)


def _is_cut(program: Program) -> bool:
    """Whether the case's power is cut, or its changes are counted for that."""
    return program.record_changes or bool(program.cuts)


def text_of(
    groups: Sequence[Group], *, layout: Sequence[str] = (), trace_flash: bool, our_chip: bool
) -> str:
    """The job's text. Only our own chip takes commands; `layout` are the lines of a layout."""
    parts = ["flashbed-job 1\n", *(f"{line}\n" for line in layout)]
    for group in groups:
        first = group.items[0]
        if our_chip:
            parts += (f"setup {command}\n" for command in setup_commands(first.program))
        wear = " wear" if any(item.program.record_wear for item in group.items) else ""
        cut = " cut" if any(_is_cut(item.program) for item in group.items) else ""
        mount_words = f"{first.program.stack.mounted}{wear}{cut}"
        parts += (f"group {group.name} {mount_words}\n", _section(first.prepare))
        for item in group.items:
            program = item.program
            parts += (f"chip {command}\n" for command in begin_commands(program))
            parts += [f"trace {program.tracers}\n"] if program.tracers else []
            words = _trace(item, trace_flash=trace_flash)
            window = (
                DEFAULT_WINDOW
                if program.stack.read_ahead_kib is None
                else program.stack.read_ahead_kib
            )
            parts.append(f"case {item.name} {window} {words}\n")
            parts.append(_section(item.body))
            parts += (f"cut {item.name} {cut.change} {cut.seed}\n" for cut in item.cuts)
    parts.append("done\n")
    return "".join(parts)


def described(text: str) -> Iterator[tuple[int, Described]]:
    """Line number and description of each canonical operation; a slot is named by its file."""
    slots: dict[str, str] = {}
    mapped: dict[str, str | None] = {}
    for number, name, fields in _lines(text):
        file: str | None = None
        offset: int | None = None
        length: int | None = None
        kind: str | None = None
        match name:
            case "open":
                slots[fields[0]] = file = fields[1]
            case "close" | "fsync" | "fdatasync" | "readdir" | "syncfs" | "flock":
                file = slots.get(fields[0])
            case "truncate":
                file, length = slots.get(fields[0]), int(fields[1])
            case "read" | "write" | "fadvise" | "erase" | "send" | "fallocate" | "sync_range":
                file, offset, length = slots.get(fields[0]), int(fields[1]), int(fields[2])
            case "copy":
                file, offset, length = slots.get(fields[0]), int(fields[1]), int(fields[4])
            case "mmap":
                mapped[fields[0]] = file = slots.get(fields[1])
                offset, length = int(fields[2]), int(fields[3])
            case "touch" | "store" | "msync":
                file, offset, length = mapped.get(fields[0]), int(fields[1]), int(fields[2])
            case "munmap":
                file = mapped.get(fields[0])
            case "link" if fields[0].startswith("SLOT:"):
                file = slots.get(fields[0].removeprefix("SLOT:"))
            case "symlink":
                file = fields[1]
            case "setxattr":
                file, length = fields[0], int(fields[2])
            case name if name in _OF_A_PATH:
                file = fields[0]
            case "sql_open" | "sql_close":
                file = fields[0]
            case "sql":
                file, kind = fields[0], statement_kind(fields[1])
            case _:
                pass
        yield (
            number,
            Described(
                op=name, file=file, offset_bytes=offset, length_bytes=length, statement_kind=kind
            ),
        )


_OF_A_PATH = frozenset(
    {"mkdir", "unlink", "rmdir", "rename", "link", "stat", "readlink", "chmod", "chown", "utimens",
     "getxattr", "listxattr", "removexattr"}
)  # fmt: skip
_REMOUNT = re.compile(r"^remount\b", re.MULTILINE)
_MARKING = re.compile(r"^(?:remount|sql)\b", re.MULTILINE)
_LINE = re.compile(r"([^ \n]+)(?: ([^\n]*))?\n?")


def _lines(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Number, name and fields of each line of canonical operations."""
    for number, line in enumerate(_LINE.finditer(text, text.index("\n") + 1), start=2):
        name, rest = line.groups(default="")
        yield number, name, rest.split(" ", 1 if name == "sql" else -1)
