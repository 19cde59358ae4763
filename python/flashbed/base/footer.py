"""Reads the footer of a Parquet file: how much there is to read, before reading it.

A few hundred bytes can encode billions of equal rows. The footer is a struct of Thrift's compact
protocol. Polars decodes as many rows as the row groups say, whatever the file's total is.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Extent", "extent", "key_value"]

_MAGIC = b"PAR1"
_TAIL_BYTES = 8
_BYTES_MAX = 16 << 20
_DEPTH_MAX = 16
_VARINT_BITS_MAX = 70
_BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(3, 13)
_BOOLS = (1, 2)
_SCHEMA, _ROW_GROUPS, _GROUP_ROWS, _KEY_VALUES = 2, 4, 3, 5
"""Fields of FileMetaData, and `num_rows` of RowGroup."""


@dataclass(frozen=True)
class Extent:
    """The numbers of a file's rows and columns."""

    rows: int
    columns: int


def extent(path: Path) -> Extent:
    """Raises `ValueError` for a file without a footer, `OSError` for one that cannot be opened."""
    reader = _ThriftReader(_footer(path))
    rows = columns = 0
    for field, kind in reader.fields():
        if field == _SCHEMA and kind == _LIST:
            columns = reader.skip_list()[1] - 1  # the first is the schema's root
        elif field == _ROW_GROUPS and kind == _LIST:
            element, count = reader.list_head()
            if element != _STRUCT:
                raise ValueError("row groups are no structs")
            rows += sum(_group_rows(reader) for _ in range(count))
        else:
            reader.skip(kind)
    return Extent(rows, columns)


def key_value(path: Path, key: str) -> str | None:
    """The value of a key in a file's metadata. Raises as `extent` does."""
    reader = _ThriftReader(_footer(path))
    found = None
    for field, kind in reader.fields():
        if field != _KEY_VALUES or kind != _LIST:
            reader.skip(kind)
            continue
        element, count = reader.list_head()
        if element != _STRUCT:
            raise ValueError("metadata is no structs")
        for _ in range(count):
            pair = {}
            for part, of in reader.fields():
                if of == _BINARY:
                    pair[part] = reader.binary()
                else:
                    reader.skip(of)
            if pair.get(1) == key.encode():
                found = pair.get(2, b"").decode("utf-8")
    return found


def _group_rows(reader: _ThriftReader) -> int:
    rows = 0
    for field, kind in reader.fields():
        if field == _GROUP_ROWS and kind == _I64:
            rows = max(rows, reader.signed())
        else:
            reader.skip(kind)
    return rows


def _footer(path: Path) -> bytes:
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(number, "rb") as file:  # noqa: PTH123
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise ValueError("no regular file")
        size = file.seek(0, os.SEEK_END)
        if size < _TAIL_BYTES:
            raise ValueError("too short")
        file.seek(size - _TAIL_BYTES)
        tail = file.read(_TAIL_BYTES)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != _MAGIC or length > min(size - _TAIL_BYTES, _BYTES_MAX):
            raise ValueError("no Parquet file")
        file.seek(size - _TAIL_BYTES - length)
        return file.read(length)


class _ThriftReader:
    """Reads values of Thrift's compact protocol in order. Raises `ValueError`."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._depth = 0

    def _byte(self) -> int:
        if self._at >= len(self._data):
            raise ValueError("cut short")
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, _VARINT_BITS_MAX, 7):
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("a number too long")

    def _pass(self, count: int) -> None:
        # A list may claim more values than the file has bytes.
        if count > len(self._data) - self._at:
            raise ValueError("cut short")
        self._at += count

    def binary(self) -> bytes:
        """Reads a text."""
        length = self._varint()
        self._pass(length)
        return self._data[self._at - length : self._at]

    def signed(self) -> int:
        """Reads a number of any width."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yields number and type of each field of a struct; the caller reads the value."""
        self._deeper()
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self.signed()
            yield field, head & 0x0F
        self._depth -= 1

    def list_head(self) -> tuple[int, int]:
        """Reads type and number of a list's values."""
        head = self._byte()
        count = head >> 4
        return head & 0x0F, self._varint() if count == 0x0F else count

    def skip_list(self) -> tuple[int, int]:
        """Reads a list's head and skips its values."""
        self._deeper()
        kind, count = self.list_head()
        for _ in range(count):
            self._skip_value(kind)
        self._depth -= 1
        return kind, count

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise ValueError("nested too deep")

    def skip(self, kind: int) -> None:
        """Skips a field's value; a truth value is encoded in its type."""
        if kind not in _BOOLS:
            self._skip_value(kind)

    def _skip_value(self, kind: int) -> None:
        if kind in (*_BOOLS, _BYTE):
            self._byte()
        elif kind in (_I16, _I32, _I64):
            self._varint()
        elif kind == _DOUBLE:
            self._pass(8)
        elif kind == _BINARY:
            self._pass(self._varint())
        elif kind in (_LIST, _SET):
            self.skip_list()
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner)
        elif kind == _MAP:
            self._skip_map()
        else:
            raise ValueError(f"kind {kind}")

    def _skip_map(self) -> None:
        self._deeper()
        count = self._varint()
        kinds = self._byte() if count else 0
        for _ in range(count):
            self._skip_value(kinds >> 4)
            self._skip_value(kinds & 0x0F)
        self._depth -= 1
