"""The measured operations of class `any`: whatever a program can do to a file system.

Each program uses only some of the features (Groce et al., "Swarm testing", ISSTA 2012), because a
feature that is always present hides what it prevents. At the end files are usually read back whole
from the flash, to check what was written.

Left out: `direct`, `sql`, `compute`, a full file system, and pauses near the time of a kernel
timer: dirty data waits for a moment or for a minute.

Invariant: the next operation depends on the oracle's state, so that most operations find something
to work on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from flashbed.bench.fuzz.draw import Draw
from flashbed.bench.fuzz.oracle import MemoryFs
from flashbed.program.operations import Operation

__all__ = ["DROPPED", "FEATURES", "AnyBody"]

FEATURES = (
    "overwrite",
    "sparse",
    "append",
    "truncate",
    "trunc",
    "unlink",
    "rename",
    "mkdir",
    "rmdir",
    "fsync",
    "fdatasync",
    "sync",
    "drop_caches",
    "remount",
    "osync",
    "compressible",
    "fadvise",
    "missing",
)
FILE_BYTES_MAX = 300_000
SLOTS_MAX = 5
DROPPED = (Operation("drop_caches"),) * 3
"""Certainly empties the caches. An entry that was used more than once since the last scan survives
one pass of the shrinkers (DCACHE_REFERENCED), and the number of passes of one `drop_caches` depends
on how much else there was to free."""
_FILES = ("a", "b", "c", "d/e", "d/f", "g/h")
_DIRECTORIES = ("d", "g", "d/i")
_ODD = ("d", "g", "a", "b", "a/x", "d/e/x", "nothing", "nothing/x", "d/i")
_LENGTHS = (1, 50, 512, 2_048, 3_000, 4_096, 4_096, 5_000, 8_192, 16_384, 40_000)
_MOMENTS_NS = (1_000_000, 20_000_000)
_REST_NS = 60_000_000_000
_DO = {
    "write": 30,
    "read": 20,
    "open": 14,
    "close": 8,
    "pause": 3,
    "fsync": 4,
    "fdatasync": 3,
    "sync": 3,
    "truncate": 5,
    "unlink": 5,
    "rename": 6,
    "mkdir": 6,
    "rmdir": 3,
    "drop_caches": 3,
    "remount": 3,
    "fadvise": 3,
    "missing": 3,
}


class AnyBody:
    """A program in the making, and the state it has reached."""

    def __init__(
        self, draw: Draw, prepare: Sequence[Operation], without: Collection[str] = ()
    ) -> None:
        self.draw = draw
        self.fs = MemoryFs()
        for operation in prepare:
            self.fs.execute(operation)
        self.features = {name for name in FEATURES if draw.chance(50)} - set(without)
        absent = set(FEATURES) - self.features | set(without)
        self.weights = {name: weight for name, weight in _DO.items() if name not in absent}
        self.slots_max = 1 if "two-slots" in without else draw.between(1, SLOTS_MAX)
        self.flags: dict[int, str] = {}
        self.lines: list[Operation] = []
        self.seed = draw.between(1, 999)

    def operations(self) -> list[Operation]:
        """Tens of operations, usually followed by reading the files back."""
        if "mkdir" in self.weights and self.draw.chance(80):
            self._do("mkdir", "d")
        for _ in range(self.draw.between(5, 35)):
            self._step(self.draw.weighted(self.weights))
        if self.draw.chance(80):
            self._read_back()
        return self.lines

    def _do(self, name: str, *fields: str | int) -> int:
        operation = Operation(name, fields)
        self.lines.append(operation)
        return self.fs.execute(operation).result

    def _drop_caches(self) -> None:
        for operation in DROPPED:
            self._do(operation.name)

    def _step(self, choice: str) -> None:
        match choice:
            case "open":
                self._open()
            case "pause":
                self._do("pause", self.draw.pick((*_MOMENTS_NS, _REST_NS)))
            case "sync":
                self._do("sync")
            case "drop_caches":
                self._drop_caches()
            case "remount":
                self._close_all()
                self._do("remount")
            case "mkdir" | "rmdir":
                self._do(choice, self.draw.pick(_DIRECTORIES))
            case "unlink":
                self._do("unlink", self._path())
            case "rename":
                self._do("rename", self._path(), self._path())
            case "missing":
                self._odd()
            case _:
                self._on_slot(choice)

    def _path(self) -> str:
        """A path, mostly of an existing file."""
        there = list(self.fs.sizes())
        if there and self.draw.chance(65):
            return self.draw.pick(there)
        return self.draw.pick((*_FILES, *_DIRECTORIES) if self.draw.chance(40) else _FILES)

    def _odd(self) -> None:
        """An operation that usually fails."""
        path = self.draw.pick(_ODD)
        match self.draw.pick(("mkdir", "unlink", "rmdir", "rename", "open", "exclusive")):
            case "rename":
                if "rename" in self.weights:
                    self._do("rename", path, self.draw.pick(_ODD))
            case "open":
                self._opened(path, self.draw.pick(("ro", "wo", "rw", "rw,create")))
            case "exclusive":
                self._opened(self._path(), "rw,create,excl")
            case choice if choice in self.weights:
                self._do(choice, path)
            case _:
                pass

    def _opened(self, path: str, flags: str) -> None:
        if len(self.flags) >= self.slots_max:
            self._close(self.draw.pick(list(self.flags)))
        slot = next(slot for slot in range(64) if slot not in self.flags)
        self.flags[slot] = flags
        if self._do("open", slot, path, flags) < 0 and self.draw.chance(85):
            self._close(slot)

    def _open(self) -> None:
        flags = [self.draw.pick(("ro", "wo", "rw", "rw", "rw", "rw"))]
        if self.draw.chance(75):
            flags.append("create")
        for flag, feature in (("trunc", "trunc"), ("append", "append")):
            if feature in self.features and self.draw.chance(25):
                flags.append(flag)
        if "osync" in self.features and self.draw.chance(25):
            flags.append(self.draw.pick(("sync", "dsync")))
        self._opened(self._path(), ",".join(flags))

    def _close(self, slot: int) -> None:
        del self.flags[slot]
        self._do("close", slot)

    def _close_all(self) -> None:
        for slot in list(self.flags):
            self._close(slot)

    def _on_slot(self, choice: str) -> None:
        if not self.flags:
            self._open()
        if not self.flags:
            return  # the file does not exist
        slot = self._slot_for(choice)
        size = self.fs.size_of_slot(slot)
        match choice:
            case "close":
                self._close(slot)
            case "read":
                length = self.draw.pick(_LENGTHS)
                offset = self.draw.between(0, size + 100) if self.draw.chance(60) else 0
                self._do("read", slot, offset, length)
            case "write":
                self._write(slot, size)
            case "truncate":
                self._do("truncate", slot, self._new_size(size))
            case "fadvise":
                advice = self.draw.pick(("random", "willneed", "dontneed", "sequential"))
                self._do("fadvise", slot, self.draw.between(0, size), 0, advice)
            case _:
                self._do(choice, slot)

    def _slot_for(self, choice: str) -> int:
        """A slot, mostly one whose file can be read or written as needed."""
        useless = {"write": "ro", "truncate": "ro", "read": "wo"}.get(choice)
        fitting = [slot for slot, flags in self.flags.items() if flags[:2] != useless]
        return self.draw.pick(fitting if fitting and self.draw.chance(90) else list(self.flags))

    def _new_size(self, size: int) -> int:
        if self.draw.chance(15):
            return 0
        if "sparse" in self.features and self.draw.chance(25):
            return size + self.draw.between(1, 50_000)
        return self.draw.between(0, size)

    def _write(self, slot: int, size: int) -> None:
        length = self.draw.pick(_LENGTHS)
        if self.draw.chance(40):
            length = self.draw.between(1, length)
        offset = size
        if size and "overwrite" in self.features and self.draw.chance(45):
            offset = self.draw.between(0, size)
            if self.draw.chance(50):
                offset -= offset % 4_096
        elif "sparse" in self.features and self.draw.chance(15):
            offset = size + self.draw.between(1, 50_000)
        if size + length > FILE_BYTES_MAX or offset + length > FILE_BYTES_MAX:
            return
        compressibility = 0
        if "compressible" in self.features and self.draw.chance(60):
            compressibility = self.draw.pick((10, 50, 90, 100))
        self.seed += 1
        self._do("write", slot, offset, length, self.seed, compressibility)

    def _read_back(self) -> None:
        self._close_all()
        again = [name for name in ("remount", "drop_caches") if name in self.weights]
        if "sync" in self.weights:
            self._do("sync")
        if again and self.draw.pick(again) == "remount":
            self._do("remount")
        elif again:
            self._drop_caches()
        for path, size in self.fs.sizes().items():
            self._do("open", 0, path, "ro")
            for offset in range(0, size + 1, 65_536):
                self._do("read", 0, offset, 65_536)
            self._do("close", 0)
