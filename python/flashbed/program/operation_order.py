"""An operation, and the rules between the lines of a file."""

from __future__ import annotations

from dataclasses import dataclass, field

from flashbed.program.operation_fields import PAGE_BYTES, Refused

__all__ = ["Operation", "Order"]

_USES_SLOT = frozenset(
    {"close", "read", "write", "fsync", "fdatasync", "truncate", "fadvise", "erase", "readdir",
     "fallocate", "send", "sync_range", "syncfs", "flock"}
)  # fmt: skip
_OF_MAPPINGS = frozenset({"mmap", "touch", "store", "msync", "munmap"})
_OF_TASKS = frozenset({"task", "spawn", "wait"})


@dataclass(frozen=True)
class Operation:
    """One operation: its name, its fields in the format's order, and its line.

    Flags of `open` are in the grammar's order, however they were written.
    """

    name: str
    fields: tuple[str | int, ...] = ()
    line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return " ".join((self.name, *map(str, self.fields)))


@dataclass(kw_only=True)
class Order:
    """The rules between lines: open slots, mappings, database, tasks, and what came before."""

    open_slots: dict[int, None] = field(default_factory=dict)
    """Those that are open, in the order in which they were opened."""
    database: str | None = None
    mappings: dict[int, tuple[int, bool]] = field(default_factory=dict)
    """Bytes in whole pages, and whether it may be written to."""
    task: int = 0
    running: set[int] = field(default_factory=lambda: {0})
    seen: set[str] = field(default_factory=set)
    data_line: int = 0
    """Line of the last `data` that still waits for its operation."""
    _data_bytes: int = 0

    def check(self, operation: Operation) -> None:
        """Takes the next operation. Raises `Refused` if it may not stand here."""
        name = operation.name
        if name == "data":
            self._add_data(operation)
            return
        if self.data_line or operation.fields[-1:] == ("data",):
            self._take_data(operation)
        if name in _OF_MAPPINGS:
            self._check_mapping(operation)
        elif name in _OF_TASKS:
            self._check_task(name, int(operation.fields[0]))
        elif name == "link" and str(operation.fields[0]).startswith("SLOT:"):
            self._must_be_open(int(str(operation.fields[0]).removeprefix("SLOT:")))
        elif name == "copy":
            self._must_be_open(int(operation.fields[0]))
            self._must_be_open(int(operation.fields[2]))
        elif name == "open":
            if operation.fields[0] in self.open_slots:
                raise Refused("slot-open", f"slot {operation.fields[0]} is open already")
            self.open_slots[int(operation.fields[0])] = None
        elif name in _USES_SLOT:
            self._must_be_open(int(operation.fields[0]))
            if name == "close":
                del self.open_slots[int(operation.fields[0])]
        elif name.startswith("sql"):
            self._check_database(name, str(operation.fields[0]))
        elif name in ("mark", "prepared", "remount"):
            self._check_between(name)

    def _check_database(self, name: str, path: str) -> None:
        if name == "sql_open":
            if self.database is not None:
                raise Refused("slot-open", f"database {self.database} is open already")
            self.database = path
            return
        if self.database != path:
            raise Refused("slot-closed", f"database {path} is not open")
        if name == "sql_close":
            self.database = None

    def _check_between(self, name: str) -> None:
        if name != "mark" and self.open_slots:
            raise Refused("slot-open", f"slot {min(self.open_slots)} is open at {name}")
        if name != "mark" and self.database is not None:
            raise Refused("slot-open", f"database {self.database} is open at {name}")
        if name != "mark" and self.mappings:
            raise Refused("map-open", f"mapping {min(self.mappings)} is open at {name}")
        if name == "remount":
            return
        if name == "prepared" and (self.task != 0 or self.running != {0}):
            raise Refused("bad-task", "prepared comes in task 0, when no other runs")
        if name in self.seen or (name == "prepared" and "mark" in self.seen):
            raise Refused("repeated", f"{name} comes once, prepared before mark")
        self.seen.add(name)

    def _must_be_open(self, slot: int) -> None:
        if slot not in self.open_slots:
            raise Refused("slot-closed", f"slot {slot} is not open")

    def _check_mapping(self, operation: Operation) -> None:
        name, fields = operation.name, operation.fields
        mapping = int(fields[0])
        if name == "mmap":
            if mapping in self.mappings:
                raise Refused("map-open", f"mapping {mapping} is open already")
            self._must_be_open(int(fields[1]))
            pages = -(-int(fields[3]) // PAGE_BYTES)
            self.mappings[mapping] = (pages * PAGE_BYTES, fields[4] == "rw")
            return
        if mapping not in self.mappings:
            raise Refused("map-closed", f"mapping {mapping} is not open")
        if name == "munmap":
            del self.mappings[mapping]
            return
        size_bytes, is_written = self.mappings[mapping]
        if name == "store" and not is_written:
            raise Refused("bad-map", f"mapping {mapping} is not written to")
        if int(fields[1]) + int(fields[2]) > size_bytes:
            raise Refused("bad-map", f"mapping {mapping} has {size_bytes} bytes")

    def _check_task(self, name: str, task: int) -> None:
        if name == "spawn":
            if task in self.running:
                raise Refused("bad-task", f"task {task} runs already")
            self.running.add(task)
        elif task not in self.running or (name == "wait" and task == self.task):
            raise Refused("bad-task", f"task {task} does not run, or is the current one")
        elif name == "wait":
            self.running.discard(task)
        else:
            self.task = task

    def _add_data(self, operation: Operation) -> None:
        if self._data_bytes % 3:
            raise Refused("bad-data", "a line after one of other than a multiple of 3 bytes")
        text = str(operation.fields[0])
        self._data_bytes += len(text) // 4 * 3 - text.count("=")
        self.data_line = operation.line

    def _take_data(self, operation: Operation) -> None:
        data_bytes, self._data_bytes, self.data_line = self._data_bytes, 0, 0
        has_fill = operation.name in ("write", "store", "setxattr")
        if not has_fill or operation.fields[-1] != "data":
            if data_bytes:
                raise Refused("bad-data", f"{operation.name} with data above it")
        elif data_bytes != operation.fields[2]:
            raise Refused("bad-data", f"{data_bytes} bytes of data for {operation.fields[2]}")
