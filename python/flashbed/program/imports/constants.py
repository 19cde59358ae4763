"""Names that strace prints for numbers, with their values on x86-64."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["number_of", "signed"]


def _octal(text: str) -> dict[str, int]:
    words = text.split()
    return {name: int(value, 8) for name, value in zip(words[::2], words[1::2], strict=True)}


def _counted(text: str) -> dict[str, int]:
    return {name: number for number, name in enumerate(text.split())}


_VALUES: Mapping[str, int] = {
    **_octal(
        "O_RDONLY 0 O_WRONLY 1 O_RDWR 2 O_ACCMODE 3 O_CREAT 100 O_EXCL 200 O_NOCTTY 400"
        " O_TRUNC 1000 O_APPEND 2000 O_NONBLOCK 4000 O_DSYNC 10000 FASYNC 20000 O_ASYNC 20000"
        " O_DIRECT 40000 O_LARGEFILE 100000 O_DIRECTORY 200000 O_NOFOLLOW 400000 O_NOATIME 1000000"
        " O_CLOEXEC 2000000 O_SYNC 4010000 O_RSYNC 4010000 O_PATH 10000000 O_TMPFILE 20200000"
    ),
    **_counted("SEEK_SET SEEK_CUR SEEK_END SEEK_DATA SEEK_HOLE"),
    **_counted(
        "POSIX_FADV_NORMAL POSIX_FADV_RANDOM POSIX_FADV_SEQUENTIAL POSIX_FADV_WILLNEED"
        " POSIX_FADV_DONTNEED POSIX_FADV_NOREUSE"
    ),
    **_counted("MADV_NORMAL MADV_RANDOM MADV_SEQUENTIAL MADV_WILLNEED MADV_DONTNEED"),
    "AT_SYMLINK_NOFOLLOW": 0x100, "AT_REMOVEDIR": 0x200, "AT_EACCESS": 0x200,
    "AT_SYMLINK_FOLLOW": 0x400, "AT_NO_AUTOMOUNT": 0x800, "AT_EMPTY_PATH": 0x1000,
    "AT_STATX_SYNC_AS_STAT": 0, "AT_STATX_FORCE_SYNC": 0x2000, "AT_STATX_DONT_SYNC": 0x4000,
    "RENAME_NOREPLACE": 1, "RENAME_EXCHANGE": 2, "RENAME_WHITEOUT": 4,
    "F_DUPFD": 0, "F_GETFD": 1, "F_SETFD": 2, "F_GETFL": 3, "F_SETFL": 4, "F_DUPFD_CLOEXEC": 1030,
    "FD_CLOEXEC": 1,
    "PROT_NONE": 0, "PROT_READ": 1, "PROT_WRITE": 2, "PROT_EXEC": 4,
    "MAP_FILE": 0, "MAP_SHARED": 1, "MAP_PRIVATE": 2, "MAP_SHARED_VALIDATE": 3, "MAP_FIXED": 0x10,
    "MAP_ANONYMOUS": 0x20, "MAP_GROWSDOWN": 0x100, "MAP_DENYWRITE": 0x800,
    "MAP_EXECUTABLE": 0x1000, "MAP_LOCKED": 0x2000, "MAP_NORESERVE": 0x4000,
    "MAP_POPULATE": 0x8000, "MAP_NONBLOCK": 0x10000, "MAP_STACK": 0x20000, "MAP_HUGETLB": 0x40000,
    "MAP_SYNC": 0x80000, "MAP_FIXED_NOREPLACE": 0x100000, "MAP_32BIT": 0x40,
    "MS_ASYNC": 1, "MS_INVALIDATE": 2, "MS_SYNC": 4,
    "MREMAP_MAYMOVE": 1, "MREMAP_FIXED": 2, "MREMAP_DONTUNMAP": 4,
    "LOCK_SH": 1, "LOCK_EX": 2, "LOCK_NB": 4, "LOCK_UN": 8,
    "FALLOC_FL_KEEP_SIZE": 1, "FALLOC_FL_PUNCH_HOLE": 2, "FALLOC_FL_NO_HIDE_STALE": 4,
    "FALLOC_FL_COLLAPSE_RANGE": 8, "FALLOC_FL_ZERO_RANGE": 0x10, "FALLOC_FL_INSERT_RANGE": 0x20,
    "FALLOC_FL_UNSHARE_RANGE": 0x40,
    "SYNC_FILE_RANGE_WAIT_BEFORE": 1, "SYNC_FILE_RANGE_WRITE": 2, "SYNC_FILE_RANGE_WAIT_AFTER": 4,
    "CLOSE_RANGE_UNSHARE": 2, "CLOSE_RANGE_CLOEXEC": 4,
    "RWF_HIPRI": 1, "RWF_DSYNC": 2, "RWF_SYNC": 4, "RWF_NOWAIT": 8, "RWF_APPEND": 0x10,
    "XATTR_CREATE": 1, "XATTR_REPLACE": 2,
    "SPLICE_F_MOVE": 1, "SPLICE_F_NONBLOCK": 2, "SPLICE_F_MORE": 4,
    "CLONE_VM": 0x100, "CLONE_FS": 0x200, "CLONE_FILES": 0x400, "CLONE_SIGHAND": 0x800,
    "CLONE_VFORK": 0x4000, "CLONE_THREAD": 0x10000,
    "F_OK": 0, "X_OK": 1, "W_OK": 2, "R_OK": 4,
    "S_IFMT": 0o170000, "S_IFSOCK": 0o140000, "S_IFLNK": 0o120000, "S_IFREG": 0o100000,
    "S_IFBLK": 0o060000, "S_IFDIR": 0o040000, "S_IFCHR": 0o020000, "S_IFIFO": 0o010000,
    "S_ISUID": 0o4000, "S_ISGID": 0o2000, "S_ISVTX": 0o1000, "NULL": 0,
}  # fmt: skip
_COMMENT = re.compile(r"/\*.*?\*/")
_NUMBER = re.compile(r"-?(?:0x[0-9a-fA-F]{1,16}|0[0-7]{1,22}|[0-9]{1,20})\Z")
_SHORT = 19
"""Digits of a number that has less than 64 bits."""
_LATER = re.compile(r"(?:CLONE|SIG|MAP|O|AT|MADV|SPLICE|RWF|RESOLVE|STATX|FALLOC_FL)_?[A-Z0-9_]*\Z")
"""Constants that change nothing here."""


def signed(value: int) -> int:
    """A number of 64 bits as a signed one. Raises `ValueError` for a larger one."""
    if not -(1 << 63) <= value < 1 << 64:
        raise ValueError("a number of more than 64 bits")
    return value - (1 << 64) if value >= 1 << 63 else value


def number_of(text: bytes) -> int:
    """Parses a number of 64 bits, or names with `|` between them. Raises `ValueError`."""
    if text.isdigit() and text[0] != ord("0") and len(text) < _SHORT:
        return int(text)
    value = 0
    shown = _COMMENT.sub("", text.decode("ascii", "replace")).strip()
    for word in shown.split("|"):
        name = word.strip()
        if _NUMBER.match(name):
            octal = name.lstrip("-").startswith("0") and not name.lstrip("-").startswith("0x")
            value |= int(name, 8 if octal and len(name.lstrip("-")) > 1 else 0)
        elif name in _VALUES:
            value |= _VALUES[name]
        elif not _LATER.match(name):
            raise ValueError(f"{name[:60]!r} is not a known number")
    return signed(value)
