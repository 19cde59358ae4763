"""Class `cutcalls`: programs of version 2 with power cuts (cuts.py).

They have the changes and syncs of class `cuts`, the operations of class `calls`, and what only a
judge of cuts needs: files with several names or none, symbolic links, mapped files, appends,
recorded bytes.

Left out: what `cuts` leaves out, but `append`; a store behind the end of a file, which the judge
refuses. There is a `sync` between a link and the next open, and before copies and stores after a
truncation, for the same reason as in `cuts`.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Sequence

from flashbed.bench.fuzz.calls_body import CallsBody
from flashbed.bench.fuzz.cuts import CutsBody
from flashbed.bench.fuzz.draw import Draw
from flashbed.program.content import generated
from flashbed.program.operations import Operation

__all__ = ["CutCallsBody"]

_DO = {"append": 5, "data": 5, "link": 6, "symlink": 4, "through": 4, "map": 8, "tmpfile": 3}
_LINKS = ("s", "t")
_NEW = ("a", "b", "c", "n", "d/e")
_PAGE = 4096


class CutCallsBody(CutsBody, CallsBody):
    """A program of version 2 that ends in a power cut, in the making."""

    def __init__(
        self, draw: Draw, prepare: Sequence[Operation], without: Collection[str] = ()
    ) -> None:
        super().__init__(draw, prepare, without)
        self.weights |= {name: weight for name, weight in _DO.items() if name not in without}
        self.leads: dict[str, str] = {}
        """Symbolic links and where they lead."""

    def operations(self) -> list[Operation]:
        """As of `cuts`, followed by the ends of all tasks."""
        lines = super().operations()
        self._end_tasks()
        return lines

    def _do(self, name: str, *fields: str | int) -> int:
        if name == "copy" and self.shortened:
            self._do("sync")
        result = super()._do(name, *fields)
        if name == "link" and result == 0:
            self.renamed = True
        return result

    def _say(self, name: str, *fields: str | int) -> None:
        """Adds an operation that changes nothing the oracle knows."""
        self.lines.append(Operation(name, fields))

    def _step(self, choice: str) -> None:
        match choice:
            case "append":
                self._opened(self._path(), self.draw.pick(("rw,create,append", "wo,append,dsync")))
            case "data":
                self._data()
            case "link":
                self._do("link", self._path(), self.draw.pick(_NEW))
            case "symlink":
                self._symlink()
            case "through":
                self._through()
            case "map":
                self._map()
            case "tmpfile":
                self._tmpfile()
            case _:
                super()._step(choice)

    def _writable(self) -> int | None:
        slots = [slot for slot, flags in self.flags.items() if flags.startswith("rw")]
        return self.draw.pick(slots) if slots else None

    def _data(self) -> None:
        slot = self._writable()
        if slot is None:
            return
        length = self.draw.pick((1, 100, 1_000, 2_400))
        self.seed += 1
        content = generated(0, length, self.seed, 0).tobytes()
        if self.shortened:
            self._do("sync")
        self._say("data", base64.b64encode(content).decode())
        offset = self.draw.between(0, self.fs.size_of_slot(slot))
        self.lines.append(Operation("write", (slot, offset, length, 0, "data")))
        # For the oracle, bytes of the same number.
        self.fs.execute(Operation("write", (slot, offset, length, self.seed, 0)))

    def _symlink(self) -> None:
        path = self.draw.pick(_LINKS)
        if path in self.leads:
            self._say("unlink", path)
            del self.leads[path]
        else:
            self.leads[path] = self.draw.pick(_NEW)
            self._say("symlink", self.leads[path], path)

    def _through(self) -> None:
        """Opens a file by a symbolic link."""
        if not self.leads or len(self.flags) >= self.slots_max:
            return
        path = self.draw.pick(list(self.leads))
        before = len(self.lines)
        self._opened(self.leads[path], self.draw.pick(("rw", "rw,create", "ro")))
        for at in range(before, len(self.lines)):
            if self.lines[at].name == "open":
                slot, _, flags = self.lines[at].fields
                self.lines[at] = Operation("open", (slot, path, flags))

    def _map(self) -> None:
        slot = self._writable()
        size = self.fs.size_of_slot(slot) if slot is not None else 0
        if slot is None or not size:
            return
        if self.shortened:
            self._do("sync")
        offset = self.draw.between(0, (size - 1) // _PAGE) * _PAGE
        length = min(size - offset, 65_536)
        self._say("mmap", 0, slot, offset, length, "rw")
        for _ in range(self.draw.between(1, 4)):
            start = self.draw.between(0, length - 1)
            self.seed += 1
            stored = self.draw.between(1, min(length - start, 9_000))
            self._say("store", 0, start, stored, self.seed, 0)
            if self.draw.chance(40):
                start -= start % _PAGE
                self._say("msync", 0, start, length - start, self.draw.pick(("sync", "async")))
        self._say("munmap", 0)

    def _tmpfile(self) -> None:
        """Writes a file without a name, and mostly gives it one."""
        slot = next(slot for slot in range(64) if slot not in self.flags)
        self.seed += 1
        new = f"t{self.seed}"
        self._say("open", slot, ".", "rw,tmpfile")
        self._say("write", slot, 0, self.draw.pick((10, 5_000)), self.seed, 0)
        if self.draw.chance(60) and "fsync" in self.weights:
            self._say("fsync", slot)
        if self.draw.chance(75):
            self._say("link", f"SLOT:{slot}", new)
            self.renamed = True
        self._say("close", slot)
