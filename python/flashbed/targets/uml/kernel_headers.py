"""Compiles the headers that nearly every file of a kernel includes once: GCC's precompiled headers.

GCC spends 60 % of a kernel's build on reading headers, and this saves 40 % of the build. GCC uses a
compiled header only if each macro that the header mentions is defined as before. kbuild defines
some macros by the name of the compiled file. While the kernel is built, `Makefile.lib` therefore
gives those macros other names, and a small header restores the names behind the compiled one.
GCC reads the headers as usual for files that need other flags, such as modules.

Invariant: the kernel does the same. Its functions, their sizes and its texts are those of a plain
build, besides numbers that the compiler gives to names (`__COUNTER__`), and 16 bytes of arch/um's
set_umid_arg(). `_ALONE` has the files for which that would not hold.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["prepared_for_headers", "steps_with_headers"]

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


@contextmanager
def prepared_for_headers(tree: Path) -> Iterator[None]:
    """Changes the sources for `steps_with_headers`, and restores them at the end."""
    _add(tree)
    try:
        yield
    finally:
        (tree / _KEPT).replace(tree / _FLAGS)
        for path in (_SOURCE, _OBJECT, _HEADER, _COMPILED, _RENAMED):
            (tree / path).unlink(missing_ok=True)


def _add(tree: Path) -> None:
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
