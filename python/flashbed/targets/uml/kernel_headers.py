"""Builds a kernel whose common headers are compiled once, by GCC's precompiled headers.

Reading headers is 60 % of what the compiler does for a file of the kernel, and without that a
kernel takes 40 % less time. GCC takes a compiled header only if the macros that it mentions are
defined as they were, and kbuild defines macros with the file's name. So the compiler gets those
under other names (`Makefile.lib` is changed for the build), and they are defined behind the
compiled header. Files that GCC cannot compile like that, such as modules, read the headers as
usual.

Invariant: the kernel does the same. Its functions, their sizes and its texts are those of a plain
build, besides numbers that the compiler gives to names (`__COUNTER__`), and 16 bytes of arch/um's
set_umid_arg(). `_ALONE` has the files for which that would not hold.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

__all__ = ["add_headers", "remove_headers", "steps_with_headers"]

_NAMES = ("KBUILD_BASENAME", "KBUILD_MODNAME", "__KBUILD_MODNAME", "KBUILD_MODFILE")
_ALONE = ("sort", "main", "printk")
"""Files that define a macro of these headers before including them, or use its name otherwise."""
_HEADERS = (
    "kconfig", "compiler_types", "module", "kernel", "sched", "mm", "fs", "slab", "interrupt",
    "uaccess", "pagemap", "seq_file",
)  # fmt: skip
_FLAGS = Path("scripts/Makefile.lib")
_SOURCE = Path("init/flashbed_headers.c")
_OBJECT = Path("init/flashbed_headers.o")
_HEADER = Path("include/flashbed_headers.h")
_COMPILED = Path("include/flashbed_headers.h.gch")
_RENAMED = Path("include/flashbed_names.h")
_KEPT = Path("scripts/.Makefile.lib.flashbed")


def add_headers(tree: Path) -> None:
    """Adds the headers to the sources, and renames the macros with a file's name."""
    shutil.copy(tree / _FLAGS, tree / _KEPT)
    flags = (tree / _FLAGS).read_text(encoding="utf-8")
    for name in _NAMES:
        flags = flags.replace(f"-D{name}=", f"-DFLASHBED_{name}=")
    (tree / _FLAGS).write_text(flags, encoding="utf-8")
    names = "".join(f"#define {name} FLASHBED_{name}\n" for name in _NAMES)
    (tree / _RENAMED).write_text(names, encoding="utf-8")
    # With FLASHBED_ALONE it is not taken: GCC compares the macros that the header mentions.
    guard = "defined(__KERNEL__) && !defined(__ASSEMBLY__) && !defined(FLASHBED_ALONE)"
    includes = "".join(f"#include <linux/{name}.h>\n" for name in _HEADERS)
    header = f"#if {guard}\n{includes}#endif\n"
    (tree / _HEADER).write_text(header, encoding="utf-8")
    # kbuild includes compiler-version.h itself, which may happen once.
    whole = f"{header}#undef __LINUX_COMPILER_VERSION_H\n"
    (tree / _SOURCE).write_text(whole, encoding="utf-8")


def steps_with_headers(make: Sequence[str], targets: Sequence[str]) -> list[list[str]]:
    """The commands that compile the headers, then the targets."""
    named = f"-include {_RENAMED.name}"
    alone = [f"CFLAGS_{name}.o=-DFLASHBED_ALONE" for name in _ALONE]
    header = "CFLAGS_flashbed_headers.o=-x c-header"
    unnamed = ["basename_flags=", "modname_flags=", "modfile_flags="]
    return [
        [*make, f"NOSTDINC_FLAGS=-nostdinc {named}", "prepare"],
        [*make, *unnamed, "cmd_check_local_export=:", header, str(_OBJECT)],
        ["mv", str(_OBJECT), str(_COMPILED)],
        [*make, *alone, f"NOSTDINC_FLAGS=-nostdinc -include {_HEADER.name} {named}", *targets],
    ]


def remove_headers(tree: Path) -> None:
    """Leaves the sources as they were."""
    (tree / _KEPT).replace(tree / _FLAGS)
    for path in (_SOURCE, _OBJECT, _HEADER, _COMPILED, _RENAMED):
        (tree / path).unlink(missing_ok=True)
