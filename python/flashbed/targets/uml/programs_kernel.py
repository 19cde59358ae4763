"""The recipe of user-mode Linux's kernel for programs of the host (docs/guide/my-program.md).

It adds to the kernel that experiments run on. Everything that becomes part of the kernel is in
kernel/uml/programs: options (`config`), added files (`tree/`), replaced lines (`changes`). What
layouts need is kernel/uml/layouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from flashbed.base import paths
from flashbed.targets.uml.kernel_changes import CHANGES, Change
from flashbed.targets.uml.own_kernels import own_build, own_kernel_names
from flashbed.targets.uml.uml_kernel import Recipe, with_options
from flashbed.targets.unavailable import Unavailable

__all__ = ["SERIES", "program_kernels", "programs_kernel"]

SERIES = ("6.1",)
"""Debian's kernels that it can be built from."""
NAME = "uml-programs"
"""Of its folders in the cache."""
_XSTATE = "arch/x86/um/os-Linux/registers.c"
"""Where the experiments' kernel stores only the registers that a musl program needs."""


def program_kernels(cache: Path) -> tuple[str, ...]:
    """The kernels that programs can run on: Debian's, and what was added with `--exec`."""
    own = (name for name in own_kernel_names(cache) if own_build(cache, name, NAME))
    return (*SERIES, *own)


def programs_kernel(more: Sequence[str] = ()) -> Recipe:
    """The recipe of the kernel for programs, with other options. Raises `Unavailable`."""
    folder = paths.root() / "kernel" / "uml"
    ours = folder / "programs"
    lean = [change for change in CHANGES if change[0] != _XSTATE]
    try:
        options = [
            line
            for config in (folder / "config", ours / "config", folder / "layouts" / "config")
            for line in config.read_text(encoding="utf-8").splitlines()
        ]
        changes = list(_changes((ours / "changes").read_text(encoding="utf-8")))
        files = {
            str(path.relative_to(ours / "tree")): path.read_bytes()
            for path in sorted((ours / "tree").rglob("*.[ch]"))
        }
    except OSError as why:
        raise Unavailable(f"{paths.shown(ours)}: {why.strerror}") from None
    return Recipe(NAME, with_options(options, more), [*lean, *changes], files)


def _changes(text: str) -> Iterator[Change]:
    """Parses `@ FILE`, the lines before, `=`, the lines after; `# ` begins a comment."""
    for part in f"\n{text}".split("\n@ ")[1:]:
        name, _, rest = part.partition("\n")
        lines = [line for line in rest.split("\n") if not line.startswith("# ")]
        before, _, after = "\n".join(lines).partition("\n=\n")
        yield name, before.rstrip("\n"), after.rstrip("\n")
