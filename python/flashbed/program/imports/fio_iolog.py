"""Imports fio's logs of what its jobs did (write_iolog), versions 2 and 3.

The format has traps: a log may use a file without `add` or `open`; times of several threads are out
of order; fio 3 writes microseconds but reads nanoseconds; a second run appends to an existing log.
A log is read as a stream, twice. Left out: what was written; which job wrote it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from flashbed.base.errors import InputError
from flashbed.base.paths import shown
from flashbed.program.imports.lines import ImportedError, check_name, lines_of, refuse
from flashbed.program.imports.looks import refuse_foreign
from flashbed.program.imports.writing import recorded
from flashbed.program.recording.about import About
from flashbed.program.recording.calls import Call
from flashbed.program.recording.discover import Discovery
from flashbed.program.recording.file import check

__all__ = ["calls_of_log", "import_fio_iolog"]

_VERSIONS = {b"fio version 2 iolog": 2, b"fio version 3 iolog": 3}
_VERSION_1 = re.compile(rb"[012],\d+,\d+\Z")
_OFFSET_MAX = 2**62
_TIME_MAX = 10**18
_READ_WRITE_CREATE = 0o102
_PUNCH = 3
LACKS = (
    "which of fio's jobs made a request: all are one task, one after the other",
    "what was written: it counts as incompressible",
    "how files were opened, and calls on names",
)


@dataclass(kw_only=True)
class _Log:
    path: Path
    unit_ns: int
    folder: bytes
    version: int = 0
    now_ns: int = 0
    begin_ns: int = 0
    backwards: int = 0
    opened: dict[bytes, int] = field(default_factory=dict)
    discovery: Discovery = field(default_factory=Discovery)

    def calls(self) -> Iterator[Call]:
        """The calls of the log."""
        for line, fields in _each(self.path):
            if self.version == 0 or fields[0] == b"fio":
                # fio appends to an existing log; its times begin at 0 again.
                self.version = _version(self.path, line, fields)
                self.begin_ns = self.now_ns
                continue
            try:
                yield from self._line(fields)
            except ValueError as why:
                raise refuse(self.path, line, str(why)) from None
        if not self.version:
            raise ImportedError(f"{shown(self.path)}: empty")

    def _line(self, fields: list[bytes]) -> Iterator[Call]:
        if self.version == 3:
            time_ns = _number(fields.pop(0), _TIME_MAX // self.unit_ns) * self.unit_ns
            time_ns += self.begin_ns
            self.backwards += time_ns < self.now_ns
            self.now_ns = max(self.now_ns, time_ns)
        if len(fields) not in (2, 4):
            raise ValueError("neither FILE ACTION nor FILE ACTION OFFSET LENGTH")
        name, action = fields[:2]
        at, length = (_number(word, _OFFSET_MAX) for word in fields[2:] or (b"0", b"0"))
        for call in self._action(name, action, at, length):
            check(call)
            self.discovery.see(call)
            yield call

    def _action(self, name: bytes, action: bytes, at: int, length: int) -> Iterator[Call]:
        if action == b"wait":
            if self.version == 3:
                raise ValueError("wait is an action of version 2")
            self.now_ns = min(self.now_ns + at * 1000, _TIME_MAX)
        elif action == b"add":
            pass
        elif action == b"open":
            if name not in self.opened:
                yield self._open(name)
        elif action == b"close":
            if name in self.opened:
                yield self._call("close", {"descriptor": self.opened.pop(name)})
        elif action in _REQUESTS:
            if name not in self.opened:
                yield self._open(name)
            yield self._request(self.opened[name], action, at, length)
        else:
            raise ValueError(
                f"action {action.decode('ascii', 'replace')[:40]!r} is not one of fio's"
            )

    def _open(self, name: bytes) -> Call:
        number = next(n for n in range(3, len(self.opened) + 4) if n not in self.opened.values())
        check_name(name)
        self.opened[name] = number
        path = _relative(name, self.folder)
        return self._call("openat", {"path": path, "flags": _READ_WRITE_CREATE}, number)

    def _request(self, descriptor: int, action: bytes, at: int, length: int) -> Call:
        call = _REQUESTS[action]
        arguments: dict[str, int | bytes] = {"descriptor": descriptor}
        if call in ("pread64", "pwrite64", "fallocate"):
            most = _OFFSET_MAX if call == "fallocate" else 1 << 30
            if not 0 < length <= most:
                raise ValueError("a length that no request has")
            if at + length > _OFFSET_MAX:
                raise ValueError("a request behind the largest offset")
            arguments |= {"offset": at, "length": length}
        if call == "fallocate":
            return self._call(call, {**arguments, "mode": _PUNCH})
        return self._call(call, arguments, length if "offset" in arguments else 0)

    def _call(self, name: str, arguments: dict[str, int | bytes], result: int = 0) -> Call:
        return Call(
            task=0,
            start_ns=self.now_ns,
            duration_ns=0,
            cpu_ns=None,
            name=name,
            arguments=arguments,
            result=result,
        )


_REQUESTS = {b"read": "pread64", b"write": "pwrite64", b"sync": "fsync", b"datasync": "fdatasync",
             b"trim": "fallocate"}  # fmt: skip


def _number(word: bytes, most: int) -> int:
    if not word.isdigit() or len(word) > 19 or int(word) > most:
        raise ValueError(
            f"{word.decode('ascii', 'replace')[:40]!r} is not a number from 0 to {most}"
        )
    return int(word)


def _each(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    for line, text in lines_of(path):
        fields = text.split()
        if fields:
            yield line, fields


def _version(path: Path, line: int, fields: list[bytes]) -> int:
    found = _VERSIONS.get(b" ".join(fields))
    if found is None:
        if line == 1:
            if _VERSION_1.match(fields[0]):
                raise refuse(path, line, "a log of version 1, which fio itself no longer reads")
            refuse_foreign(path, "fio-iolog")
        raise refuse(path, line, "not a log of fio: must begin with 'fio version 2 iolog' or 3")
    return found


def _relative(name: bytes, folder: bytes) -> bytes:
    whole = posixpath.normpath(posixpath.join(folder, name))
    inside = folder.rstrip(b"/") + b"/"
    return whole[len(inside) :] if whole.startswith(inside) else b"/"


def _folder(path: Path) -> bytes:
    """The innermost folder that contains all files."""
    names: set[bytes] = set()
    version = 0
    for line, fields in _each(path):
        if not version or fields[0] == b"fio":
            version = _version(path, line, fields)
            continue
        at = version - 2
        if len(fields) > at + 1 and fields[at + 1] != b"wait":
            names.add(posixpath.dirname(posixpath.normpath(posixpath.join(b"/", fields[at]))))
            if len(names) > _NAMES_AT_ONCE:
                names = {posixpath.commonpath(names)}
    return posixpath.commonpath(names) if names else b"/"


_NAMES_AT_ONCE = 1000


def calls_of_log(path: Path) -> Iterator[Call]:
    """The calls of a log that a job file names."""
    yield from _Log(path=path, unit_ns=1000, folder=posixpath.normpath(_folder(path))).calls()


def import_fio_iolog(path: Path, out: Path, folder: str | None = None, unit: str = "us") -> About:
    """Makes a recording of a log. Raises `ImportedError` with FILE:LINE."""
    if unit not in ("us", "ns"):
        raise InputError(f"--unit {unit}: must be us or ns")
    below = folder.encode() if folder is not None else _folder(path)
    log = _Log(path=path, unit_ns=1000 if unit == "us" else 1, folder=posixpath.normpath(below))
    first = About(source="fio iolog", think="gaps", lacks=LACKS)

    def calls() -> Iterator[Call]:
        yield from log.calls()
        yield from log.discovery.existed()

    def about() -> About:
        more = f"the times of {log.backwards:,} lines, which go back: they follow at once"
        return first.model_copy(update={"lacks": (*LACKS, more)}) if log.backwards else first

    return recorded(path, out, first=first, calls=calls(), last=about)
