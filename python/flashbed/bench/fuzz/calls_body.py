"""The measured operations of class `calls`: those of `any`, and the additions of version 2.

Tasks, locks, copies, syncs of parts of a file, opened folders, and bytes that compress as recorded
ones do. Left out: what the simulator does not model, and `data`, whose lines cannot be removed one
by one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from flashbed.bench.fuzz.any_body import AnyBody
from flashbed.bench.fuzz.draw import Draw
from flashbed.program.operations import Operation

__all__ = ["CALLS", "CallsBody"]

_DO = {
    "stat": 6,
    "folder": 4,
    "flock": 3,
    "sync_range": 4,
    "syncfs": 3,
    "fallocate": 2,
    "copy": 6,
    "send": 5,
    "pieces": 10,
    "task": 8,
}
CALLS = tuple(_DO)
"""Features that can be left out by name."""
_TASKS_MAX = 4
_PAGE = 4096
_LENGTHS = (1, 100, 4_096, 5_000, 40_000, 65_536, 70_000, 140_000)
_RANGE_FLAGS = ("write", "wait_before", "write,wait_after", "wait_before,write,wait_after")
_FOLDERS = (".", ".", "d", "g", "a", "nothing")


class CallsBody(AnyBody):
    """A program of version 2 in the making."""

    def __init__(
        self, draw: Draw, prepare: Sequence[Operation], without: Collection[str] = ()
    ) -> None:
        super().__init__(draw, prepare, without)
        chosen = [name for name in CALLS if name not in without and draw.chance(60)]
        self.weights |= {name: _DO[name] for name in chosen}
        self.task = 0
        self.running = [0]
        self.started = 1

    def operations(self) -> list[Operation]:
        """Operations as of `any`, followed by the ends of all tasks."""
        lines = super().operations()
        self._end_tasks()
        return lines

    def _end_tasks(self) -> None:
        if self.task:
            self._do("task", 0)
        for task in self.running[1:]:
            self._do("wait", task)

    def _step(self, choice: str) -> None:
        match choice:
            case "stat":
                self._do("stat", "." if self.draw.chance(10) else self._path())
            case "folder":
                self._folder()
            case "task":
                self._task()
            case "pieces":
                self._pieces()
            case "copy":
                self._copy()
            case "flock" | "sync_range" | "syncfs" | "fallocate" | "send":
                if self.flags:
                    self._on_any(choice, self.draw.pick(list(self.flags)))
            case _:
                super()._step(choice)

    def _on_any(self, choice: str, slot: int) -> None:
        draw, size = self.draw, self.fs.size_of_slot(slot)
        match choice:
            case "flock":
                self._do("flock", slot, draw.pick(("shared", "exclusive", "unlock")))
            case "sync_range":
                whole = draw.chance(25)
                offset = 0 if whole else draw.between(0, size)
                length = 0 if whole else draw.pick(_LENGTHS)
                self._do("sync_range", slot, offset, length, draw.pick(_RANGE_FLAGS))
            case "fallocate":
                how = draw.pick(("allocate", "keep", "punch", "zero", "collapse", "insert"))
                self._do("fallocate", slot, draw.between(0, size), draw.pick((0, 1, 4096)), how)
            case "send":
                self._do("send", slot, draw.between(0, size + 10), draw.pick(_LENGTHS))
            case _:
                self._do(choice, slot)

    def _folder(self) -> None:
        flags = self.draw.pick(("ro,directory", "ro,directory", "ro", "ro,nofollow", "rw"))
        self._opened(self.draw.pick(_FOLDERS), flags)

    def _copy(self) -> None:
        if not self.flags:
            return
        source, target = (self.draw.pick(list(self.flags)) for _ in range(2))
        size = self.fs.size_of_slot(source)
        offset = self.draw.between(0, size)
        if self.draw.chance(50):
            offset -= offset % _PAGE
        at = self.draw.between(0, self.fs.size_of_slot(target))
        self._do("copy", source, offset, target, at, self.draw.pick(_LENGTHS))

    def _pieces(self) -> None:
        if not self.flags:
            return
        slot = self.draw.pick(list(self.flags))
        offset = self.draw.between(0, self.fs.size_of_slot(slot))
        if self.draw.chance(50):
            offset -= offset % _PAGE
        length = self.draw.pick((50, 1_000, 4_096, 8_192, 20_000))
        at, fill = offset, []
        while at < offset + length:
            stop = min(offset + length, (at // _PAGE + 1) * _PAGE)
            common = self.draw.between(0, min(96, stop - at))
            own = self.draw.between(0, stop - at - common)
            text = own - own // 3 if common % 4 == 1 else 0
            zeroes = (stop - at - common - own) // 2 if common % 4 == 2 else 0
            runs = min(zeroes, own % 64)
            words = (
                f"t{text}" if text else "",
                f"z{zeroes}" if zeroes else "",
                f"s{runs}" if runs else "",
            )
            fill.append(f"{common}+{own}{''.join(words)}")
            at = stop
        self.seed += 1
        self._do("write", slot, offset, length, self.seed, ",".join(fill))

    def _spawn(self) -> None:
        """Starts a task with a new number, or with that of one that was waited for."""
        known = range(1, min(self.started + 1, _TASKS_MAX))
        free = [task for task in known if task not in self.running]
        number = self.draw.pick(free) if len(free) > 1 else free[0]
        self.started = max(self.started, number + 1)
        self._do("spawn", number)
        self.running.append(number)

    def _task(self) -> None:
        """Switches to another task, starts one, or ends one."""
        others = [task for task in self.running if task != self.task]
        if len(self.running) < _TASKS_MAX and (not others or self.draw.chance(35)):
            self._spawn()
        elif self.task == 0 and self.draw.chance(20):
            ended = self.draw.pick(others)
            self._do("wait", ended)
            self.running.remove(ended)
        elif others:
            self.task = self.draw.pick(others)
            self._do("task", self.task)
