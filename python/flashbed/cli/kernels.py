"""The commands on kernels of user-mode Linux: list, show, add, remove."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.base.errors import InputError, RunError
from flashbed.base.human import aligned
from flashbed.base.paths import cache_folder, own_kernels_folder, shown
from flashbed.cli.command_group import add_group
from flashbed.cli.options import Format
from flashbed.cli.progress import bar
from flashbed.stack.names import escaped

if TYPE_CHECKING:
    from flashbed.targets.uml.own_kernels import OwnKernel

__all__ = ["register"]

NAMES_SHOWN = 4
OwnName = Annotated[str, typer.Argument(metavar="NAME", help="A kernel that you added.")]


def register(app: typer.Typer) -> None:
    """Adds the commands to the program."""
    add_group(
        app,
        "kernel",
        about="Lists, builds and removes kernels.",
        commands={
            "list": (list_, ""),
            "show": (show, "mine"),
            "add": (add, "mine --source linux-6.6.tar.xz --config board.config"),
            "remove": (remove, "mine"),
        },
    )


def list_(output: Format = "text") -> None:
    """Lists the kernels of user-mode Linux: Debian's, which are built when needed, and yours."""
    rows = list(_rows())
    if output == "json":
        keys = ("kernel", "linux", "runs", "from")
        print(json.dumps([dict(zip(keys, row, strict=True)) for row in rows], indent=1))
        return
    for line in aligned([("kernel", "Linux", "runs", "from"), *rows]):
        print(escaped(line))


def _rows() -> Iterator[tuple[str, str, str, str]]:
    from flashbed.targets.uml.own_kernels import own_kernel, own_kernel_names
    from flashbed.targets.uml.programs_kernel import SERIES, programs_kernel
    from flashbed.targets.uml.uml_kernel import KERNELS, VARIANTS, cached_kernel

    cache = cache_folder()
    for series in (*KERNELS, *VARIANTS):
        kinds = {"experiments": cached_kernel(cache, series)}
        if series in SERIES:
            kinds["exec"] = cached_kernel(cache, series, programs_kernel())
        built = [kernel for kernel in kinds.values() if kernel is not None]
        runs = ", ".join(kinds)
        yield series, built[0].version if built else "not built yet", runs, "Debian"
    for name in own_kernel_names(cache):
        known = own_kernel(cache, name)
        if known is None:
            yield name, "-", "-", f"{shown(own_kernels_folder() / name)}: not readable"
        else:
            runs = ", ".join(_RUNS[kind] for kind in known.builds)
            yield name, known.release, runs, shown(Path(known.source))


_RUNS = {"uml": "experiments", "uml-programs": "exec"}


def show(name: OwnName, output: Format = "text") -> None:
    """Shows what is known of a kernel of yours: how it was built, and where it differs."""
    kernel = _own(name)
    if output == "json":
        print(json.dumps(asdict(kernel), indent=1))
    else:
        _show(kernel)


def _own(name: str) -> OwnKernel:
    from flashbed.targets.uml.own_kernels import own_kernel, own_kernel_names

    kernel = own_kernel(cache_folder(), name)
    if kernel is None:
        names = ", ".join(own_kernel_names(cache_folder())) or "none"
        raise InputError(f"{name}: no kernel that you added; there are {names}")
    return kernel


def _show(kernel: OwnKernel) -> None:
    from flashbed.stack.imported.kernel_tree import mirrored_of
    from flashbed.targets.uml.kernel_added import DIFFERENCES

    folder = own_kernels_folder() / kernel.name
    runs = ", ".join(_RUNS[kind] for kind in kernel.builds)
    print(escaped(f"{kernel.name}  Linux {kernel.release} from {shown(Path(kernel.source))}"))
    print(f"runs {runs}; profile {shown(folder / f'{kernel.name}.toml')}, begun as {kernel.like}")
    for kind, lines in kernel.not_applied.items():
        if kind in kernel.builds:
            for line in lines:
                print(escaped(f"does not apply: {line}"))
        elif lines:
            files = len({line.partition(":")[0] for line in lines})
            print(
                f"not for `flashbed exec`: {len(lines)} changes in {files} files do not apply,"
                f" such as {escaped(lines[0])}"
            )
        else:
            print("not for `flashbed exec`; add it with --exec")
    if kernel.lost_options:
        print(escaped(f"this kernel does not have {', '.join(kernel.lost_options)}"))
    count = sum(map(len, kernel.differing.values()))
    print(
        f"{count} functions and constants of {len(kernel.differing)} modelled files are not those"
        f" of Linux {kernel.like}: {shown(folder / DIFFERENCES)}"
    )
    for file, names in mirrored_of(kernel.differing).items():
        more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
        print(escaped(f"  the simulator mirrors {file}: {', '.join(names[:NAMES_SHOWN])}{more}"))


def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, for --kernel.")],
    source: Annotated[
        Path, typer.Option("--source", metavar="DIR|TARBALL", help="The sources, 5.10 or later.")
    ],
    *,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="Your kernel's .config: how its storage is built."
        ),
    ] = None,
    programs: Annotated[
        bool, typer.Option("--exec", help="Build the kernel of `flashbed exec` too.")
    ] = False,
) -> None:
    """Builds user-mode Linux from your tree and begins its profile, for `--kernel NAME`.

    Says by file what of flashbed's changes does not apply, and which functions of the storage stack
    are not those of the kernel that it is most like. `flashbed validate` measures how far the
    profile agrees. Takes minutes; your tree is copied, not changed.
    """
    from flashbed.targets.uml.kernel_added import add_kernel
    from flashbed.targets.unavailable import Unavailable

    with bar(f"adding {name}") as progress:
        try:
            kernel = add_kernel(
                cache_folder(), name, source, config=config, programs=programs,
                say=lambda what: progress(what, 0, 1),
            )  # fmt: skip
        except Unavailable as why:
            raise RunError(str(why)) from None
    _show(kernel)
    print(f"next: flashbed validate emulated --on uml --kernel {name} --suite writes")


def remove(name: OwnName) -> None:
    """Removes a kernel that you added, its profile too."""
    from flashbed.targets.uml.own_kernels import remove_kernel

    _own(name)
    remove_kernel(cache_folder(), name)
