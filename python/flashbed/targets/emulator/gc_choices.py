"""Finds where the emulated board's kernel makes JFFS2's pseudo-random choices, to probe them.

Three functions of fs/jffs2 (Linux 6.1) take `jiffies` modulo 128:

- jffs2_find_gc_block (gc.c) chooses the list whose first block is collected next;
- jffs2_mark_node_obsolete (nodemgmt.c) chooses whether an empty block is erased or set aside;
- jffs2_refile_wbuf_blocks (wbuf.c) does so for a block that waited for the write-buffer; it adds a
  counter to `jiffies`.

The compiler inlines the first and the last. The module's relocations (ELF for the ARM architecture,
IHI 0044, R_ARM_MOVW_ABS_NC) show where each function begins to load the address of `jiffies`, which
it uses for nothing else. The next instruction that masks a register with 127 makes the choice. The
probe sits on it and records the register.

Left out: machines other than 32-bit ARM.
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

from flashbed.base.errors import RunError
from flashbed.targets.base import Batch, Program
from flashbed.targets.guest.initramfs import modules_of
from flashbed.targets.guest.trace_rows import read_rows

__all__ = ["recorded", "tracers", "with_choices_traced"]

_NUMBERS = 128
_PLACES = {
    "jffs2_collect": "jffs2_garbage_collect_pass",
    "jffs2_obsolete": "jffs2_mark_node_obsolete",
    "jffs2_refile": "__jffs2_flush_wbuf",
}
"""Name in the tracer's rows -> function, in the order of sim/src/fs/jffs2/gc_choices.rs."""

_VARIABLE = "jiffies"
_R_ARM_MOVW_ABS_NC = 43
_NEAR = 64
"""Instructions to search from the address to the mask; the compiler mixes others in."""


@cache
def tracers(module: Path) -> str:
    """The words of a job's `trace` line that record every choice (agent/tracing/README.md).

    `module` is the kernel's jffs2.ko. Raises `RunError` if a choice cannot be located.
    """
    try:
        with module.open("rb") as file:
            jffs2 = ELFFile(file)
            words = [_word_of(jffs2, name, function) for name, function in _PLACES.items()]
    except (ELFError, OSError) as why:
        raise RunError(f"{module.name}: cannot be read: {why}") from None
    except LookupError as why:
        raise RunError(f"{module.name}: no choice by {_VARIABLE} found: {why}") from None
    return " ".join(words)


def with_choices_traced(program: Program, modules: Path) -> Program:
    """The program with probes on its choices, if it asks for them and runs on JFFS2.

    `modules` is the folder of the kernel's modules. Each probe costs about 2 us, as others do.
    """
    if not program.record_gc_choices or program.stack.fs != "jffs2":
        return program
    module = modules_of(modules).get("jffs2", modules / "jffs2.ko")
    return replace(program, tracers=f"{program.tracers} {tracers(module)}".lstrip())


def recorded(batch: Batch, programs: Sequence[Program]) -> Batch:
    """The batch with the recorded choices, except for programs that lost events."""
    first = {name: _NUMBERS * place for place, name in enumerate(_PLACES)}
    wanting = {program.case_id for program in programs if program.record_gc_choices}
    rows = {
        case_id: read_rows(lines) for case_id, lines in batch.traced.items() if case_id in wanting
    }
    choices = {
        case_id: tuple(
            first[name] + number % _NUMBERS for _, name, number in seen.values if name in first
        )
        for case_id, seen in rows.items()
        if seen.lost == 0
    }
    return replace(batch, gc_choices=choices)


def _word_of(module: ELFFile, name: str, function: str) -> str:
    offset, register = _mask(module, function)
    return f"value={name},jffs2:{function}+{offset:#x},%r{register}"


def _mask(module: ELFFile, name: str) -> tuple[int, int]:
    """Offset and register of the instruction that masks the variable in a function."""
    symbols = module.get_section_by_name(".symtab")
    if not isinstance(symbols, SymbolTableSection):
        raise LookupError("no symbols")
    function = next(iter(symbols.get_symbol_by_name(name) or ()), None)
    if function is None:
        raise LookupError(f"no function {name}")
    code = module.get_section(function["st_shndx"])
    begin, end = function["st_value"], function["st_value"] + function["st_size"]
    for address in _addresses(module, code, symbols):
        if begin <= address < end:
            for at in range(address, min(end, address + 4 * _NEAR), 4):
                word = _word(code, at)
                is_and = word & 0xFFE00FFF == 0xE200007F  # and, ands rD, rN, #127
                is_tst = word & 0xFFF0FFFF == 0xE310007F  # tst rN, #127
                if is_and or is_tst:
                    return at - begin, word >> 16 & 15
    raise LookupError(f"{name} masks nothing near its address")


def _addresses(module: ELFFile, code: Section, symbols: SymbolTableSection) -> list[int]:
    """Offsets in the section at which the variable's address begins to be loaded."""
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
