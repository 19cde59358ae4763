"""Chooses the folder that a trace of strace is about, from a quick look at its lines.

The folder that `--folder` names, else the working folder if the program wrote in it, else the one
in which it wrote. Descriptors that were open before are files only if a call shows it.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from flashbed.base.paths import shown
from flashbed.program.imports.lines import ImportedError, lines_of
from flashbed.program.imports.looks import refuse_foreign
from flashbed.program.imports.strace_line import strip_place, unescaped
from flashbed.program.imports.strace_lines import files_of
from flashbed.stack.names import escaped

__all__ = ["WORKING", "Folder", "folder_of"]

WORKING = b"/(working folder)"
"""Stands for a working folder whose name is not in the trace."""
_TEXT = rb'"((?:[^"\\]|\\.){0,20000})"'
_USE = re.compile(
    rb"\b(open|openat2?|creat|l?stat(?:64)?|newfstatat|fstatat64|statx|access|faccessat2?|"
    rb"mkdir(?:at)?|rmdir|unlink(?:at)?|rename(?:at2?)?|link(?:at)?|symlink(?:at)?|truncate(?:64)?|"
    rb"chmod|fchmodat|readlink(?:at)?)\((?:(AT_FDCWD|-100|\d+)(?:<[^,]*>| /\*[^/]*\*/)?, )?"
    + _TEXT,
    re.DOTALL,
)
_CHANGES = frozenset(
    (b"creat", b"mkdir", b"mkdirat", b"rmdir", b"unlink", b"unlinkat", b"rename", b"renameat",
     b"renameat2", b"link", b"linkat", b"symlink", b"symlinkat", b"truncate", b"truncate64")
)  # fmt: skip
_TO_WRITE = re.compile(rb"O_(?:WRONLY|RDWR|CREAT)\b|, 0x[0-9a-f]*[1-9a-f](?:,|\))")
_WRITES = re.compile(
    rb"\b(?:p?write(?:64|v2?)?|pwritev2?|fsync|fdatasync|ftruncate(?:64)?|fallocate)\((\d+<.*)",
    re.DOTALL,
)
_OF_A_FILE = re.compile(
    rb"\b(?:pread(?:64|v2?)|pwrite(?:64|v2?)|fsync|fdatasync|ftruncate(?:64)?|fallocate|_?l?lseek|"
    rb"getdents(?:64)?|sync_file_range)\((\d{1,9})[,)]"
)
_FAILED = re.compile(rb"\)[ \t]+= (?:-1|\?)[^)]*(?:\([^)]*\))?(?: <[\d.]+>)?\s*\Z")
_WORKING = re.compile(rb"AT_FDCWD(?: \*/)?<((?:/|\\x2f)[^>]*)>")
_GETCWD = re.compile(rb"\bgetcwd\(" + _TEXT + rb", \d+\) += \d")
_NAMED = re.compile(rb"\(\d+<(?:/|\\x2f|[a-z_]+:)")
_NO_FILES = (b"/dev/", b"/proc/", b"/sys/")
_STANDARD_ERROR = 2
_FOLDERS_MAX = 10_000
_NAMED_IN_ERROR = 3


@dataclass(frozen=True, kw_only=True)
class Folder:
    """What a quick look told.

    Attributes:
        path: the folder.
        named: whether strace printed the names of descriptors (-y).
        files: numbers of descriptors that are files wherever they were opened.
        lacks: what the choice leaves out, or an empty text.
        others: where else its files are, for an error.
    """

    path: bytes
    named: bool
    files: frozenset[int]
    lacks: str = ""
    others: str = ""


@dataclass(kw_only=True)
class _Look:
    working: bytes | None = None
    moved: bool = False
    named: bool = False
    files: set[int] = field(default_factory=set)
    used: Counter[bytes] = field(default_factory=Counter)
    written: Counter[bytes] = field(default_factory=Counter)
    relative: int = 0
    relative_written: int = 0

    def see(self, text: bytes) -> None:
        """Takes a line."""
        if self.working is None:
            self._working(text)
        self.named = self.named or bool(_NAMED.search(text))
        found = _USE.search(text)
        if found is not None:
            self._path(found, text)
            return
        wrote = _WRITES.search(text)
        if wrote is not None:
            _, place = strip_place(wrote[1].partition(b">")[0] + b">")
            if place is not None and not place.startswith(_NO_FILES):
                self._count(self.written, posixpath.dirname(place))
            return
        file = _OF_A_FILE.search(text)
        if file and int(file[1]) > _STANDARD_ERROR and not _FAILED.search(text):
            self.files.add(int(file[1]))

    def _working(self, text: bytes) -> None:
        found = _WORKING.search(text)
        if found is None and not self.moved:
            self.moved = b"chdir(" in text
            found = _GETCWD.search(text) if not self.moved else None
        if found is not None:
            name = strip_place(b"AT_FDCWD<" + found[1] + b">")[1]
            self.working = posixpath.normpath(name) if name else None

    def _path(self, found: re.Match[bytes], text: bytes) -> None:
        name, at, path = found[1], found[2], unescaped(found[3])
        if _FAILED.search(text) or not path:
            return
        writes = name in _CHANGES or (
            name.startswith(b"open") and bool(_TO_WRITE.search(text, found.end()))
        )
        if path.startswith(b"/"):
            if path.startswith(_NO_FILES):
                return
            folder = posixpath.dirname(posixpath.normpath(path))
            self._count(self.used, folder)
            if writes:
                self._count(self.written, folder)
        elif at is None or not at.isdigit():
            self.relative += 1
            self.relative_written += writes

    @staticmethod
    def _count(counter: Counter[bytes], folder: bytes) -> None:
        if folder in counter or len(counter) < _FOLDERS_MAX:
            counter[folder] += 1

    def inside(self, counter: Counter[bytes], folder: bytes) -> int:
        """Uses of paths below a folder."""
        below = folder.rstrip(b"/") + b"/"
        return sum(times for one, times in counter.items() if (one + b"/").startswith(below))


def folder_of(path: Path, folder: str | None) -> Folder:
    """The folder of a trace, which `folder` names. Raises `ImportedError` if there is none."""
    look = _Look()
    for file, _ in files_of(path):
        for _, text in lines_of(file):
            look.see(text)
    named, files = look.named, frozenset(look.files)
    if folder is not None:
        return Folder(
            path=posixpath.normpath(folder).encode("utf-8", "surrogateescape"),
            named=named,
            files=files,
            others="is --folder right?",
        )
    working = look.working
    if working is not None and working != b"/":
        written = look.relative_written + look.inside(look.written, working)
        used = look.relative + look.inside(look.used, working)
        if written or (used and not look.written):
            return Folder(path=working, named=named, files=files, others=_named(look))
    elif look.relative_written or (look.relative and not look.written):
        lacks = "the working folder's name: relative names are below it (strace -y, or --folder)"
        below = WORKING if working is None else working
        return Folder(path=below, named=named, files=files, lacks=lacks, others=_named(look))
    if look.written:
        common = posixpath.commonpath(list(look.written))
        if common == b"/":
            common = min(look.written, key=lambda one: (-look.written[one], one))
        lacks = (
            f"files outside {escaped(common.decode('utf-8', 'backslashreplace'))}, where the"
            " program wrote most; --folder chooses another folder"
        )
        return Folder(path=common, named=named, files=files, lacks=lacks, others=_named(look))
    if files and not look.relative:
        return Folder(path=WORKING, named=named, files=files, others=_named(look))
    refuse_foreign(files_of(path)[0][0], "strace")
    raise ImportedError(f"{shown(path)}: no call in the working folder; {_named(look)}")


def _named(look: _Look) -> str:
    most = look.used.most_common(_NAMED_IN_ERROR)
    if not most:
        return "run strace with -y, or use --folder"
    texts = [f"{escaped(one.decode('utf-8', 'backslashreplace'))[:80]} ({times:,})"
             for one, times in most]  # fmt: skip
    return f"its files are in {', '.join(texts)}: name a folder with --folder"
