"""The fields of operations: the grammar of each, and which fields an operation has.

`FIELDS` has the operations of version 1 (docs/reference/operations.md), `FIELDS_2` those of version
2.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

__all__ = [
    "DATA_BYTES_MAX",
    "FIELDS",
    "FIELDS_2",
    "PAGE_BYTES",
    "TASKS",
    "TEXT_BITS",
    "PieceSizes",
    "Reader",
    "Refused",
    "check_pieces",
    "ends_in_statement",
    "pieces",
]

SLOTS = 64
SLOTS_2 = 1024
TASKS = 1024
MAPPINGS = 1024
NUMBER_MAX = 2**63 - 1
PAUSE_NS_MAX = 10**15
STEPS_MAX = 10**12
TRANSFER_BYTES_MAX = 2**30
PATH_BYTES_MAX = 1023
NAME_BYTES_MAX = 255
VALUE_BYTES_MAX = 65_536
DATA_BYTES_MAX = 3000
PAGE_BYTES = 4096
TEXT_BITS = 6
"""Of a byte of a piece's text, where BITS does not say how many."""

_NUMBER = re.compile(r"(?:0|[1-9][0-9]*)\Z")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,255}\Z")
_ESCAPE = "%(?!00|2D|2E|3[0-9]|4[1-9A-F]|5[0-9A]|5F|6[1-9A-F]|7[0-9A])[0-9A-F]{2}"
"""A byte other than NUL that a name cannot hold unescaped."""
_ATTRIBUTE = re.compile(rf"user\.(?:[A-Za-z0-9._-]|{_ESCAPE})+\Z")
_TARGET = re.compile(rf"(?:[A-Za-z0-9._/-]|(?!%2F){_ESCAPE})+\Z")
_ESCAPED = re.compile("%..")
_PIECE = re.compile(
    r"([0-9]+)\+([0-9]+)(?:t([0-9]+)(?:b([1-7]))?)?(?:z([0-9]+))?(?:s([0-9]+))?(?:x([0-9]+))?\Z"
)
_STATEMENT = re.compile(r"(?:[^\\]|\\[\\|]|\\x[0-9a-f]{2})*\Z")
_USES = ("fsync", "fdatasync", "fsync,prepared", "fdatasync,prepared")
_ACCESS = frozenset({"ro", "wo", "rw"})
_FLAGS = ("create", "excl", "trunc", "append", "sync", "dsync", "direct")
_FLAGS_2 = (*_FLAGS, "directory", "nofollow", "tmpfile")
_RANGE_FLAGS = ("wait_before", "write", "wait_after")
_ADVICE = frozenset({"normal", "random", "sequential", "willneed", "dontneed", "noreuse"})


class Refused(Exception):
    """A field that breaks its grammar; the caller adds the line number."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


_Done = list[str | int]
Reader = Callable[[str, _Done], str | int]
"""Checks a field, given the fields before it."""


def _number(maximum: int = NUMBER_MAX, minimum: int = 0) -> Reader:
    def read(text: str, _done: _Done) -> int:
        # 2^63 - 1 has nineteen digits; longer fields are refused without converting them.
        if not _NUMBER.match(text) or len(text) > 19 or not minimum <= int(text) <= maximum:
            raise Refused("bad-number", f"{text!r} is not a number from {minimum} to {maximum}")
        return int(text)

    return read


def _length(minimum: int, maximum: int, *, behind: tuple[int, ...] = (-1,)) -> Reader:
    """A LENGTH behind one OFFSET or several, which it must not overflow."""
    number = _number(maximum, minimum)

    def read(text: str, done: _Done) -> int:
        length_bytes = int(number(text, done))
        if any(int(done[at]) + length_bytes > NUMBER_MAX for at in behind):
            raise Refused("bad-number", "offset and length together are more than 2^63 - 1")
        return length_bytes

    return read


def _page(text: str, done: _Done) -> int:
    """An OFFSET at the begin of a page."""
    offset_bytes = int(_ANY(text, done))
    if offset_bytes % PAGE_BYTES:
        raise Refused("bad-number", f"{offset_bytes} is not a multiple of {PAGE_BYTES}")
    return offset_bytes


def _path(text: str, _done: _Done) -> str:
    names = text.split("/")
    if len(text) > PATH_BYTES_MAX or not all(
        _NAME.match(name) and name not in (".", "..") for name in names
    ):
        raise Refused("bad-path", f"{text[:80]!r} is not a relative path of plain names")
    return text


def _decoded_len(text: str) -> int:
    return len(text) - 2 * text.count("%")


def _encoded_path(text: str, _done: _Done) -> str:
    """A path of version 2: its limits count decoded bytes."""
    whole = text if text == "." else ""
    names = [] if whole else text.split("/")
    good = all(
        name not in ("", ".", "..") and _TARGET.match(name) and _decoded_len(name) <= NAME_BYTES_MAX
        for name in names
    )
    if not good or _decoded_len(text) > PATH_BYTES_MAX:
        raise Refused("bad-path", f"{text[:80]!r} is not a relative path")
    return text


def _target(text: str, _done: _Done) -> str:
    if not _TARGET.match(text) or _decoded_len(text) > PATH_BYTES_MAX:
        raise Refused("bad-path", f"{text[:80]!r} is no target")
    return text


def _attribute(text: str, _done: _Done) -> str:
    if not _ATTRIBUTE.match(text) or _decoded_len(text) > NAME_BYTES_MAX:
        raise Refused("bad-path", f"{text[:80]!r} is no name of a user attribute")
    return text


def _linked(text: str, done: _Done) -> str:
    if text.startswith("SLOT:"):
        return f"SLOT:{_SLOT_2(text.removeprefix('SLOT:'), done)}"
    return _encoded_path(text, done)


def _open_flags(known: tuple[str, ...]) -> Reader:
    def read(text: str, _done: _Done) -> str:
        access, *flags = text.split(",")
        if access not in _ACCESS or any(
            flag not in known or flags.count(flag) > 1 for flag in flags
        ):
            raise Refused("bad-flags", f"{text[:80]!r} is not ro, wo or rw with flags after it")
        return ",".join((access, *sorted(flags, key=known.index)))

    return read


def _word(*known: str) -> Reader:
    def read(text: str, _done: _Done) -> str:
        if text not in known:
            raise Refused("bad-word", f"{text[:80]!r} is none of {', '.join(known)}")
        return text

    return read


def _range_flags(text: str, _done: _Done) -> str:
    flags = text.split(",")
    if any(flag not in _RANGE_FLAGS or flags.count(flag) > 1 for flag in flags):
        raise Refused("bad-word", f"{text[:80]!r} is not some of {', '.join(_RANGE_FLAGS)}")
    return ",".join(sorted(flags, key=_RANGE_FLAGS.index))


class PieceSizes(NamedTuple):
    """A PIECE: common bytes, zeroes, own bytes, zeroes; the first `text_bytes` have few bits.

    With `runs`, zeroes and text are spread: there are so many runs of zeroes, each in front of a
    part of the others.
    """

    common_bytes: int
    own_bytes: int
    text_bytes: int = 0
    zero_bytes: int = 0
    text_bits: int = TEXT_BITS
    runs: int = 0
    times: int = 1


def pieces(text: str) -> list[PieceSizes]:
    """The pieces of a FILL. Raises `Refused`."""
    found = []
    for piece in text.split(","):
        match = _PIECE.match(piece)
        if not match:
            raise Refused("bad-fill", f"{piece[:80]!r} is no piece")
        common, own = _fill_number(match[1]), _fill_number(match[2])
        text_bytes = 0 if match[3] is None else _fill_number(match[3])
        bits = TEXT_BITS if match[4] is None else int(match[4])
        zero_bytes = 0 if match[5] is None else _fill_number(match[5])
        runs = 0 if match[6] is None else _fill_number(match[6])
        times = 1 if match[7] is None else _fill_number(match[7])
        if match[3] and not 0 < text_bytes <= common + own:
            raise Refused("bad-fill", f"{piece[:80]!r} has more text than bytes, or none")
        if match[5] and not zero_bytes:
            raise Refused("bad-fill", f"{piece[:80]!r} has 0 zeroes")
        if match[6] and not 0 < runs <= common + own:
            raise Refused("bad-fill", f"{piece[:80]!r} has more runs than bytes, or none")
        if match[7] and times < 2:
            raise Refused("bad-fill", f"{piece[:80]!r} is a piece {times} times")
        found.append(
            PieceSizes(
                common_bytes=common,
                own_bytes=own,
                text_bytes=text_bytes,
                zero_bytes=zero_bytes,
                text_bits=bits,
                runs=runs,
                times=times,
            )
        )
    return found


def _fill_number(text: str) -> int:
    if not _NUMBER.match(text) or len(text) > 19 or int(text) > NUMBER_MAX:
        raise Refused("bad-fill", f"{text[:80]!r} is no number")
    return int(text)


def _fill(*, at: int | None) -> Reader:
    """FILL behind LENGTH and SEED; `at` is the field of OFFSET, None if the offset is always 0."""

    def read(text: str, done: _Done) -> str | int:
        length_bytes, seed = int(done[-2]), int(done[-1])
        if text == "data":
            if seed:
                raise Refused("bad-fill", "data has seed 0")
            return text
        if "+" not in text:
            if not _NUMBER.match(text) or len(text) > 3 or int(text) > 100:
                raise Refused("bad-fill", f"{text[:80]!r} is no FILL")
            return int(text)
        check_pieces(text, 0 if at is None else int(done[at]), length_bytes)
        return text

    return read


def check_pieces(text: str, offset_bytes: int, length_bytes: int) -> None:
    """Raises `Refused` if the pieces do not add up to what is written."""
    at, end = offset_bytes, offset_bytes + length_bytes
    for piece in pieces(text):
        bytes_ = piece.common_bytes + piece.own_bytes
        for _ in range(min(piece.times, TRANSFER_BYTES_MAX)):
            stop = min(end, (at // PAGE_BYTES + 1) * PAGE_BYTES)
            if at == end or piece.zero_bytes + bytes_ > stop - at:
                raise Refused("bad-fill", f"{piece.common_bytes}+{piece.own_bytes} does not fit")
            at = stop
    if at < end:
        raise Refused("bad-fill", f"{end - at} bytes without a piece")


def _base64(text: str, _done: _Done) -> str:
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error:
        data = b""
    # Text that encodes to something else has unused bits, or decodes to nothing.
    if not data or base64.b64encode(data).decode() != text:
        raise Refused("bad-data", f"{text[:80]!r} is no BASE64")
    if len(data) > DATA_BYTES_MAX:
        raise Refused("bad-data", f"{len(data)} bytes in a line; {DATA_BYTES_MAX} are allowed")
    return text


def _advice(text: str, _done: _Done) -> str:
    if text not in _ADVICE:
        raise Refused("bad-advice", f"{text[:80]!r} is no advice")
    return text


def _use(text: str, _done: _Done) -> str:
    if text not in _USES:
        raise Refused("bad-flags", f"{text[:80]!r} is not {' or '.join(_USES)}")
    return text


def _statement(text: str, _done: _Done) -> str:
    if not _STATEMENT.match(text):
        raise Refused("bad-statement", f"{text[:80]!r} has a \\ that means nothing")
    return text


_SLOT = _number(SLOTS - 1)
_SLOT_2 = _number(SLOTS_2 - 1)
_TASK = _number(TASKS - 1)
_MAPPING = _number(MAPPINGS - 1)
_OWNER = _number(2**32 - 2)
_ANY = _number()
_TRANSFER = _length(1, TRANSFER_BYTES_MAX)

FIELDS: Mapping[str, tuple[Reader, ...]] = {
    "mkdir": (_path,),
    "open": (_SLOT, _path, _open_flags(_FLAGS)),
    "close": (_SLOT,),
    "read": (_SLOT, _ANY, _TRANSFER),
    "write": (_SLOT, _ANY, _TRANSFER, _ANY, _number(100)),
    "fsync": (_SLOT,),
    "fdatasync": (_SLOT,),
    "truncate": (_SLOT, _ANY),
    "fadvise": (_SLOT, _ANY, _length(0, NUMBER_MAX), _advice),
    "erase": (_SLOT, _ANY, _TRANSFER),
    "unlink": (_path,),
    "rmdir": (_path,),
    "rename": (_path, _path),
    "sync": (),
    "drop_caches": (),
    "remount": (),
    "pause": (_number(PAUSE_NS_MAX),),
    "compute": (_number(STEPS_MAX),),
    "sql_open": (_path, _ANY, _use, _statement),
    "sql": (_path, _statement),
    "sql_close": (_path,),
    "prepared": (),
    "mark": (),
}

_LONG = _length(0, NUMBER_MAX)
"""A LENGTH for calls that need no buffer of that size."""
_OF_VERSION_2 = {_SLOT: _SLOT_2, _path: _encoded_path}

FIELDS_2: Mapping[str, tuple[Reader, ...]] = {
    **{
        name: tuple(_OF_VERSION_2.get(reader, reader) for reader in readers)
        for name, readers in FIELDS.items()
    },
    "open": (_SLOT_2, _encoded_path, _open_flags(_FLAGS_2)),
    "write": (_SLOT_2, _ANY, _TRANSFER, _ANY, _fill(at=1)),
    "task": (_TASK,),
    "spawn": (_TASK,),
    "wait": (_TASK,),
    "stat": (_encoded_path,),
    "readdir": (_SLOT_2,),
    "link": (_linked, _encoded_path),
    "symlink": (_target, _encoded_path),
    "readlink": (_encoded_path,),
    "chmod": (_encoded_path, _number(0o7777)),
    "chown": (_encoded_path, _OWNER, _OWNER),
    "utimens": (_encoded_path,),
    "setxattr": (_encoded_path, _attribute, _number(VALUE_BYTES_MAX), _ANY, _fill(at=None)),
    "getxattr": (_encoded_path, _attribute),
    "listxattr": (_encoded_path,),
    "removexattr": (_encoded_path, _attribute),
    "fallocate": (
        _SLOT_2, _ANY, _LONG, _word("allocate", "keep", "punch", "zero", "collapse", "insert"),
    ),
    "copy": (_SLOT_2, _ANY, _SLOT_2, _ANY, _length(1, TRANSFER_BYTES_MAX, behind=(-1, -3))),
    "send": (_SLOT_2, _ANY, _TRANSFER),
    "sync_range": (_SLOT_2, _ANY, _LONG, _range_flags),
    "syncfs": (_SLOT_2,),
    "flock": (_SLOT_2, _word("shared", "exclusive", "unlock")),
    "mmap": (_MAPPING, _SLOT_2, _page, _TRANSFER, _word("ro", "rw", "private")),
    "touch": (_MAPPING, _ANY, _TRANSFER),
    "store": (_MAPPING, _ANY, _TRANSFER, _ANY, _fill(at=1)),
    "msync": (_MAPPING, _page, _TRANSFER, _word("sync", "async")),
    "munmap": (_MAPPING,),
    "data": (_base64,),
}  # fmt: skip


def ends_in_statement(readers: tuple[Reader, ...]) -> bool:
    """Whether the last field extends to the end of the line."""
    return readers[-1:] == (_statement,)
