"""Makes Debian's tools for building modules run here, if they are of a newer release.

They need that release's C library. It is unpacked beside them, and a script in the place of each
tool starts the tool with it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from flashbed.targets.guest.debian import Apt, unpack
from flashbed.targets.unavailable import Unavailable

__all__ = ["made_runnable"]

_LIBRARY = "libc6"
_TRIED = ("fixdep", "modpost")
"""Beginnings of names: Debian's modpost starts that of the target's byte order."""
_LACKING = "GLIBC_"
_ELF = b"\x7fELF"
_MOVED = ".elf"


def made_runnable(tools: Path, apt: Apt, work: Path) -> None:
    """Changes the tools below a folder, if this machine's C library is too old for them."""
    programs = list(_programs(tools))
    if not any(_LACKING in _said(path) for path in programs if path.name.startswith(_TRIED)):
        return
    unpack(apt.download(_LIBRARY, work)[0], tools / _LIBRARY)
    loader = next((tools / _LIBRARY).rglob("ld-linux-*.so.*"), None)
    library = next((tools / _LIBRARY).rglob("libc.so.6"), None)
    if loader is None or library is None:
        raise Unavailable(f"{_LIBRARY} of a newer Debian has no loader")
    for program in programs:
        moved = program.with_name(program.name + _MOVED)
        program.rename(moved)
        up = "/".join(".." for _ in program.relative_to(tools).parts[:-1])
        here = f"${{0%/*}}/{up}"
        program.write_text(
            f'#!/bin/sh\nexec "{here}/{loader.relative_to(tools)}"'
            f' --library-path "{here}/{library.parent.relative_to(tools)}"'
            f' --argv0 "$0" "${{0%/*}}/{moved.name}" "$@"\n'
        )
        program.chmod(0o755)


def _programs(tools: Path) -> Iterator[Path]:
    for path in sorted(tools.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o100:
            with path.open("rb") as file:
                if file.read(len(_ELF)) == _ELF:
                    yield path


def _said(program: Path) -> str:
    done = subprocess.run(
        [program], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    return done.stderr
