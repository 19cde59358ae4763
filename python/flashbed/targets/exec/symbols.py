"""Writes a symbol file for a debugger: the functions of the emulated board's kernel and modules.

Debian's kernel has no symbols, and its System.map is empty. A board that boots in the same way has
everything at the same addresses, so one boot reads them from /proc/kallsyms. The file is an ELF
object with one section without bytes and a symbol for each function; it has no lines or types.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

__all__ = ["Function", "elf", "functions"]

Function = tuple[int, str]
"""A function's address and name."""
_ARM = 40
_EXEC = 2
_SYMBOL = struct.Struct("<IIIBBH")
_SECTION = struct.Struct("<10I")
_HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
_NOBITS, _STRTAB, _SYMTAB = 8, 3, 2
_ALLOC_EXEC = 6
_GLOBAL_FUNCTION = 0x12


def functions(text: str) -> list[Function]:
    """The functions in lines `symbol ADDRESS TYPE NAME`, sorted by address."""
    found = set()
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 4 and words[0] == "symbol" and words[2] in "tT" and words[3][0] != "$":
            found.add((int(words[1], 16), words[3]))
    return sorted(found)


def elf(of: Sequence[Function]) -> bytes:
    """An ELF file for 32-bit ARM."""
    names = bytearray(b"\0")
    symbols = bytearray(_SYMBOL.size)
    for number, (address, name) in enumerate(of):
        following = of[number + 1][0] if number + 1 < len(of) else address + 4
        symbols += _SYMBOL.pack(
            len(names), address, min(following - address, 0xFFFF), _GLOBAL_FUNCTION, 0, 1
        )
        names += name.encode("ascii", "replace") + b"\0"
    section_names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    first = of[0][0] if of else 0
    size = of[-1][0] + 4 - first if of else 0
    at = _HEADER.size
    parts = [bytes(symbols), bytes(names), section_names]
    places = [at, at + len(parts[0]), at + len(parts[0]) + len(parts[1])]
    sections = [
        (0,) * 10,
        (1, _NOBITS, _ALLOC_EXEC, first, at, size, 0, 0, 4, 0),
        (7, _SYMTAB, 0, 0, places[0], len(parts[0]), 3, 1, 4, _SYMBOL.size),
        (15, _STRTAB, 0, 0, places[1], len(parts[1]), 0, 0, 1, 0),
        (23, _STRTAB, 0, 0, places[2], len(parts[2]), 0, 0, 1, 0),
    ]
    end = places[2] + len(section_names)
    padding = -end % 4
    header = _HEADER.pack(
        b"\x7fELF\x01\x01\x01" + bytes(9), _EXEC, _ARM, 1, 0, 0, end + padding, 0x5000000,
        _HEADER.size, 0, 0, _SECTION.size, len(sections), 4,
    )  # fmt: skip
    table = b"".join(_SECTION.pack(*section) for section in sections)
    return b"".join([header, *parts, bytes(padding), table])
