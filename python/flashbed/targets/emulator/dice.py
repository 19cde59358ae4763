"""Where the emulated board's kernel throws JFFS2's dice, so that a probe can see them.

jffs2_find_gc_block (fs/jffs2/gc.c) takes `jiffies % 128`. The compiler puts it into
jffs2_garbage_collect_pass, which looks at `jiffies` nowhere else: the module's relocations (ELF for
the ARM architecture, IHI 0044, R_ARM_MOVW_ABS_NC) say which instruction begins to make the
variable's address. The load itself follows, and what it has put into its register is what is
thrown: the probe is on the instruction behind it.

Left out: the throws of jffs2_mark_node_obsolete and jffs2_refile_wbuf_blocks, one in 127 and 128 of
which sets a block aside; machines other than 32-bit ARM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import Section, SymbolTableSection

from flashbed.errors import RunError
from flashbed.targets.base import Batch, Program
from flashbed.targets.guest.initramfs import modules_of
from flashbed.tracing.rows import read_rows

__all__ = ["asked", "recorded", "tracers"]

_NAME = "jffs2_dice"
"""Of the tracer's rows."""
_SIDES = 128

_FUNCTION = "jffs2_garbage_collect_pass"
_VARIABLE = "jiffies"
_R_ARM_MOVW_ABS_NC = 43
_NEAR = 16
"""Instructions from the address to the load; a compiler puts others between them."""


@cache
def tracers(module: Path) -> str:
    """The words of a job's `trace` line that record every throw (docs/tracing.md).

    `module` is the kernel's jffs2.ko. Raises `RunError` where it throws no dice that can be seen.
    """
    try:
        with module.open("rb") as file:
            offset, register = _load(ELFFile(file))
    except (ELFError, OSError) as why:
        raise RunError(f"{module.name}: cannot be read: {why}") from None
    except LookupError as why:
        raise RunError(f"{module.name}: {_FUNCTION} loads no {_VARIABLE}: {why}") from None
    return f"value={_NAME},jffs2:{_FUNCTION}+{offset + 4:#x},%r{register}"


def asked(program: Program, modules: Path) -> Program:
    """The program with its throws recorded, if it asks for that and its file system throws any.

    `modules` is the folder of the kernel's. A probe costs some 2 us a throw, as others do.
    """
    if not program.record_dice or program.fs != "jffs2":
        return program
    module = modules_of(modules).get("jffs2", modules / "jffs2.ko")
    return replace(program, tracers=f"{program.tracers} {tracers(module)}".lstrip())


def recorded(batch: Batch, programs: Sequence[Program]) -> Batch:
    """The batch with the throws of those programs that asked for them, unless some were lost."""
    wanting = {program.case_id for program in programs if program.record_dice}
    rows = {
        case_id: read_rows(lines) for case_id, lines in batch.traced.items() if case_id in wanting
    }
    throws = {
        case_id: tuple(number % _SIDES for _, name, number in seen.values if name == _NAME)
        for case_id, seen in rows.items()
        if seen.lost == 0
    }
    return replace(batch, dice=throws)


def _load(module: ELFFile) -> tuple[int, int]:
    """Offset in the function of the instruction that loads the variable, and its register."""
    symbols = module.get_section_by_name(".symtab")
    if not isinstance(symbols, SymbolTableSection):
        raise LookupError("no symbols")
    function = next(iter(symbols.get_symbol_by_name(_FUNCTION) or ()), None)
    if function is None:
        raise LookupError("no such function")
    code = module.get_section(function["st_shndx"])
    begin, size = function["st_value"], function["st_size"]
    for at in _addresses(module, code, symbols):
        if begin <= at < begin + size:
            words = [_word(code, at + 4 * i) for i in range(_NEAR)]
            base = words[0] >> 12 & 15
            for i, word in enumerate(words):
                if word & 0xFFFF0FFF == 0xE5900000 | base << 16:  # ldr rD, [rBASE]
                    return at + 4 * i - begin, word >> 12 & 15
    raise LookupError("no load is near its address")


def _addresses(module: ELFFile, code: Section, symbols: SymbolTableSection) -> list[int]:
    """Where in the section instructions begin to make the variable's address."""
    relocations = module.get_section_by_name(f".rel{code.name}")
    if not isinstance(relocations, RelocationSection):
        raise LookupError("no relocations")
    return [
        entry["r_offset"]
        for entry in relocations.iter_relocations()
        if entry["r_info_type"] == _R_ARM_MOVW_ABS_NC
        and symbols.get_symbol(entry["r_info_sym"]).name == _VARIABLE
    ]


def _word(code: Section, at: int) -> int:
    return int.from_bytes(code.data()[at : at + 4], "little")
