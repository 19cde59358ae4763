"""In-memory files that record the system calls which SQLite's unix VFS would make.

They follow os_unix.c of SQLite 3.x on Linux: `open` with O_CREAT; the journal's directory synced at
the first sync of the journal after it was opened (UNIXFILE_DIRSYNC, new or not) and after it was
unlinked; `ftruncate`, `pread` and `pwrite`. Every sync, of a directory too, is the call that the
library was built to use: fsync, or fdatasync (HAVE_FDATASYNC). A test for a path (access) becomes
an `open` for reading, which looks up the same entry and inode, and a `close`; both fail if the path
does not exist.

Left out: locks and stat, which reach no flash; memory-mapped I/O, which is off in SQLite's default
build; WAL's shared memory. WAL therefore needs PRAGMA locking_mode = EXCLUSIVE, as it does on
JFFS2, which cannot map a file for writing. Temporary files stay in memory, like /tmp of a device,
and make no operation.

Invariant: every line is an operation of docs/reference/operations.md; slots are free again once
SQLite has closed its files.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import apsw

from flashbed.plan.sqlite.compressibility import compressibility

__all__ = ["FOLDER", "SLOTS", "Files", "PagerTally", "RecordingVfs"]

FOLDER = "db"
"""The directory of the database, which SQLite syncs as well."""
FILE_BYTES_MAX = 1 << 31
SLOTS = 64
PAGE_BYTES_MIN = 512
"""Reads shorter than this are of a header."""
SECTOR_BYTES = 4096
"""SQLITE_DEFAULT_SECTOR_SIZE; for a device whose writes are safe at power loss SQLite uses 512."""
DIRECTORY_SYNCED = (
    apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL | apsw.SQLITE_OPEN_WAL
)
ON_FLASH = DIRECTORY_SYNCED | apsw.SQLITE_OPEN_MAIN_DB
CLOCK_MS = 212_444_596_800_000
"""2020-01-01 00:00 as milliseconds of the Julian calendar."""

Files = dict[str, bytearray]
"""Path -> contents."""
_names = itertools.count()


@dataclass(slots=True)
class PagerTally:
    """The pager's work since a statement began, besides its operations."""

    pages_read: int = 0
    writes: int = 0
    asides: int = 0
    """Calls that are no operation but take time: locks, and fstat for a file's size."""


class RecordingVfs(apsw.VFS):
    """A VFS with files `files`, under a name of its own; operations are appended to `lines`.

    `sync` is "fsync" or "fdatasync". `seed` is the first of the seeds that make each write's bytes
    differ. Only with `measured` are missing names looked up too: no operation of a preparation may
    fail.
    """

    def __init__(self, files: Files, sync: str, seed: int, measured: bool) -> None:
        self.files = files
        self.lines: list[str] = []
        self.measured = measured
        self.written: dict[int, tuple[int, bytes]] | None = None
        """SEED of a write -> its offset and bytes, if they are kept."""
        self.tally = PagerTally()
        self.sync_word = sync
        """The name of a sync in this build of SQLite."""
        self._seed = seed
        self._free_slots = set(range(SLOTS))
        self.vfs_name = f"flashbed-recording-{next(_names)}"
        super().__init__(self.vfs_name, "")

    def xOpen(  # noqa: N802
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        """UnixOpen."""
        open_flag = flags[0]
        if name is None or not open_flag & ON_FLASH:
            # apsw accepts any object with these methods
            return _MemoryFile(bytearray())  # type: ignore[return-value]
        path = _below(name.filename() if isinstance(name, apsw.URIFilename) else name)
        create = bool(open_flag & apsw.SQLITE_OPEN_CREATE)
        is_new = path not in self.files
        if is_new and not create:
            raise apsw.CantOpenError(f"{path}: no such file")
        slot = self.take_slot()
        words = ["ro" if open_flag & apsw.SQLITE_OPEN_READONLY else "rw"]
        words += ["create"] if create else []
        words += ["excl"] if open_flag & apsw.SQLITE_OPEN_EXCLUSIVE else []
        self.lines.append(f"open {slot} {path} {','.join(words)}")
        data = self.files.setdefault(path, bytearray())
        unsynced = create and bool(open_flag & DIRECTORY_SYNCED)
        return _RecordedFile(data, self, slot, unsynced)  # type: ignore[return-value]

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: N802
        """unixAccess: whether the file exists, and is not empty if the flags ask for that."""
        path = _below(pathname)
        there = path in self.files
        if there or self.measured:
            slot = self.take_slot()
            self.lines += [f"open {slot} {path} ro", f"close {slot}"]
            self.give_slot(slot)
        return there and (flags != apsw.SQLITE_ACCESS_EXISTS or len(self.files[path]) > 0)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        """UnixDelete."""
        path = _below(filename)
        if self.files.pop(path, None) is None:
            raise apsw.exception_for(apsw.SQLITE_IOERR_DELETE_NOENT)
        self.lines.append(f"unlink {path}")
        if syncdir:
            self.sync_directory()

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        """Paths are relative to the mount point."""
        return f"/{_below(name)}"

    def xCurrentTimeInt64(self) -> int:  # noqa: N802
        """The clock stands still, at the boards' 2020-01-01."""
        return CLOCK_MS

    def xCurrentTime(self) -> float:  # noqa: N802
        """The same as a Julian day."""
        return CLOCK_MS / 86_400_000

    def sync_directory(self) -> None:
        """openDirectory, full_fsync, close."""
        slot = self.take_slot()
        self.lines += [f"open {slot} {FOLDER} ro", f"{self.sync_word} {slot}", f"close {slot}"]
        self.give_slot(slot)

    def take_slot(self) -> int:
        """The lowest free slot."""
        slot = min(self._free_slots)
        self._free_slots.remove(slot)
        return slot

    def give_slot(self, slot: int) -> None:
        """Frees a slot."""
        self._free_slots.add(slot)

    def bytes_words(self, data: bytes, offset: int) -> str:
        """SEED and COMPRESSIBILITY of a write: new bytes each time, which compress as well."""
        self._seed += 1
        if self.written is not None:
            self.written[self._seed] = offset, bytes(data)
        return f"{self._seed} {compressibility(data)}"


def _below(path: str) -> str:
    return path.lstrip("/")


class _MemoryFile:
    """A file in memory; methods as apsw's VFSFile."""

    def __init__(self, data: bytearray) -> None:
        self._data = data

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        return bytes(self._data[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if offset + len(data) > FILE_BYTES_MAX:
            raise apsw.FullError(f"a file of more than {FILE_BYTES_MAX >> 30} GiB")
        if len(self._data) < offset:
            self._data.extend(bytes(offset - len(self._data)))
        self._data[offset : offset + len(data)] = data

    def xTruncate(self, size: int) -> None:  # noqa: N802
        if size < len(self._data):
            del self._data[size:]
        else:
            self._data.extend(bytes(size - len(self._data)))

    def xSync(self, flags: int) -> None:  # noqa: N802
        pass

    def xClose(self) -> None:  # noqa: N802
        pass

    def xFileSize(self) -> int:  # noqa: N802
        return len(self._data)

    def xLock(self, level: int) -> None:  # noqa: N802
        pass

    def xUnlock(self, level: int) -> None:  # noqa: N802
        pass

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:  # noqa: ARG002, N802
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return SECTOR_BYTES

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        # SUBPAGE_READ, which unixDeviceCharacteristics now has, is left out: SQLite would read long
        # records past its page cache, which 3.7 did not (SQLITE_DIRECT_OVERFLOW_READ).
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE


class _RecordedFile(_MemoryFile):
    """A file of the flash. `directory_unsynced` is UNIXFILE_DIRSYNC."""

    def __init__(
        self, data: bytearray, vfs: RecordingVfs, slot: int, directory_unsynced: bool
    ) -> None:
        super().__init__(data)
        self._vfs = vfs
        self._lines = vfs.lines
        self._slot = slot
        self._directory_unsynced = directory_unsynced

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._lines.append(f"read {self._slot} {offset} {amount}")
        self._vfs.tally.pages_read += amount >= PAGE_BYTES_MIN
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        words = self._vfs.bytes_words(data, offset)
        self._vfs.tally.writes += 1
        self._lines.append(f"write {self._slot} {offset} {len(data)} {words}")
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._lines.append(f"truncate {self._slot} {size}")
        super().xTruncate(size)

    def xFileSize(self) -> int:  # noqa: N802
        self._vfs.tally.asides += 1
        return super().xFileSize()

    def xLock(self, level: int) -> None:  # noqa: ARG002, N802
        self._vfs.tally.asides += 1

    def xUnlock(self, level: int) -> None:  # noqa: ARG002, N802
        self._vfs.tally.asides += 1

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        self._vfs.tally.asides += 1
        return False

    def xSync(self, flags: int) -> None:  # noqa: ARG002, N802
        self._lines.append(f"{self._vfs.sync_word} {self._slot}")
        if self._directory_unsynced:
            self._directory_unsynced = False
            self._vfs.sync_directory()

    def xClose(self) -> None:  # noqa: N802
        self._lines.append(f"close {self._slot}")
        self._vfs.give_slot(self._slot)
