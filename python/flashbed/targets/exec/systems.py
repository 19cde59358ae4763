"""The stacks that `exec` runs a program on: what `--set` and `--sysctl` choose.

Of the axes of experiments those hold here that describe the stack: board, kernel, file system,
chip, partition, mount, compressor, read-ahead. The others describe the program, or a state that a
fresh file system does not have. Several values of an axis are a comparison: each is run.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flashbed.base.errors import InputError
from flashbed.plan.axes import READ_AHEAD_KIB_MAX
from flashbed.plan.case import AXES, fitting_mount
from flashbed.plan.narrowing import parse_settings
from flashbed.stack.changes import OF_BOARD, UNCHANGED, changes_of
from flashbed.stack.file_systems import FILE_SYSTEMS, RAW
from flashbed.stack.mounts import PLAIN, options_for
from flashbed.stack.names import SHIPPED
from flashbed.stack.profiles import USUAL_COMPRESSOR, load_board, load_kernel
from flashbed.stack.stack import Stack

__all__ = ["HOLDING", "System", "systems_of"]

_VM = "vm"
HOLDING = ("board", "kernel", "fs", *OF_BOARD, _VM, "mount", "compressor", "read_ahead_kib")
SYSTEMS_MAX = 1000
_OPTIONS_BYTES_MAX = 31
"""Of `options` in agent/fs/fs.h."""
_SYSCTL = re.compile(r"[a-z0-9_]+(\.[A-Za-z0-9_-]+)+")
_VALUE = re.compile(r"[\x21-\x7e]{1,200}")


@dataclass(frozen=True, kw_only=True)
class System:
    """A stack that was chosen; `changes` are the values of axes that chose it."""

    stack: Stack
    sysctls: tuple[tuple[str, str], ...] = ()
    """Settings of the kernel besides the stack's."""
    changes: tuple[tuple[str, str], ...] = ()

    @property
    def word(self) -> str:
        """A name of its choices, for a folder or a file."""
        return "-".join(value for _, value in self.changes) or self.stack.fs


def systems_of(
    fs: str, board: str, *, kernel: str, settings: Sequence[str], sysctls: Sequence[str],
    raw: bool = False,
) -> list[System]:  # fmt: skip
    """The product of all chosen values, in the order of the options. Raises `InputError`.

    `raw` allows MTD's device as well, which has operations but no programs.
    """
    chosen: dict[str, Sequence[Any]] = {**parse_settings(settings)}
    for name in chosen:
        axis = name.partition(".")[0]
        if axis not in HOLDING:
            raise InputError(
                f"--set {axis}: does not hold here, where a program starts on a new file system;"
                f" there are {', '.join(HOLDING)}"
            )
    chosen |= _sysctls(sysctls)
    for name, values in chosen.items():
        if len(set(map(str, values))) != len(values):
            raise InputError(f"{name}={','.join(map(str, values))}: names a value twice")
    fixed = {"fs": fs, "board": board, "kernel": kernel}
    if math.prod(map(len, chosen.values())) > SYSTEMS_MAX:
        raise InputError(f"--set: more than {SYSTEMS_MAX} systems")
    made = (
        _system(fixed | dict(zip(chosen, values, strict=True)), tuple(chosen), raw=raw)
        for values in itertools.product(*chosen.values())
    )
    # A mount option of one file system leaves the others as they are: they would run twice.
    return list({system.changes: system for system in made}.values())


def _sysctls(texts: Sequence[str]) -> dict[str, Sequence[str]]:
    """`NAME=VALUE[,VALUE]` of each `--sysctl`. Raises `InputError`."""
    found: dict[str, Sequence[str]] = {}
    for text in texts:
        name, equals, words = text.partition("=")
        values = words.split(",")
        if not equals or not _SYSCTL.fullmatch(name) or not all(map(_VALUE.fullmatch, values)):
            raise InputError(
                f"--sysctl {text}: NAME=VALUE[,VALUE], such as vm.dirty_expire_centisecs=500"
            )
        found[name] = values
    return found


def _system(values: Mapping[str, Any], chosen: Sequence[str], *, raw: bool) -> System:
    fs, known = values["fs"], (*FILE_SYSTEMS, *(RAW if raw else ()))
    if fs not in known:
        raise InputError(f"fs {fs}: must be {' or '.join(known)}")
    compressor = values.get("compressor", USUAL_COMPRESSOR)
    unfit = AXES["compressor"].unfit(fs, compressor)
    if unfit is not None:
        raise InputError(f"--set compressor={compressor}: {unfit}")
    values = {**values, "mount": fitting_mount(fs, values.get("mount", PLAIN))}
    window = values.get("read_ahead_kib", SHIPPED)
    if isinstance(window, int) and not 0 <= window <= READ_AHEAD_KIB_MAX:
        raise InputError(f"--set read_ahead_kib={window}: from 0 to {READ_AHEAD_KIB_MAX}")
    stack = Stack(
        board=load_board(values["board"]).changed(changes_of(_board_axes(values))),
        kernel=load_kernel(values["kernel"]),
        fs=fs,
        mount_options=options_for(values["mount"]).replace("+", ","),
        compressor=compressor,
        read_ahead_kib=window if isinstance(window, int) else None,
        vm=_changed(_VM, values),
    )
    if len(stack.mounted) - len(fs) - 1 > _OPTIONS_BYTES_MAX:
        raise InputError(f"--set mount: more than {_OPTIONS_BYTES_MAX} bytes of mount options")
    others = tuple((name, values[name]) for name in chosen if "." in name and not _is_key(name))
    changes = tuple((name, str(values[name])) for name in chosen)
    return System(stack=stack, sysctls=others, changes=changes)


def _is_key(name: str) -> bool:
    """Whether a name is AXIS.KEY: no axis has `vm.swappiness` or `fs.file-max`."""
    axis, _, key = name.partition(".")
    return axis in AXES and AXES[axis].is_table and key in AXES[axis].type.model_fields


def _board_axes(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the axes that change a board."""
    tables = [axis for axis in OF_BOARD if AXES[axis].is_table]
    return {**{axis: _changed(axis, values) for axis in tables}, "corner": values.get("corner")}


def _changed(axis: str, values: Mapping[str, Any]) -> Any:
    """The value of an axis of tables, from its word and from single keys. Raises `InputError`."""
    kind = AXES[axis].type
    keys = {name.partition(".")[2]: value for name, value in values.items()
            if name.startswith(f"{axis}.") and _is_key(name)}  # fmt: skip
    own = values.get(axis) or UNCHANGED
    words = [
        *([own] if own != UNCHANGED else []),
        *(f"{key}={value}" for key, value in keys.items()),
    ]
    return kind.parse("+".join(words) or UNCHANGED)
