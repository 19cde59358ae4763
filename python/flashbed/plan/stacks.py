"""The stacks that `--set` and `--sysctl` choose where there is no experiment: exec, trace, fuzz.

Of the axes of experiments those hold here that describe the stack: board, kernel, file system,
chip, partition, mount, compressor, read-ahead, write-back. The others describe the program, or a
state that a new file system does not have. Several values of an axis are a comparison: a stack
each. `Case.stack` makes each of them, as for a case of an experiment.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flashbed.base.errors import InputError
from flashbed.plan.axes import READ_AHEAD_KIB_MAX
from flashbed.plan.case import AXES, Case
from flashbed.plan.narrowing import parse_settings
from flashbed.stack.changes import UNCHANGED
from flashbed.stack.file_systems import FILE_SYSTEMS, ON_FTL, RAW
from flashbed.stack.names import DEFAULT_WINDOW, USUAL_BOARD, USUAL_FS, USUAL_KERNEL
from flashbed.stack.nearest_kernel import chosen_kernel
from flashbed.stack.stack import Stack

__all__ = ["HOLDING", "USUAL", "ChosenStack", "one_stack", "stacks"]

HOLDING = tuple(name for name, about in AXES.items() if about.of_stack)
"""The axes that choose a stack."""
USUAL: Mapping[str, Any] = {
    "board": USUAL_BOARD, "kernel": USUAL_KERNEL, "fs": USUAL_FS, "read_ahead_kib": DEFAULT_WINDOW,
}  # fmt: skip
"""The values of axes that have no default of their own."""
_NO_PROGRAM: Mapping[str, Any] = {
    "experiment": "", "pattern": "", "requests": 0, "seed": 0, "file_bytes": 0, "request_bytes": 0,
}  # fmt: skip
"""The axes of a case of which only the stack is asked."""
STACKS_MAX = 1000
_OPTIONS_BYTES_MAX = 63
"""Of `options` in agent/fs/fs.h."""
_SYSCTL = re.compile(r"[a-z0-9_]+(\.[A-Za-z0-9_-]+)+")
_VALUE = re.compile(r"[\x21-\x7e]{1,200}")


@dataclass(frozen=True, kw_only=True)
class ChosenStack:
    """A stack, and `changes`, the values of axes that chose it."""

    stack: Stack
    sysctls: tuple[tuple[str, str], ...] = ()
    """Settings of the kernel besides the stack's."""
    changes: tuple[tuple[str, str], ...] = ()

    @property
    def word(self) -> str:
        """A name of its choices, for a folder or a file."""
        return "-".join(value for _, value in self.changes) or self.stack.fs


def stacks(
    settings: Sequence[str], *, sysctls: Sequence[str] = (), axes: Collection[str] = HOLDING,
    raw: bool = False, disks: bool = False,
) -> list[ChosenStack]:  # fmt: skip
    """The product of all chosen values, in the order of the options. Raises `InputError`.

    `axes` are those that hold for the caller. `raw` allows the partition itself as well,
    `disks` file systems of disks.
    """
    chosen: dict[str, Sequence[Any]] = {**parse_settings(settings)}
    for name, values in chosen.items():
        axis = name.partition(".")[0]
        if axis not in axes:
            why = "" if axis in HOLDING else ", where a program starts on a new file system"
            there_are = ", ".join(name for name in HOLDING if name in axes)
            given = f"{name}={','.join(map(str, values))}"
            raise InputError(f"--set {given}: does not hold here{why}; there are {there_are}")
    chosen |= _sysctls(sysctls)
    for name, values in chosen.items():
        if len(set(map(str, values))) != len(values):
            raise InputError(f"{name}={','.join(map(str, values))}: names a value twice")
    if math.prod(map(len, chosen.values())) > STACKS_MAX:
        raise InputError(f"--set: more than {STACKS_MAX} stacks")
    known = (*FILE_SYSTEMS, *(RAW if raw else ()), *(ON_FTL if disks else ()))
    made = (
        _chosen(dict(zip(chosen, values, strict=True)), known)
        for values in itertools.product(*chosen.values())
    )
    # A mount option of one file system leaves the others as they are: they would run twice.
    return list({each.changes: each for each in made}.values())


def one_stack(
    settings: Sequence[str], *, axes: Collection[str] = HOLDING, raw: bool = False,
    disks: bool = False,
) -> Stack:  # fmt: skip
    """The one that is chosen, as `stacks` has them. Raises `InputError` for several."""
    found = stacks(settings, axes=axes, raw=raw, disks=disks)
    if len(found) > 1:
        raise InputError(f"--set {' '.join(settings)}: {len(found)} stacks; only one holds here")
    return found[0].stack


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


def _chosen(chosen: Mapping[str, Any], known: Sequence[str]) -> ChosenStack:
    values = {**USUAL, **chosen}
    fs = values["fs"]
    if fs not in known:
        raise InputError(f"--set fs={fs}: no such file system; there are {', '.join(known)}")
    window = values["read_ahead_kib"]
    if isinstance(window, int) and not 0 <= window <= READ_AHEAD_KIB_MAX:
        raise InputError(f"--set read_ahead_kib={window}: from 0 to {READ_AHEAD_KIB_MAX}")
    of_axes = {
        axis: _table(axis, values) if AXES[axis].is_table else values[axis]
        for axis in HOLDING
        if axis in values or AXES[axis].is_table
    }
    for axis, value in of_axes.items():
        unfit = AXES[axis].unfit(fs, value)
        if unfit is not None:
            raise InputError(f"--set {axis}={value}: {unfit}")
    case = Case(**_NO_PROGRAM, **of_axes)
    stack = case.stack(case.profile(), chosen_kernel(case.kernel))
    too_long = len(stack.mounted) - len(fs) - 1 > _OPTIONS_BYTES_MAX
    if too_long and stack.only_simulated is None:
        raise InputError(f"--set mount: more than {_OPTIONS_BYTES_MAX} bytes of mount options")
    # Mount options of another file system are none of this one.
    own = {name: case.mount if name == "mount" else str(value) for name, value in chosen.items()}
    others = tuple((name, own[name]) for name in chosen if "." in name and not _is_key(name))
    return ChosenStack(stack=stack, sysctls=others, changes=tuple(own.items()))


def _is_key(name: str) -> bool:
    """Whether a name is AXIS.KEY: no axis has `vm.swappiness` or `fs.file-max`."""
    axis, _, key = name.partition(".")
    return axis in AXES and AXES[axis].is_table and key in AXES[axis].type.model_fields


def _table(axis: str, values: Mapping[str, Any]) -> Any:
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
