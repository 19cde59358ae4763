"""A case: one point of an experiment, immutable, with a name that describes it.

Its fields are the axes, and everything known about an axis is declared here (plan/axes.py). The
target is not part of a case: the same case runs on the simulator and on a real kernel, and the two
results are compared by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any, Literal

from flashbed.plan.axes import (
    REQUIRED,
    Axis,
    Count,
    DefaultWindow,
    FileBytes,
    ReadAhead,
    RequestBytes,
    Requests,
    Rounds,
    Seconds,
    WindowKib,
    axis,
    duration,
    read_window,
    takes_compressor,
)
from flashbed.plan.database import PAPERS, Database
from flashbed.stack.changes import (
    AS_BOOTED,
    AS_DRIVEN,
    AS_PROFILED,
    KERNELS,
    NO_LAYOUT,
    OF_BOARD,
    REMEMBERED,
    TYPICAL,
    UNPARTED,
    Change,
    ChipChange,
    ControllerChange,
    LayoutChange,
    MemoryChange,
    PartitionChange,
    PolicyChange,
    VmChange,
    changes_of,
)
from flashbed.stack.chips import CORNERS, Corner
from flashbed.stack.conditions import NEW, NONE, Faults, State
from flashbed.stack.file_systems import FileSystem
from flashbed.stack.layouts import changed_layout, unfit_layout
from flashbed.stack.mounts import PLAIN, Mount, options_for, read_mount
from flashbed.stack.names import DEFAULT_WINDOW, FORCED, Name, Pattern
from flashbed.stack.policies import policies_of
from flashbed.stack.profiles import USUAL_COMPRESSOR, Board, Kernel, load_board
from flashbed.stack.stack import Stack

__all__ = [
    "AXES", "AXIS_COLUMNS", "CONDITIONS", "NAME_WORDS", "NO_ADVICE", "Case", "fitting_mount",
]  # fmt: skip

NO_ADVICE = "none"
_WORDS_KEPT = 1 << 10
Advice = Literal["none", "normal", "random", "sequential"]
Compressor = Literal["default", "none", "lzo", "zlib", "zstd"]


def _one_of(*words: str) -> dict[str, object]:
    return {"read": {word: word for word in words}.__getitem__, "takes": ", ".join(words)}


_NUMBER: dict[str, object] = {
    "read": int, "takes": "whole numbers", "adds": "value", "column": int,
}  # fmt: skip


_OF_STACK: dict[str, object] = {"chosen": True, "of_stack": True}


def _changed(name: str, usual: Change) -> dict[str, object]:
    return {
        "assumed": True, "part": lambda value: f"{name}.{value}", "usual": usual, **_OF_STACK,
    }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Case:
    """One point of an experiment. Grids are multiplied in this order, the last field fastest."""

    experiment: str
    board: str = axis("a profile of `boards/`", Name, adds="profile", **_OF_STACK)
    kernel: str = axis("a profile of `boards/kernels/`", Name, adds="profile", **_OF_STACK)
    fs: str = axis("file system, or the partition itself", FileSystem, **_OF_STACK)
    pattern: str = axis("a word that the workload knows", Pattern)
    requests: int = axis("number of requests", Requests, **_NUMBER)
    read_ahead_kib: ReadAhead = axis(
        "read-ahead window; 0 is off, `default` the one the kernel gives the mount",
        WindowKib | DefaultWindow,
        read=read_window, takes="whole numbers and default", adds="value", column=int,
        **_OF_STACK,
    )  # fmt: skip
    seed: int = axis("seed of the workload's random numbers", Count, **_NUMBER)
    pause_ns: int = axis(
        "pause between two requests", Count,
        **_NUMBER, part=lambda value: f"pause{duration(value)}", usual=0,
    )  # fmt: skip
    advice: str = axis(
        "advice that `posix_fadvise` gives on an opened file", Advice,
        **_one_of("none", "normal", "random", "sequential"), adds="value",
        part=lambda value: f"{value}advice", usual=NO_ADVICE, chosen=True,
    )  # fmt: skip
    mount: str = axis(
        "a file system and its mount options: `ubifs:bulk_read`", Mount,
        read=read_mount, takes="default, and FS:OPTION[+OPTION] such as ubifs:bulk_read",
        adds="value", part=options_for, assumed=True, usual=PLAIN, **_OF_STACK,
    )  # fmt: skip
    compressor: str = axis(
        "the mount option `compr=`", Compressor,
        **_one_of("default", "none", "lzo", "zlib", "zstd"), adds="value",
        part=lambda value: f"{value}compr", assumed=True, unfit=takes_compressor,
        usual=USUAL_COMPRESSOR, **_OF_STACK,
    )  # fmt: skip
    state: State = axis("initial state of the file system", State, assumed=True, usual=NEW)
    faults: Faults = axis("failures of the chip", Faults, assumed=True, usual=NONE)
    database: Database = axis(
        "settings of SQLite", Database, assumed=True, usual=PAPERS, chosen=True
    )
    chip: ChipChange = axis(
        "a chip in place of the board's, and values that replace those in `[chip]`", ChipChange,
        **_changed("chip", AS_PROFILED),
    )  # fmt: skip
    corner: str = axis(
        "which times of a chip of the catalogue: typical ones, or the largest", Corner,
        **_one_of(*CORNERS), adds="value", assumed=True, usual=TYPICAL, **_OF_STACK,
    )  # fmt: skip
    controller: ControllerChange = axis(
        "what drives a chip of the catalogue", ControllerChange,
        **_changed("controller", AS_DRIVEN),
    )  # fmt: skip
    partition: PartitionChange = axis(
        "values that replace those in the board's `[partition]`", PartitionChange,
        **_changed("partition", UNPARTED),
    )  # fmt: skip
    memory: MemoryChange = axis(
        "free memory in place of the board's, in the simulator", MemoryChange,
        **_changed("memory", REMEMBERED),
    )  # fmt: skip
    vm: VmChange = axis(
        "settings of the kernel's write-back", VmChange, **_changed("vm", AS_BOOTED)
    )
    layout: LayoutChange = axis(
        "what else lies on the flash: a layout of `boards/layouts/`, how its images are made",
        LayoutChange, **_changed("layout", NO_LAYOUT), unfit=unfit_layout,
    )  # fmt: skip
    policy: PolicyChange = axis(
        "what decides in the kernel's place, in the simulator: read-ahead, reclaim, victims",
        PolicyChange, **_changed("policy", KERNELS),
    )  # fmt: skip
    sync_every_s: int = axis(
        "seconds between syncs of a program that has more of them; 0 leaves all", Seconds,
        **_NUMBER, part=lambda value: f"sync{value}s", assumed=True, usual=0, chosen=True,
    )  # fmt: skip
    rounds: int = axis(
        "how often the program runs, one run after the other", Rounds,
        read=int, takes="whole numbers", adds="value",
        part=lambda value: f"rounds{value}", assumed=True, usual=1,
    )  # fmt: skip
    file_bytes: int = axis(
        "size of the file, or of the largest", FileBytes, **_NUMBER, of_workload=True
    )
    request_bytes: int = axis("bytes of each request", RequestBytes, **_NUMBER, of_workload=True)

    def __post_init__(self) -> None:
        """Drops mount options of another file system."""
        if self.mount is not PLAIN:
            object.__setattr__(self, "mount", fitting_mount(self.fs, self.mount))

    @property
    def forced_kib(self) -> int | None:
        """The window that the case sets; None keeps the kernel's default."""
        return None if self.read_ahead_kib == DEFAULT_WINDOW else self.read_ahead_kib

    @property
    def window(self) -> str:
        """Whether the case or the kernel chose the read-ahead window."""
        return DEFAULT_WINDOW if self.forced_kib is None else FORCED

    @property
    def mount_options(self) -> str:
        """The options in mount(2)'s form."""
        return options_for(self.mount).replace("+", ",")

    def profile(self) -> Board:
        """The case's board, with the case's changes. Raises `ProfileError`."""
        return load_board(self.board).changed(
            changes_of({name: getattr(self, name) for name in OF_BOARD})
        )

    def stack(self, board: Board, kernel: Kernel) -> Stack:
        """The stack below the case's program; `board` is `profile()`, `kernel` that of its name."""
        return Stack(
            board=board,
            kernel=kernel,
            fs=self.fs,
            mount_options=self.mount_options,
            compressor=self.compressor,
            read_ahead_kib=self.forced_kib,
            vm=self.vm,
            layout=changed_layout(self.layout),
            policies=policies_of(self.policy.values),
            erases=self.state.erases(board.partition.blocks),
            faults=self.faults,
        )

    @cached_property
    def case_id(self) -> str:
        """The case's name, the same on every machine; running it alone repeats this case."""
        return "".join(word(getattr(self, axis)) for axis, word in NAME_WORDS.items())

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Case:
        """Makes a case from all its fields, in half the time: sweeps have 10^6 cases.

        Setting attributes keeps the dictionary's keys shared between cases; `update` would not.
        """
        case = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(case, name, value)
        case.__post_init__()
        return case


def fitting_mount(fs: str, mount: str) -> str:
    """The mount of a file system, without options of another one."""
    return mount if mount.startswith(f"{fs}:") else PLAIN


def _optional_word(about: Axis) -> Callable[[Any], str]:
    """What an axis with a default adds to a name: nothing for the default."""

    @lru_cache(maxsize=_WORDS_KEPT)
    def formatted(value: Any) -> str:
        return "" if str(value) == str(about.usual) else f"-{about.part(value)}"

    # Most values are the default object itself; looking them up would take longer.
    return lambda value: "" if value is about.usual else formatted(value)


AXES: Mapping[str, Axis] = {
    field.name: field.metadata["axis"] for field in fields(Case) if field.metadata
}
"""Every axis by name, in the order of `Case`."""
NAME_WORDS: Mapping[str, Callable[[Any], str]] = {
    "fs": "{}".format,
    "board": "-{}".format,
    "kernel": "-{}".format,
    "pattern": "-{}".format,
    "requests": "-{}x".format,
    "request_bytes": "{}".format,
    "file_bytes": lambda value: f"-of-{value}" if value else "",
    "read_ahead_kib": "-ra{}".format,
    "seed": "-s{}".format,
    **{
        name: _optional_word(about)
        for name, about in AXES.items()
        if about.usual is not REQUIRED and not about.of_workload
    },
}
"""Axis -> what its value adds to a case's name, in the order of the name."""
CONDITIONS = tuple(name for name, about in AXES.items() if about.assumed)
"""Axes whose default applies where a figure or claim names no value."""


def _columns() -> dict[str, type[int] | type[str]]:
    columns: dict[str, type[int] | type[str]] = {}
    for name, about in AXES.items():
        columns[name] = about.column
        if name == "read_ahead_kib":
            columns["window"] = str
    return columns


AXIS_COLUMNS = _columns()
"""The columns of `cases` that place a case on the axes."""
