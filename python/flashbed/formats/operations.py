"""The operations of a program: `flashbed-ops 1` of docs/operations.md, written and checked.

One of three readers of the format; the others are the simulator (sim/src/ops/mod.rs) and the agent
(agent/base/ops.c). All three accept and refuse the same files with the same line and code. This one
executes nothing.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from flashbed.errors import InputError

__all__ = [
    "HEADER",
    "LINE_BYTES_MAX",
    "Operation",
    "OperationError",
    "canonical",
    "each",
    "parse",
    "text_of",
    "writes",
]

HEADER = "flashbed-ops 1"
SLOTS = 64
NUMBER_MAX = 2**63 - 1
PAUSE_NS_MAX = 10**15
STEPS_MAX = 10**12
TRANSFER_BYTES_MAX = 2**30
LINE_BYTES_MAX = 4096
_LINES_AT_ONCE = 1 << 14
_READ_AT_ONCE = 1 << 20
PATH_BYTES_MAX = 1023

_NUMBER = re.compile(r"(?:0|[1-9][0-9]*)\Z")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,255}\Z")
_PRINTABLE = re.compile(rb"[\x20-\x7e]*\Z")
_STATEMENT = re.compile(r"(?:[^\\]|\\[\\|]|\\x[0-9a-f]{2})*\Z")
_USES = ("fsync", "fdatasync", "fsync,prepared", "fdatasync,prepared")
_ACCESS = frozenset({"ro", "wo", "rw"})
_FLAGS = ("create", "excl", "trunc", "append", "sync", "dsync", "direct")
_ADVICE = frozenset({"normal", "random", "sequential", "willneed", "dontneed", "noreuse"})


class OperationError(InputError):
    """A line that is not an operation: its number (from 1), the code of docs/operations.md, why."""

    def __init__(self, line: int, code: str, detail: str) -> None:
        super().__init__(f"{line}: {code}: {detail}")
        self.line = line
        self.code = code
        self.detail = detail


@dataclass(frozen=True)
class Operation:
    """One operation: its name, its fields in the order of the format, and where it stood.

    Flags of `open` are in the order of the grammar, however they were written.
    """

    name: str
    fields: tuple[str | int, ...] = ()
    line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return " ".join((self.name, *map(str, self.fields)))


class _Refused(Exception):
    """A field is not what it should be; the line is added by the caller."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


_Done = list[str | int]
_Reader = Callable[[str, _Done], str | int]


def _number(maximum: int = NUMBER_MAX, minimum: int = 0) -> _Reader:
    def read(text: str, _done: _Done) -> int:
        # Nineteen digits are enough for 2^63 - 1; a longer field need not be converted.
        if not _NUMBER.match(text) or len(text) > 19 or not minimum <= int(text) <= maximum:
            raise _Refused("bad-number", f"{text!r} is not a number from {minimum} to {maximum}")
        return int(text)

    return read


def _length(minimum: int, maximum: int) -> _Reader:
    """A LENGTH that follows its OFFSET."""
    number = _number(maximum, minimum)

    def read(text: str, done: _Done) -> int:
        length_bytes = int(number(text, done))
        if int(done[-1]) + length_bytes > NUMBER_MAX:
            raise _Refused("bad-number", "offset and length together are more than 2^63 - 1")
        return length_bytes

    return read


def _path(text: str, _done: _Done) -> str:
    names = text.split("/")
    if len(text) > PATH_BYTES_MAX or not all(
        _NAME.match(name) and name not in (".", "..") for name in names
    ):
        raise _Refused("bad-path", f"{text[:80]!r} is not a relative path of plain names")
    return text


def _flags(text: str, _done: _Done) -> str:
    access, *flags = text.split(",")
    if access not in _ACCESS or any(flag not in _FLAGS or flags.count(flag) > 1 for flag in flags):
        raise _Refused("bad-flags", f"{text[:80]!r} is not ro, wo or rw with flags after it")
    return ",".join((access, *sorted(flags, key=_FLAGS.index)))


def _advice(text: str, _done: _Done) -> str:
    if text not in _ADVICE:
        raise _Refused("bad-advice", f"{text[:80]!r} is no advice")
    return text


def _use(text: str, _done: _Done) -> str:
    if text not in _USES:
        raise _Refused("bad-flags", f"{text[:80]!r} is not {' or '.join(_USES)}")
    return text


def _statement(text: str, _done: _Done) -> str:
    if not _STATEMENT.match(text):
        raise _Refused("bad-statement", f"{text[:80]!r} has a \\ that means nothing")
    return text


_SLOT = _number(SLOTS - 1)
_ANY = _number()
_TRANSFER = _length(1, TRANSFER_BYTES_MAX)

_FIELDS: dict[str, tuple[_Reader, ...]] = {
    "mkdir": (_path,),
    "open": (_SLOT, _path, _flags),
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
_USES_SLOT = frozenset(
    {"close", "read", "write", "fsync", "fdatasync", "truncate", "fadvise", "erase"}
)


def _read_line(line: bytes, number: int) -> Operation | None:
    """Checks one line by itself: everything but slots and repetition."""
    if len(line) > LINE_BYTES_MAX:
        raise _Refused("line-too-long", f"{len(line)} bytes; {LINE_BYTES_MAX} are allowed")
    if not _PRINTABLE.match(line):
        raise _Refused("bad-character", "a byte that is not printable ASCII")
    text = line.decode("ascii")
    if not text or text.startswith("#"):
        return None
    name = text.split(" ", 1)[0]
    readers = _FIELDS.get(name)
    if readers is None:
        raise _Refused("unknown-operation", f"{name[:80]!r} is no operation")
    ends_in_statement = readers[-1:] == (_statement,)
    words = text.split(" ", len(readers)) if ends_in_statement else text.split(" ")
    if len(words) - 1 != len(readers) or (ends_in_statement and not words[-1]):
        raise _Refused("wrong-arguments", f"{name} takes {len(readers)} fields")
    done: _Done = []
    for reader, word in zip(readers, words[1:], strict=True):
        done.append(reader(word, done))
    return Operation(name, tuple(done), number)


@dataclass
class _Closure:
    """What has to hold from line to line: slots and database open, `mark`, `prepared` seen."""

    open_slots: set[int] = field(default_factory=set)
    database: str | None = None
    seen: set[str] = field(default_factory=set)

    def check(self, operation: Operation) -> None:
        name = operation.name
        if name == "open":
            if operation.fields[0] in self.open_slots:
                raise _Refused("slot-open", f"slot {operation.fields[0]} is open already")
            self.open_slots.add(int(operation.fields[0]))
        elif name in _USES_SLOT:
            if operation.fields[0] not in self.open_slots:
                raise _Refused("slot-closed", f"slot {operation.fields[0]} is not open")
            if name == "close":
                self.open_slots.discard(int(operation.fields[0]))
        elif name.startswith("sql"):
            self._check_database(name, str(operation.fields[0]))
        elif name in ("mark", "prepared", "remount"):
            self._check_between(name)

    def _check_database(self, name: str, path: str) -> None:
        if name == "sql_open":
            if self.database is not None:
                raise _Refused("slot-open", f"database {self.database} is open already")
            self.database = path
            return
        if self.database != path:
            raise _Refused("slot-closed", f"database {path} is not open")
        if name == "sql_close":
            self.database = None

    def _check_between(self, name: str) -> None:
        if name != "mark" and self.open_slots:
            raise _Refused("slot-open", f"slot {min(self.open_slots)} is open at {name}")
        if name != "mark" and self.database is not None:
            raise _Refused("slot-open", f"database {self.database} is open at {name}")
        if name == "remount":
            return
        if name in self.seen or (name == "prepared" and "mark" in self.seen):
            raise _Refused("repeated", f"{name} comes once, prepared before mark")
        self.seen.add(name)


def parse(text: str | bytes) -> list[Operation]:
    """Reads a whole `flashbed-ops 1` file.

    Raises `OperationError` at the first line that is not one. Source: docs/operations.md.
    """
    return list(each(text))


def each(text: str | bytes) -> Iterator[Operation]:
    """The same, one operation after the other, so that they are not all there at once."""
    lines = _lines(text)
    if next(lines) != HEADER.encode():
        raise OperationError(1, "bad-header", f"the first line is not {HEADER!r}")
    closure = _Closure()
    for number, line in enumerate(lines, start=2):
        try:
            operation = _read_line(line, number)
            if operation is not None:
                closure.check(operation)
                yield operation
        except _Refused as refused:
            raise OperationError(number, refused.code, str(refused)) from None


def _lines(text: str | bytes) -> Iterator[bytes]:
    """What stands between line ends; `text` is not copied as a whole."""
    rest = b""
    for at in range(0, len(text), _READ_AT_ONCE):
        piece = text[at : at + _READ_AT_ONCE]
        data = piece.encode("utf-8", "surrogateescape") if isinstance(piece, str) else piece
        *lines, rest = (rest + data).split(b"\n")
        yield from lines
    yield rest


_WRITES = re.compile(
    r"^(?:(?:write|truncate|unlink|rmdir|rename|mkdir|remount|sql_open|erase)\b"
    r"|open \S+ \S+ \S*\b(?:create|trunc)\b)",
    re.MULTILINE,
)


def writes(text: str) -> bool:
    """Whether a flashbed-ops file has an operation that may change the file system."""
    return _WRITES.search(text) is not None


def canonical(operations: Iterable[Operation]) -> str:
    """Writes operations as a file: the header and one line each, no comments, a last LF."""
    return text_of(map(str, operations))


def text_of(lines: Iterable[str]) -> str:
    """A file of these lines behind the header. Ten million lines are not there one by one."""
    text = f"{HEADER}\n"
    rest = iter(lines)
    # CPython appends in place in a `for` loop; a `while` loop would copy the text each time.
    for some in iter(lambda: list(itertools.islice(rest, _LINES_AT_ONCE)), []):
        text += "\n".join((*some, ""))
    return text
