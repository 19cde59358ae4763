"""The command `prepare`: fetches and builds what targets need, before the first run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from flashbed.base.errors import RunError
from flashbed.base.paths import cache_folder
from flashbed.cli.progress import bar, say

__all__ = ["register"]

EXEC = "exec"
"""The kernel of `flashbed exec`, which is no target of experiments."""

On = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="TARGET,...",
        help="uml, emulator, uml-6.12 or emulator-6.12 (that kernel), or exec: `flashbed exec`'s.",
    ),
]

Stacks = Annotated[
    bool,
    typer.Option(
        "--stacks",
        help="Also what only some stacks need on uml and exec: ext4, F2FS, layouts, encryption.",
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("prepare", epilog="Example: `flashbed prepare --on uml`")(prepare)


def prepare(on: On = "uml,emulator", stacks: Stacks = False) -> None:
    """Fetches and builds the kernels and drivers of targets, so that runs start at once.

    A target otherwise does this when it is first used. The first time takes minutes and a network;
    later calls take nothing. The result is kept in build/cache (or in `FLASHBED_CACHE`).
    """
    from flashbed.targets.unavailable import Unavailable

    failed = 0
    for name in on.split(","):
        with bar(f"preparing {name}") as progress:
            try:
                _prepare(name, lambda what: progress(what, 0, 1), stacks=stacks)
            except Unavailable as why:
                say(f"flashbed: {name}: {why}")
                failed += 1
    if failed:
        raise RunError(f"{failed} of the targets cannot run here")


def _prepare(name: str, say: Callable[[str], None], *, stacks: bool) -> None:
    """Prepares a target, one of its kernels (`uml-6.12`), or the kernel and tools of `exec`."""
    from flashbed.targets import TARGETS, load_target
    from flashbed.targets.emulator.emulator_target import EmulatorTarget
    from flashbed.targets.guest.image_tools import volume_tools
    from flashbed.targets.uml.kernel_options import kernels_of_stacks
    from flashbed.targets.uml.programs_kernel import SERIES
    from flashbed.targets.uml.uml_kernel import KERNELS
    from flashbed.targets.uml.uml_program import prepare as prepare_exec
    from flashbed.targets.uml.uml_target import UmlTarget

    target, _, kernel = name.partition("-")
    if name == EXEC:
        prepare_exec(SERIES[0], say)
        for more in kernels_of_stacks(programs=True) if stacks else ():
            prepare_exec(SERIES[0], say, more)
        volume_tools(cache_folder(), say)
    elif target == UmlTarget.name:
        UmlTarget().prepare(say, kernel or KERNELS[0])
        for more in kernels_of_stacks() if stacks else ():
            UmlTarget().prepare(say, kernel or KERNELS[0], more)
    elif name in TARGETS or not kernel:
        load_target(name).prepare(say)
    elif target == EmulatorTarget.name:
        EmulatorTarget().prepare(say, kernel)
    else:
        load_target(name).prepare(say)
