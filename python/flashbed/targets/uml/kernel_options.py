"""Options of the kernel that only some stacks need: file systems of disks, layouts, protection.

Each part is a file below kernel/uml. A kernel with other options is another one, so that the usual
kernel stays as it is, whatever else there is to run on. All parts are in one kernel, so that there
is one more to build and not one for each of them; fastmap changes what UBI does, and is apart.
"""

from __future__ import annotations

from flashbed.base import paths
from flashbed.stack.file_systems import ON_FTL
from flashbed.stack.stack import Stack

__all__ = ["FASTMAP", "case_options", "kernels_of_stacks", "options_of_stacks", "program_options"]

FASTMAP = "CONFIG_MTD_UBI_FASTMAP=y"
_OF_PROGRAMS = ("disks", "protection", "attributes")
_OF_CASES = (*_OF_PROGRAMS, "layouts")


def case_options(stack: Stack) -> list[str]:
    """Of cases on a stack, beside those of all cases."""
    some = stack.layout is not None or _beyond_layouts(stack)
    return [*(options_of_stacks() if some else ()), *_fastmap(stack)]


def program_options(stack: Stack) -> list[str]:
    """Of programs on a stack, beside those of all programs, which has what layouts need."""
    some = _beyond_layouts(stack)
    return [*(options_of_stacks(programs=True) if some else ()), *_fastmap(stack)]


def options_of_stacks(*, programs: bool = False) -> list[str]:
    """What the kernel of cases, or of programs, has on top for the stacks that need more."""
    folder = paths.root() / "kernel" / "uml"
    return [
        line
        for part in (_OF_PROGRAMS if programs else _OF_CASES)
        for line in (folder / part / "config").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]


def kernels_of_stacks(*, programs: bool = False) -> list[list[str]]:
    """Every kernel beside the usual one that a stack of cases, or of programs, may need."""
    options = options_of_stacks(programs=programs)
    return [options, [FASTMAP] if programs else [*options, FASTMAP]]


def _beyond_layouts(stack: Stack) -> bool:
    layout = stack.layout
    of_layout = layout is not None and (bool(layout.verity) or layout.on == "mtd")
    return stack.fs in ON_FTL or bool(stack.protection) or of_layout


def _fastmap(stack: Stack) -> list[str]:
    return [FASTMAP] if stack.layout is not None and stack.layout.fastmap else []
