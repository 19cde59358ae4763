"""Translates calls that open, close, read, write and sync into operations."""

from __future__ import annotations

import base64
import stat
from collections.abc import Callable, Iterator, Mapping

from flashbed.program.recording.calls import PIECE_BYTES, Call, Written
from flashbed.program.recording.known_names import Node
from flashbed.program.recording.replay_state import Description, ReplayState, TranslationError

__all__ = ["HANDLERS", "Handler", "access_of", "written_lines"]

Handler = Callable[[ReplayState, Call], None]

TRANSFER_BYTES_MAX = 1 << 30
_OFFSET_MAX = 2**63 - 1
_FILL_CHARACTERS_MAX = 3800
_DATA_BYTES = 3000
_WRITTEN_BYTES_MAX = 1 << 40
"""By all calls of a recording: a day of a chip that programs 12 MB/s without a pause."""
_ASKED_BYTES_MAX = 1 << 20

_ACCESS = ("ro", "wo", "rw", "rw")
_CREATE, _EXCL, _TRUNC, _APPEND, _DIRECT = 0o100, 0o200, 0o1000, 0o2000, 0o40000
_DIRECTORY, _NOFOLLOW, _CLOEXEC, _PATH = 0o200000, 0o400000, 0o2000000, 0o10000000
_DSYNC, _SYNC, _TMPFILE = 0o10000, 0o4010000, 0o20200000
_WORDS = (
    (_CREATE, "create"), (_EXCL, "excl"), (_TRUNC, "trunc"), (_APPEND, "append"), (_SYNC, "sync"),
    (_DSYNC, "dsync"), (_DIRECT, "direct"), (_DIRECTORY, "directory"), (_NOFOLLOW, "nofollow"),
    (_TMPFILE, "tmpfile"),
)  # fmt: skip
_CLONE_VM = 0x100
_DUPFD, _SETFD, _SETFL, _DUPFD_CLOEXEC = 0, 2, 4, 1030
_ADVICE = ("normal", "random", "sequential", "willneed", "dontneed", "noreuse")
_FALLOCATE = {0: "allocate", 1: "keep", 3: "punch", 8: "collapse", 16: "zero", 17: "zero",
              32: "insert"}  # fmt: skip
_RWF_DSYNC, _RWF_SYNC, _RWF_APPEND = 2, 4, 16
_RANGE = ((1, "wait_before"), (2, "write"), (4, "wait_after"))


def access_of(flags: int, *, folder: bool = False) -> str:
    """FLAGS of `open`."""
    words = [_ACCESS[flags & 3]]
    left = flags | (_DIRECTORY if folder else 0)
    if left & _TMPFILE == _TMPFILE:
        left &= ~(_DIRECTORY | _CREATE | _EXCL | _TRUNC)
        words.append("tmpfile")
    elif left & _DIRECTORY:
        left &= ~(_CREATE | _EXCL | _TRUNC)
    if left & _SYNC == _SYNC:
        words.append("sync")
        left &= ~_SYNC  # which O_DSYNC is a part of
    words += [name for bit, name in _WORDS[:-1] if left & bit == bit]
    return ",".join([words[0], *sorted(words[1:], key=[name for _, name in _WORDS].index)])


def _open(state: ReplayState, call: Call) -> None:
    flags = call.number("flags", _CREATE | _TRUNC | 1)
    if call.name == "creat":
        flags = _CREATE | _TRUNC | 1
    path = call.path()
    assert path is not None
    shown = state.path(call)
    if call.result < 0 or shown is None or flags & _PATH:
        _open_without_slot(state, call, shown)
        return
    task = state.task(call)
    node = _opened(state, path, flags)
    slot = state.slots.take()
    access = access_of(flags, folder=node.is_folder)
    state.lines.append(f"open {slot} {shown} {access}")
    found = Description(
        slot=slot, node=node, access=_ACCESS[flags & 3], append=bool(flags & _APPEND)
    )
    state.install(task, call.result, found, bool(flags & _CLOEXEC))


def _open_without_slot(state: ReplayState, call: Call, shown: str | None) -> None:
    """For an open that failed, gave only a path, or is outside: keeps its lookup."""
    if shown is not None:
        state.lines.append(f"stat {shown}")
    if call.result >= 0:
        path = call.path()
        node = state.tree.find(path) if path is not None else None
        flags = call.number("flags")
        found = Description(slot=None, node=node)
        state.install(state.task(call), call.result, found, bool(flags & _CLOEXEC))


def _opened(state: ReplayState, path: bytes, flags: int) -> Node:
    """The file that was opened, made if it was not there."""
    if flags & _TMPFILE == _TMPFILE:
        return Node()
    node = state.tree.find(path)
    if node is None:
        node = Node(kind=stat.S_IFDIR if flags & _DIRECTORY else stat.S_IFREG)
        state.tree.put(path, node)
    if flags & _TRUNC and not node.is_folder:
        node.size = 0
    return node


def _close(state: ReplayState, call: Call) -> None:
    state.uninstall(state.task(call), call.number("descriptor"))


def _close_range(state: ReplayState, call: Call) -> None:
    task = state.task(call)
    first, last = call.number("descriptor"), call.number("to_descriptor")
    numbers = [number for number in sorted(task.files.by_number) if first <= number <= last]
    for number in numbers:
        if call.number("flags") & 4:  # CLOSE_RANGE_CLOEXEC
            state.close_by_exec(task, number, True)
        else:
            state.uninstall(task, number)


def _dup(state: ReplayState, call: Call) -> None:
    description = state.descriptor(call)
    number = call.number("to_descriptor", call.result)
    task = state.task(call)
    if description is None:
        if call.result >= 0:
            state.uninstall(task, number)
    elif call.result >= 0 and task.files.by_number.get(number) is not description:
        by_exec = bool(call.number("flags") & _CLOEXEC)
        state.install(task, number, description, by_exec)


def _fcntl(state: ReplayState, call: Call) -> None:
    description, command = state.descriptor(call), call.number("command")
    if description is None or call.result < 0:
        return
    task = state.task(call)
    if command in (_DUPFD, _DUPFD_CLOEXEC):
        state.install(task, call.result, description, command == _DUPFD_CLOEXEC)
    elif command == _SETFD:
        state.close_by_exec(task, call.number("descriptor"), bool(call.number("flags") & 1))
    elif command == _SETFL:
        description.append = bool(call.number("flags") & _APPEND)


def _seek(state: ReplayState, call: Call) -> None:
    description = state.descriptor(call)
    if description is not None and call.result >= 0:
        description.position = call.result


def _read(state: ReplayState, call: Call) -> None:
    description = state.slot(call)
    if description is None or call.result < 0:
        return
    own = "offset" not in call.arguments
    at = description.position if own else call.number("offset")
    length = min(call.number("length"), max(_ASKED_BYTES_MAX, call.result + PIECE_BYTES))
    if description.node is not None and description.node.is_folder:
        return
    state.lines += [
        f"read {description.slot} {at + done} {min(TRANSFER_BYTES_MAX, length - done)}"
        for done in range(0, length, TRANSFER_BYTES_MAX)
    ]
    if own:
        description.position += call.result


def _write(state: ReplayState, call: Call) -> None:
    description = state.slot(call)
    if description is None or call.result <= 0:
        return
    node = description.node
    own = "offset" not in call.arguments
    at = description.position if own else call.number("offset")
    flags = call.number("flags") if call.name == "pwritev2" else 0
    if (description.append or flags & _RWF_APPEND) and node is not None:
        at = node.size
    slot, length = description.slot, call.result
    state.lines += written_lines(
        state, f"write {slot}", node=node, at=at, length=length, written=call.written
    )
    if flags & (_RWF_DSYNC | _RWF_SYNC):
        state.lines.append(f"{'fsync' if flags & _RWF_SYNC else 'fdatasync'} {slot}")
    if node is not None:
        node.size = max(node.size, at + length)
        node.unflushed = not flags & (_RWF_DSYNC | _RWF_SYNC)
    if own:
        description.position = at + length


def written_lines(
    state: ReplayState, begin: str, *, node: Node | None, at: int, length: int,
    written: Written | None, file_at: int | None = None,
) -> Iterator[str]:  # fmt: skip
    """Yields operations BEGIN OFFSET LENGTH SEED FILL, several if one line cannot hold it.

    `file_at` is the offset in the file, if it differs from the operation's.
    """
    if at + length > _OFFSET_MAX:
        raise TranslationError("a write beyond the largest offset")
    state.written_bytes += length
    if state.written_bytes > _WRITTEN_BYTES_MAX:
        raise TranslationError(f"more than {_WRITTEN_BYTES_MAX >> 30:,} GiB are written")
    if isinstance(written, bytes):
        for done in range(0, length, TRANSFER_BYTES_MAX):
            some = written[done : done + TRANSFER_BYTES_MAX]
            yield from _data_lines(some)
            yield f"{begin} {at + done} {len(some)} 0 data"
        return
    shift = (at if file_at is None else file_at) - at
    for start, size, first in _parts(at, length, shift):
        seed = state.seed()
        if written is None:
            fill = state.filler.like_the_rest(start + shift, size)
        else:
            fill = state.filler.fill(
                node, start + shift, sizes=written[first:], length=size, seed=seed
            )
        yield f"{begin} {start} {size} {seed} {fill}"


def _data_lines(data: bytes) -> Iterator[str]:
    for at in range(0, len(data), _DATA_BYTES):
        yield f"data {base64.b64encode(data[at : at + _DATA_BYTES]).decode()}"


def _parts(at: int, length: int, shift: int) -> Iterator[tuple[int, int, int]]:
    """Splits a write so that each FILL fits a line: offset, length, number of the first piece.

    A piece takes 21 characters at most, and a comma.
    """
    most = _FILL_CHARACTERS_MAX // 22
    begin, end = at + shift, at + shift + length
    aligned = begin // PIECE_BYTES * PIECE_BYTES
    for number, part in enumerate(range(aligned, end, most * PIECE_BYTES)):
        start = max(begin, part)
        yield start - shift, min(end, part + most * PIECE_BYTES) - start, number * most


def _on_slot(operation: str) -> Handler:
    def handle(state: ReplayState, call: Call) -> None:
        description = state.slot(call)
        if description is not None and call.result >= 0:
            state.lines.append(f"{operation} {description.slot}")
            if description.node is not None:
                description.node.unflushed = False

    return handle


def _sync(state: ReplayState, _call: Call) -> None:
    state.lines.append("sync")


def _sync_range(state: ReplayState, call: Call) -> None:
    description = state.slot(call)
    words = ",".join(name for bit, name in _RANGE if call.number("flags") & bit)
    if description is not None and words and call.result >= 0:
        at, length = call.number("offset"), call.number("length")
        state.lines.append(f"sync_range {description.slot} {at} {length} {words}")


def _ftruncate(state: ReplayState, call: Call) -> None:
    description = state.slot(call)
    if description is not None and call.result >= 0:
        state.lines.append(f"truncate {description.slot} {call.number('length')}")
        if description.node is not None:
            description.node.size = call.number("length")
            description.node.unflushed = True


def _truncate(state: ReplayState, call: Call) -> None:
    path, raw = state.path(call), call.path()
    if path is None or raw is None:
        return
    if call.result < 0:
        state.lines.append(f"stat {path}")
        return
    slot = state.slots.take()
    length = call.number("length")
    state.lines += [f"open {slot} {path} wo", f"truncate {slot} {length}", f"close {slot}"]
    state.slots.give_back(slot)
    node = state.tree.find(raw)
    if node is not None:
        node.size = length


def _fallocate(state: ReplayState, call: Call) -> None:
    description, mode = state.slot(call), call.number("mode")
    if description is None or call.result < 0:
        return
    how, at, length = _FALLOCATE.get(mode), call.number("offset"), call.number("length")
    if how is None:
        state.skip(f"fallocate with mode {mode:#x}")
        return
    state.lines.append(f"fallocate {description.slot} {at} {length} {how}")
    node = description.node
    if node is not None and mode in (0, 16):
        node.size = max(node.size, at + length)
    elif node is not None and how in ("collapse", "insert"):
        node.size = max(0, node.size + (length if how == "insert" else -length))


def _advise(state: ReplayState, call: Call) -> None:
    description = state.slot(call)
    if description is None or call.result < 0:
        return
    command = 3 if call.name == "readahead" else call.number("command")
    if not 0 <= command < len(_ADVICE):
        state.skip(f"fadvise64 with advice {command}")
        return
    at, length = call.number("offset"), call.number("length")
    if at + length > _OFFSET_MAX:
        length = 0  # to the end of the file, as the kernel takes it
    state.lines.append(f"fadvise {description.slot} {at} {length} {_ADVICE[command]}")


def _copy(state: ReplayState, call: Call) -> None:
    """Translates copy_file_range, sendfile and splice; one end may be outside."""
    source, target, length = state.slot(call), state.slot(call, "to_descriptor"), call.result
    if length <= 0:
        return
    start = _copy_offset(source, call, "offset", length)
    end = _copy_offset(target, call, "to_offset", length)
    for done in range(0, length, TRANSFER_BYTES_MAX):
        some = min(TRANSFER_BYTES_MAX, length - done)
        if source and target:
            places = f"{source.slot} {start + done} {target.slot} {end + done}"
            state.lines.append(f"copy {places} {some}")
        elif source:
            state.lines.append(f"send {source.slot} {start + done} {some}")
    if target and not source:
        begin = f"write {target.slot}"
        state.lines += written_lines(
            state, begin, node=target.node, at=end, length=length, written=call.written
        )
    if target and target.node is not None:
        target.node.size = max(target.node.size, end + length)
        target.node.unflushed = True


def _copy_offset(description: Description | None, call: Call, name: str, length: int) -> int:
    """The offset of one end of a copy; moves the descriptor's position if the call does."""
    if name in call.arguments:
        return call.number(name)
    if description is None:
        return 0
    at = description.position
    if description.append and description.node is not None and name == "to_offset":
        at = description.node.size
    description.position = at + length
    return at


def _lock(state: ReplayState, call: Call) -> None:
    description = state.slot(call)
    how = {1: "shared", 2: "exclusive", 8: "unlock"}.get(call.number("command") & ~4)
    if description is not None and how is not None and call.result >= 0:
        state.lines.append(f"flock {description.slot} {how}")


def _entries(state: ReplayState, call: Call) -> None:
    """Keeps the first getdents of a folder, as one operation that reads all its entries."""
    description = state.slot(call)
    if description is None or call.result < 0:
        return
    if description.node is None or not description.node.is_folder:
        state.skip("getdents64 of a folder that was not known to be one")
    elif description.position == 0:
        state.lines.append(f"readdir {description.slot}")
    description.position = call.result


def _clone(state: ReplayState, call: Call) -> None:
    if call.result <= 0:
        return
    if call.result in state.tasks:
        raise TranslationError(f"task {call.result} begins twice")
    flags = call.number("flags", _CLONE_VM if call.name == "vfork" else 0)
    new = state.tasks[call.result] = state.fork(state.task(call), flags)
    new.group.append(new)
    new.end_ns = call.start_ns


def _exec(state: ReplayState, call: Call) -> None:
    if call.result < 0:
        return
    state.execute(state.task(call))
    shown = state.path(call)
    if shown is not None:
        state.lines.append(f"stat {shown}")
        state.skip("execve of a program in the folder: its pages are not read")


def _exit(state: ReplayState, call: Call) -> None:
    task = state.task(call)
    for one in list(task.group) if call.name == "exit_group" else [task]:
        state.end(one)


def _nothing(_state: ReplayState, _call: Call) -> None:
    """Translates to nothing: the call costs the file system nothing."""


HANDLERS: Mapping[str, Handler] = {
    **dict.fromkeys(("open", "openat", "openat2", "creat"), _open),
    "close": _close,
    "close_range": _close_range,
    **dict.fromkeys(("dup", "dup2", "dup3"), _dup),
    "fcntl": _fcntl,
    "lseek": _seek,
    **dict.fromkeys(("read", "readv", "pread64", "preadv", "preadv2"), _read),
    **dict.fromkeys(("write", "writev", "pwrite64", "pwritev", "pwritev2"), _write),
    **{name: _on_slot(name) for name in ("fsync", "fdatasync", "syncfs")},
    "sync": _sync,
    "sync_file_range": _sync_range,
    "ftruncate": _ftruncate,
    "truncate": _truncate,
    "fallocate": _fallocate,
    **dict.fromkeys(("fadvise64", "readahead"), _advise),
    **dict.fromkeys(("copy_file_range", "sendfile", "splice"), _copy),
    "flock": _lock,
    **dict.fromkeys(("getdents", "getdents64"), _entries),
    **dict.fromkeys(("clone", "clone3", "fork", "vfork"), _clone),
    **dict.fromkeys(("execve", "execveat"), _exec),
    **dict.fromkeys(("exit", "exit_group"), _exit),
    **dict.fromkeys(("wait4", "waitid", "fstat"), _nothing),
}
