"""Translates calls on mapped files, and accesses to their pages, into operations."""

from __future__ import annotations

from collections.abc import Mapping

from flashbed.program.recording.calls import PIECE_BYTES, Call, Piece, Written, pieces_of
from flashbed.program.recording.data_calls import Handler, written_lines
from flashbed.program.recording.replay_state import Mapped, ReplayState

__all__ = ["HANDLERS"]

_SHARED, _PRIVATE, _ANONYMOUS = 1, 2, 0x20
_KIND = 0xF
_ASYNC = 1


def _mmap(state: ReplayState, call: Call) -> None:
    description, flags = state.slot(call), call.number("flags")
    if call.result < 0:
        return
    task, length = state.task(call), call.number("length")
    _forget(state, call, call.result, length)
    if description is None or flags & _ANONYMOUS or length < 1:
        return
    # Mapping a file that is open for writing can become writable later; JFFS2 refuses it at once.
    writable = description.access == "rw"
    how = "private" if flags & _KIND == _PRIVATE else "rw" if writable else "ro"
    number, offset = state.mappings.take(), call.number("offset")
    state.lines.append(f"mmap {number} {description.slot} {offset} {length} {how}")
    mapped = Mapped(
        number=number, address=call.result, length=length, offset=offset, file=description, how=how
    )
    task.memory.mapped.append(mapped)


def _forget(state: ReplayState, call: Call, address: int, length: int) -> None:
    """Forgets mappings in a range; a mapping that is only cut stays whole."""
    task = state.task(call)
    end = address + length
    for mapped in list(task.memory.mapped):
        first, last = mapped.address, mapped.address + mapped.length
        if last <= address or first >= end:
            continue
        if address <= first and last <= end:
            state.unmap(task, mapped)
        else:
            state.skip("munmap of a part of a mapping: all of it stays mapped")


def _munmap(state: ReplayState, call: Call) -> None:
    if call.result >= 0:
        _forget(state, call, call.number("address"), call.number("length"))


def _mremap(state: ReplayState, call: Call) -> None:
    """Maps the file again, with the new length."""
    found, length = _at(state, call), call.number("to_offset")
    if call.result < 0 or found is None:
        return
    found.address = call.result
    if found.number is None or length < 1 or length == found.length:
        return
    if not found.file.uses:
        state.skip("mremap of a file that is closed: the mapping keeps its length")
        return
    found.length = length
    slot, number = found.file.slot, found.number
    state.lines.append(f"munmap {number}")
    state.lines.append(f"mmap {number} {slot} {found.offset} {length} {found.how}")


def _at(state: ReplayState, call: Call) -> Mapped | None:
    """The mapping that contains an address."""
    address = call.number("address")
    for mapped in reversed(state.task(call).memory.mapped):
        if mapped.address <= address < mapped.address + mapped.length:
            return mapped
    return None


def _access(state: ReplayState, call: Call) -> None:
    found = _at(state, call)
    if found is None or found.number is None:
        return
    at = call.number("address") - found.address
    length = min(call.number("length"), found.length - at)
    if length < 1:
        return
    if call.name == "mapped_read" or found.how != "rw":
        state.lines.append(f"touch {found.number} {at} {length}")
        return
    begin, file_at = f"store {found.number}", found.offset + at
    written = _first(call.written, file_at, length)
    state.lines += written_lines(
        state, begin, node=found.file.node, at=at, length=length, written=written, file_at=file_at
    )


def _first(written: Written | None, file_at: int, length: int) -> Written | None:
    """What was written of a page in which the mapping ends, up to there."""
    if written is None or isinstance(written, bytes):
        return written and written[:length]
    cut = pieces_of(file_at, length)
    return tuple(
        Piece(*(min(size, bytes_) for size in piece))
        for (_, bytes_), piece in zip(cut, written, strict=False)
    )


def _msync(state: ReplayState, call: Call) -> None:
    found = _at(state, call)
    if found is None or found.number is None or call.result < 0:
        return
    at = (call.number("address") - found.address) // PIECE_BYTES * PIECE_BYTES
    length = min(call.number("length"), found.length - at)
    how = "async" if call.number("flags") & _ASYNC else "sync"
    if length > 0:
        state.lines.append(f"msync {found.number} {at} {length} {how}")


def _nothing(_state: ReplayState, _call: Call) -> None:
    """Translates to nothing: the call costs the file system nothing."""


HANDLERS: Mapping[str, Handler] = {
    "mmap": _mmap,
    "munmap": _munmap,
    "mremap": _mremap,
    "mapped_read": _access,
    "mapped_write": _access,
    "msync": _msync,
    "mprotect": _nothing,
    "madvise": _nothing,
}
