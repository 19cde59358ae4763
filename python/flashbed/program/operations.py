"""Reads and writes operations: `flashbed-ops 1` and `2` of docs/reference/operations.md.

This is one of three readers of the format; the others are the simulator (sim/src/ops/mod.rs) and
the agent (agent/base/ops.c). All three accept the same files and refuse others with the same line
and code. This one executes nothing. operation_fields.py has the fields, operation_order.py the
rules between lines.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping

from flashbed.base.errors import InputError
from flashbed.program.operation_fields import FIELDS, FIELDS_2, Reader, Refused, ends_in_statement
from flashbed.program.operation_order import Operation, Order

__all__ = [
    "HEADER",
    "HEADER_2",
    "LINE_BYTES_MAX",
    "Operation",
    "OperationError",
    "canonical",
    "each",
    "header_of",
    "parse",
    "text_of",
    "writes",
]

HEADER = "flashbed-ops 1"
HEADER_2 = "flashbed-ops 2"
LINE_BYTES_MAX = 4096
_LINES_AT_ONCE = 1 << 14
_READ_AT_ONCE = 1 << 20
_PRINTABLE = re.compile(rb"[\x20-\x7e]*\Z")


class OperationError(InputError):
    """A line that is no operation: its number (from 1), a code, and why.

    The codes are those of docs/reference/operations.md.
    """

    def __init__(self, line: int, code: str, detail: str) -> None:
        super().__init__(f"{line}: {code}: {detail}")
        self.line = line
        self.code = code
        self.detail = detail


def _read_line(
    line: bytes, number: int, known: Mapping[str, tuple[Reader, ...]]
) -> Operation | None:
    """Checks one line on its own; rules between lines are `Order`'s."""
    if len(line) > LINE_BYTES_MAX:
        raise Refused("line-too-long", f"{len(line)} bytes; {LINE_BYTES_MAX} are allowed")
    if not _PRINTABLE.match(line):
        raise Refused("bad-character", "a byte that is not printable ASCII")
    text = line.decode("ascii")
    if not text or text.startswith("#"):
        return None
    name = text.split(" ", 1)[0]
    readers = known.get(name)
    if readers is None:
        raise Refused("unknown-operation", f"{name[:80]!r} is no operation")
    has_statement = ends_in_statement(readers)
    words = text.split(" ", len(readers)) if has_statement else text.split(" ")
    if len(words) - 1 != len(readers) or (has_statement and not words[-1]):
        raise Refused("wrong-arguments", f"{name} takes {len(readers)} fields")
    done: list[str | int] = []
    for reader, word in zip(readers, words[1:], strict=True):
        done.append(reader(word, done))
    return Operation(name, tuple(done), number)


def parse(text: str | bytes) -> list[Operation]:
    """Reads a whole file of either version.

    Raises `OperationError` at the first line that is not one. Source: docs/reference/operations.md.
    """
    return list(each(text))


def each(text: str | bytes) -> Iterator[Operation]:
    """Yields the operations one by one, so that they are not all in memory at once."""
    lines = _lines(text)
    known = FIELDS if _header(next(lines)) == HEADER else FIELDS_2
    order = Order()
    for number, line in enumerate(lines, start=2):
        try:
            operation = _read_line(line, number, known)
            if operation is not None:
                order.check(operation)
                yield operation
        except Refused as refused:
            raise OperationError(number, refused.code, str(refused)) from None
    if order.data_line:
        raise OperationError(order.data_line, "bad-data", "data with no operation after it")


def header_of(text: str | bytes) -> str:
    """The first line of a file, which gives its version. Raises `OperationError`."""
    return _header(next(_lines(text[: len(HEADER) + 1])))


def _header(line: bytes) -> str:
    found = [header for header in (HEADER, HEADER_2) if line == header.encode()]
    if not found:
        raise OperationError(1, "bad-header", f"the first line is not {HEADER!r}")
    return found[0]


def _lines(text: str | bytes) -> Iterator[bytes]:
    """The text between line ends; `text` is not copied as a whole."""
    rest = b""
    for at in range(0, len(text), _READ_AT_ONCE):
        piece = text[at : at + _READ_AT_ONCE]
        data = piece.encode("utf-8", "surrogateescape") if isinstance(piece, str) else piece
        *lines, rest = (rest + data).split(b"\n")
        yield from lines
    yield rest


_WRITES = re.compile(
    r"^(?:(?:write|truncate|unlink|rmdir|rename|mkdir|remount|sql_open|erase"
    r"|link|symlink|chmod|chown|utimens|setxattr|removexattr|fallocate|copy|store)\b"
    r"|open \S+ \S+ \S*\b(?:create|trunc|tmpfile)\b)",
    re.MULTILINE,
)


def writes(text: str) -> bool:
    """Whether a flashbed-ops file has an operation that may change the file system."""
    return _WRITES.search(text) is not None


def canonical(operations: Iterable[Operation], header: str = HEADER) -> str:
    """A file's canonical text: the header, a line for each operation, no comments, a last LF."""
    return text_of(map(str, operations), header)


def text_of(lines: Iterable[str], header: str = HEADER) -> str:
    """A file with these lines after the header; millions of lines are never held as a list."""
    text = f"{header}\n"
    rest = iter(lines)
    # CPython appends in place in a `for` loop; a `while` loop would copy the text each time.
    for some in iter(lambda: list(itertools.islice(rest, _LINES_AT_ONCE)), []):
        text += "\n".join((*some, ""))
    return text
